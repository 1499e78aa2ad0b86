/**
 * Runs tasks one at a time, in the order of their calls. A failure rejects the promise of its own task, unhandled if nobody
 * awaits it, and does not stop the queue.
 */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Unfinished tasks. A caller with unbounded input must limit this. */
  get waiting(): number {
    return this.#waiting;
  }

  async take<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#waiting++;
    const done = this.#last.then(work).finally(() => this.#waiting--);
    this.#last = done.catch(() => undefined);
    // Not the caught promise above, which would hide an unhandled failure.
    return await done;
  }

  /** Resolves when all earlier tasks have finished or failed. */
  async settled(): Promise<void> {
    await this.#last;
  }
}
