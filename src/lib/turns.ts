/**
 * Work that is done one after the other, in the order in which it was asked for. A failure belongs to whoever asked for that
 * work, and is loud where nobody listens; the next begins all the same.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** How much is not done yet. Whoever cannot know how often it is asked puts a limit to this. */
  get waiting(): number {
    return this.#waiting;
  }

  async take<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#waiting++;
    const done = this.#last.then(work).finally(() => this.#waiting--);
    this.#last = done.catch(() => undefined);
    // Another promise than the one that is caught above, which nobody would have to listen to.
    return await done;
  }

  /** Resolves when all that was asked for before is done, well or not. */
  async settled(): Promise<void> {
    await this.#last;
  }
}
