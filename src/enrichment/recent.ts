/**
 * What was asked for lately, by its text. Two maps in turns: what is asked for again comes into the younger one, and when
 * that is full the older one goes. A list of all in the order of their use costs as much as what is saved by it.
 */
export class Recent<Value extends object> {
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
