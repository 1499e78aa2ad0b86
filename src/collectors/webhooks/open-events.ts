import type { JsonObject } from "../../model/event.ts";

/** Detections that have begun and of whose end nothing has come. The one known longest makes room for the next. */
const OPEN_EVENTS_MAX = 10_000;

/** What has begun and not ended, so that an update says only what is new and an end how long it took. */
export class OpenEvents {
  readonly #open = new Map<string, JsonObject>();

  get size(): number {
    return this.#open.size;
  }

  get(id: string): JsonObject | undefined {
    return this.#open.get(id);
  }

  set(id: string, item: JsonObject): void {
    this.#open.delete(id);
    if (this.#open.size >= OPEN_EVENTS_MAX) this.#open.delete(this.#open.keys().next().value!);
    this.#open.set(id, item);
  }
}
