/**
 * A cache of recently used values, in two generations: a used value moves to the young map, and when that is full the old map is
 * dropped. Exact LRU order would cost as much as the cache saves.
 */
export class RecentValues<Value extends object> {
  readonly #eachMax: number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();

  constructor(max: number) {
    this.#eachMax = Math.ceil(max / 2);
  }

  get(text: string): Value | undefined {
    const young = this.#young.get(text);
    if (young !== undefined) return young;
    const old = this.#old.get(text);
    if (old !== undefined) this.set(text, old);
    return old;
  }

  set(text: string, value: Value): void {
    if (this.#young.size >= this.#eachMax) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(text, value);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
