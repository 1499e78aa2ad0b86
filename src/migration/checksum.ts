import { hash } from "node:crypto";

const MODULUS = 1n << 128n;
const DIGITS = 32;

export interface Checked {
  readonly rows: number;
  /** 128 bits in hexadecimal. */
  readonly checksum: string;
}

/** A sum over rows that does not depend on their order. Unlike an exclusive or, it notices a row that is there twice. */
export class Checksum {
  #rows = 0;
  #sum = 0n;

  add(text: string): void {
    this.#rows++;
    this.#sum += BigInt(`0x${hash("sha256", text, "hex").slice(0, DIGITS)}`);
  }

  get value(): Checked {
    return { rows: this.#rows, checksum: (this.#sum % MODULUS).toString(16).padStart(DIGITS, "0") };
  }
}
