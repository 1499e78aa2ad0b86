/** A seeded random number generator: the same seed gives the same demo. */
export interface Random {
  /** A number from 0 (inclusive) to 1 (exclusive). */
  next(): number;
  /** An integer from 0 (inclusive) to `limit` (exclusive). */
  below(limit: number): number;
  /** An integer of the range, bounds included. */
  between(least: number, most: number): number;
  pick<Item>(items: readonly Item[]): Item;
  /** True with a probability of 1 / `times`. */
  onceIn(times: number): boolean;
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  // mulberry32: small, fast, and uniform enough for a demo.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    next,
    below,
    between: (least, most) => least + below(most - least + 1),
    pick: (items) => items[below(items.length)]!,
    onceIn: (times) => next() * times < 1,
  };
}
