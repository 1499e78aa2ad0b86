import { Listeners } from "../../lib/listeners.ts";
import type { PostgresQueries } from "./postgres-database.ts";
import type { NoticeChannel, PostgresListener } from "./postgres-listener.ts";

/** Listeners that hear of what this process and others did. */
export class NoticedListeners {
  readonly #listeners = new Listeners();
  readonly #channel: NoticeChannel;
  readonly #self: string;

  /** `self` identifies the process, which hears its own notices too and has told its listeners by then. */
  constructor(listener: PostgresListener, channel: NoticeChannel, self: string) {
    this.#channel = channel;
    this.#self = self;
    listener.on(channel, (sender) => {
      if (sender !== self) this.#listeners.notify();
    });
    // Whatever was announced meanwhile is lost.
    listener.onReturn(() => this.#listeners.notify());
  }

  add(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Tells other processes, once the transaction is committed. */
  async announce(transaction: PostgresQueries): Promise<void> {
    await transaction.query("SELECT pg_notify($1, $2)", [this.#channel, this.#self]);
  }

  /** Tells the listeners of this process. Call it once the transaction is committed. */
  notify(): void {
    this.#listeners.notify();
  }
}
