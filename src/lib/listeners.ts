/** Functions that are called when something has happened. */
export class Listeners {
  readonly #all = new Set<() => void>();

  /** Returns a function that removes it. */
  add(listener: () => void): () => void {
    // A new function for each call: the same listener may be added twice.
    const entry = () => listener();
    this.#all.add(entry);
    return () => void this.#all.delete(entry);
  }

  notify(): void {
    for (const listener of this.#all) listener();
  }
}
