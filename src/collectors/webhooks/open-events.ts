/** Things that have begun, or have ended lately. The one known longest makes room for the next. */
const OPEN_EVENTS_MAX = 10_000;
const NAMES_MAX = 10_000;
/** A longer id is not remembered: what is not known to a device's maker is not worth our memory. */
const ID_CHARACTERS_MAX = 128;
const NAME_CHARACTERS_MAX = 256;

/** What is remembered of something that a sender tells of in parts. */
export interface OpenEvent {
  /** What has been told of it already. */
  readonly types: readonly string[];
  readonly type: string | undefined;
  readonly startMs: number | null;
  readonly device: string | undefined;
  readonly hasEnded: boolean;
}

/**
 * What has begun and not ended, so that an update says only what is new and an end how long it took; and the names of the
 * devices that bodies name by their ids only. All of it is a convenience: after a restart it begins empty.
 */
export class OpenEvents {
  readonly #open = new Map<string, OpenEvent>();
  readonly #names = new Map<string, string>();

  get size(): number {
    return this.#open.size;
  }

  get(id: string): OpenEvent | undefined {
    return this.#open.get(id);
  }

  set(id: string, event: OpenEvent): void {
    if (id.length > ID_CHARACTERS_MAX) return;
    const device = event.device?.slice(0, ID_CHARACTERS_MAX);
    remember(this.#open, id, { ...event, device, type: event.type?.slice(0, ID_CHARACTERS_MAX) }, OPEN_EVENTS_MAX);
  }

  nameOf(id: string): string | undefined {
    return this.#names.get(id);
  }

  learnName(id: string, name: string): void {
    if (id.length > ID_CHARACTERS_MAX || name.length > NAME_CHARACTERS_MAX) return;
    remember(this.#names, id, name, NAMES_MAX);
  }
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value, max: number): void {
  map.delete(key);
  if (map.size >= max) map.delete(map.keys().next().value!);
  map.set(key, value);
}
