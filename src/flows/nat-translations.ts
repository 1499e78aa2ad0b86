import { NAT_DST_WORD, NAT_PORTS_WORD, NAT_SRC_WORD, NAT_WORDS } from "../collectors/flows/flow-records.ts";
import type { NatColumns } from "../model/flow.ts";
import { emptyNatColumns } from "../model/flow-rows.ts";
import { growColumn } from "./key-index.ts";

const ROWS_MIN = 1024;

/**
 * The NAT translations of a table's rows. They take no memory at sites without NAT. In a table with translations, each row takes 4
 * bytes and each translated row another 36.
 */
export class NatTranslations {
  /** By row: the position of its translation plus one, or 0. */
  #positions = new Uint32Array(0);
  #words = new Uint32Array(0);
  #count = 0;

  /** Sets the row's translation to the words that begin at `from`. */
  set(row: number, words: Uint32Array, from: number): void {
    if (row >= this.#positions.length) this.#positions = growColumn(this.#positions, Math.max(ROWS_MIN, 2 * row));
    let position = this.#positions[row]!;
    if (position === 0) {
      position = ++this.#count;
      this.#positions[row] = position;
      if (position * NAT_WORDS > this.#words.length)
        this.#words = growColumn(this.#words, NAT_WORDS * Math.max(ROWS_MIN, 2 * position));
    }
    const at = (position - 1) * NAT_WORDS;
    for (let word = 0; word < NAT_WORDS; word++) this.#words[at + word] = words[from + word]!;
  }

  /** The words of the row's translation, if it has one. */
  get(row: number): Uint32Array | undefined {
    const position = this.#positions[row] ?? 0;
    return position === 0 ? undefined : this.#words.subarray((position - 1) * NAT_WORDS, position * NAT_WORDS);
  }

  /** Those of the rows that have a translation. */
  translatedRows(rows: Int32Array): Int32Array {
    return this.#count === 0 ? new Int32Array(0) : rows.filter((row) => (this.#positions[row] ?? 0) > 0);
  }

  /** The columns of a range of rows for the store; null if none of them has a translation. */
  columns(from: number, to: number): NatColumns | null {
    if (this.#positions.subarray(from, to).every((position) => position === 0)) return null;
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
