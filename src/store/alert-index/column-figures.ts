// Small computations over columns.

/** The mean of the numbers among the values. */
export class Mean {
  #sum = 0;
  #count = 0;

  add(value: number): void {
    if (Number.isNaN(value)) return;
    this.#sum += value;
    this.#count++;
  }

  get value(): number | null {
    return this.#count === 0 ? null : this.#sum / this.#count;
  }
}

/** 1 at the place of each of the names. */
export function marksOf<Name>(all: readonly Name[], names: readonly Name[]): Uint8Array {
  return Uint8Array.from(all, (name) => (names.includes(name) ? 1 : 0));
}

/** The counts by name. */
export function named<Name extends string>(names: readonly Name[], counts: readonly number[]): Record<Name, number> {
  return Object.fromEntries(names.map((name, i) => [name, counts[i]!])) as Record<Name, number>;
}

/** The first number below `end` from which the test holds; `end` if it never does. */
export function lowest(end: number, holds: (i: number) => boolean): number {
  let [low, high] = [0, end];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
