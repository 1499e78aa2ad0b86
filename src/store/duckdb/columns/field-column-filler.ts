import type { Memtables } from "./memtables.ts";

// Makes and fills columns of fields in the background, step by step: flushes, amendments and removals get their turn in between.

export class FieldColumnFiller {
  readonly #memtables: Memtables;
  #filling: Promise<void> | undefined;
  #isStopped = false;

  constructor(memtables: Memtables) {
    this.#memtables = memtables;
  }

  /** Continues where it stopped; does nothing while it is running. Rejects with a failure; the next call retries. */
  continue(): Promise<void> {
    this.#filling ??= this.#fill().finally(() => (this.#filling = undefined));
    return this.#filling;
  }

  /** Resolves when nothing is running, and nothing will be. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#filling?.catch(() => undefined);
  }

  async #fill(): Promise<void> {
    while (!this.#isStopped && (await this.#memtables.advanceFields()));
  }
}
