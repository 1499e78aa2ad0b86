import { LRUCache } from "lru-cache";
import type { NoticeChannel, PostgresListener } from "./postgres-listener.ts";

/** The payload that means every entry. */
export const ALL = "*";

/**
 * A bounded cache of rows that other processes change too. Each change is announced on the channel, with the name of the entry
 * or ALL. While notices may be missing, every call reads the database.
 */
export class NoticedCache<Value extends object> {
  readonly #listener: PostgresListener;
  readonly #values: LRUCache<string, Value>;
  /** Grows with each change, so that a value read before a change is not kept after it. */
  #changes = 0;

  constructor(listener: PostgresListener, channel: NoticeChannel, max: number) {
    this.#listener = listener;
    this.#values = new LRUCache({ max });
    listener.on(channel, (payload) => this.forget(payload));
    listener.onLoss(() => this.forget(ALL));
  }

  async find(name: string, read: () => Promise<Value | undefined>): Promise<Value | undefined> {
    const cached = this.#listener.isCurrent ? this.#values.get(name) : undefined;
    if (cached) return cached;
    const changes = this.#changes;
    const value = await read();
    if (value && this.#listener.isCurrent && changes === this.#changes) this.#values.set(name, value);
    return value;
  }

  /** Called at once by whoever changed the entry here; the notice would come a moment later. */
  forget(name: string): void {
    this.#changes++;
    if (name === ALL) this.#values.clear();
    else this.#values.delete(name);
  }
}
