import type { Logger } from "pino";

/** Closes the parts opened so far, so that a store that fails to open leaves nothing that keeps the process alive. */
export class OpenedParts {
  readonly #closers: (() => unknown)[] = [];

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Closes the last part first. A failure does not keep the others open: the first is thrown after all were tried. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close; close = this.#closers.pop()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** For a store that failed to open: its caller reports that error, so failures to close are only logged. */
  async abandon(log: Logger): Promise<void> {
    await this.close().catch((error: unknown) => log.warn({ err: error }, "not closed cleanly"));
  }
}
