import { NAT_DST_WORD, NAT_PORTS_WORD, NAT_SRC_WORD, NAT_WORDS } from "../collectors/records.ts";
import type { NatColumns } from "../model/flow.ts";
import { emptyNatColumns } from "../model/flow-rows.ts";
import { grown } from "./key-index.ts";

const ROWS_MIN = 1024;

/**
 * The translations of a table's rows, beside the table: most sites have none, and then this takes no memory. A row of a table
 * that has some takes 4 bytes more, and one that is translated itself another 36.
 */
export class Translations {
  /** By row: one more than its place among the translations, 0 where it has none. */
  #places = new Uint32Array(0);
  #words = new Uint32Array(0);
  #count = 0;

  /** Takes the words that begin at `from`, in place of any that the row had. */
  set(row: number, words: Uint32Array, from: number): void {
    if (row >= this.#places.length) this.#places = grown(this.#places, Math.max(ROWS_MIN, 2 * row));
    let place = this.#places[row]!;
    if (place === 0) {
      place = ++this.#count;
      this.#places[row] = place;
      if (place * NAT_WORDS > this.#words.length)
        this.#words = grown(this.#words, NAT_WORDS * Math.max(ROWS_MIN, 2 * place));
    }
    const at = (place - 1) * NAT_WORDS;
    for (let word = 0; word < NAT_WORDS; word++) this.#words[at + word] = words[from + word]!;
  }

  /** The row's words; undefined where it has no translation. */
  get(row: number): Uint32Array | undefined {
    const place = this.#places[row] ?? 0;
    return place === 0 ? undefined : this.#words.subarray((place - 1) * NAT_WORDS, place * NAT_WORDS);
  }

  /** Which of the rows have one. */
  among(rows: Int32Array): Int32Array {
    return this.#count === 0 ? new Int32Array(0) : rows.filter((row) => (this.#places[row] ?? 0) > 0);
  }

  /** Of the rows from one to before another, as the store takes them; null where none of them has a translation. */
  columns(from: number, to: number): NatColumns | null {
    if (this.#places.subarray(from, to).every((place) => place === 0)) return null;
    const columns = emptyNatColumns(to - from);
    const [src, dst] = [new Uint32Array(columns.src.buffer), new Uint32Array(columns.dst.buffer)];
    for (let row = 0; row < to - from; row++) {
      const words = this.get(from + row);
      if (!words) continue;
      src.set(words.subarray(NAT_SRC_WORD, NAT_SRC_WORD + 4), row * 4);
      dst.set(words.subarray(NAT_DST_WORD, NAT_DST_WORD + 4), row * 4);
      columns.srcPort[row] = words[NAT_PORTS_WORD]! >>> 16;
      columns.dstPort[row] = words[NAT_PORTS_WORD]!;
    }
    return columns;
  }
}
