import type { Scalar } from "../../model/condition.ts";

// HalfSipHash-1-3 with 64 bits of output. Without the seed nobody can construct a collision, and its 32-bit operations are
// fast in JavaScript.

export interface HashSeed {
  readonly first: number;
  readonly second: number;
}

export function randomSeed(): HashSeed {
  const [first, second] = crypto.getRandomValues(new Uint32Array(2));
  return { first: first!, second: second! };
}

const TEXT = 1;
const NUMBER = 2;
const TRUE = 3;
const FALSE = 4;
const LARGE = 5;

/** Hashes lists of values. The result is in `high` and `low`, so that nothing is allocated. */
export class GroupHash {
  readonly #seed: HashSeed;
  readonly #number = new Float64Array(1);
  readonly #numberWords = new Uint32Array(this.#number.buffer);
  #v0 = 0;
  #v1 = 0;
  #v2 = 0;
  #v3 = 0;
  high = 0;
  low = 0;

  constructor(seed: HashSeed) {
    this.#seed = seed;
  }

  of(values: readonly Scalar[]): void {
    const { first, second } = this.#seed;
    this.#v0 = first;
    this.#v1 = second ^ 0xee;
    this.#v2 = 0x6c796765 ^ first;
    this.#v3 = 0x74656462 ^ second;
    for (let i = 0; i < values.length; i++) this.#take(values[i]!);
    this.#word(values.length);
    this.#v2 ^= 0xee;
    this.#rounds(3);
    this.high = (this.#v1 ^ this.#v3) >>> 0;
    this.#v1 ^= 0xdd;
    this.#rounds(3);
    this.low = (this.#v1 ^ this.#v3) >>> 0;
  }

  #take(value: Scalar): void {
    if (typeof value === "string") {
      this.#word((value.length << 3) | TEXT);
      this.#text(value);
    } else if (typeof value === "number") {
      this.#word(NUMBER);
      // -0 and 0 are equal.
      this.#number[0] = value + 0;
      this.#word(this.#numberWords[0]!);
      this.#word(this.#numberWords[1]!);
    } else if (typeof value === "bigint") {
      const digits = value.toString();
      this.#word((digits.length << 3) | LARGE);
      this.#text(digits);
    } else this.#word(value ? TRUE : FALSE);
  }

  #word(word: number): void {
    this.#v3 ^= word;
    this.#rounds(1);
    this.#v0 ^= word;
  }

  /** Two characters per round, with the state in local variables: this is the hot loop. */
  #text(text: string): void {
    let v0 = this.#v0;
    let v1 = this.#v1;
    let v2 = this.#v2;
    let v3 = this.#v3;
    const { length } = text;
    for (let i = 0; i < length; i += 2) {
      const word = text.charCodeAt(i) | (i + 1 < length ? text.charCodeAt(i + 1) << 16 : 0);
      v3 ^= word;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    this.#v0 = v0;
    this.#v1 = v1;
    this.#v2 = v2;
    this.#v3 = v3;
  }

  #rounds(rounds: number): void {
    let v0 = this.#v0;
    let v1 = this.#v1;
    let v2 = this.#v2;
    let v3 = this.#v3;
    for (let i = 0; i < rounds; i++) {
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    this.#v0 = v0;
    this.#v1 = v1;
    this.#v2 = v2;
    this.#v3 = v3;
  }
}
