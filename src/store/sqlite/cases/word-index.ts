import { spellings, type Term } from "../../search/text-search.ts";
import { PREFIX_END } from "../../search/words.ts";
import type { AlertWords } from "../../alert-index/alert-search.ts";
import type { Statements } from "./prepared-statements.ts";

// The index of words in alerts. A row covers a word in a block of 1024 slots, so that a word of every alert takes a hundred
// rows for a hundred thousand alerts. Rows are text that can be concatenated: the result of a search, even for a prefix of a
// hundred thousand words, leaves the engine as one text.

export const WORD_INDEX_SCHEMA = `
CREATE TABLE IF NOT EXISTS alert_terms(word TEXT NOT NULL, block INTEGER NOT NULL, slots TEXT NOT NULL, PRIMARY KEY(word, block)) STRICT, WITHOUT ROWID;
`;

const BLOCK_SHIFT = 10;
const BLOCK_SLOTS = 1 << BLOCK_SHIFT;
const BITMAP_BYTES = BLOCK_SLOTS / 8;
/** Up to this many slots are listed by number: `7,1023`. More are stored as the block's number and its bits: `5:00ff…`. */
const LISTED_MAX = 32;
const SEPARATOR = ",";
const BITS_MARK = ":";

interface WordBlock {
  readonly word: string;
  readonly block: number;
  readonly bits: Uint8Array;
}

export class WordIndex implements AlertWords {
  readonly #sql: Statements;
  /** Changes that are not written yet. Buffered, because alerts that arrive together share most of their words. */
  readonly #changed = new Map<string, WordBlock>();

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Searches see the words after `write`. */
  add(slot: number, words: Iterable<string>): void {
    for (const word of words) {
      const { bits } = this.#block(word, slot >> BLOCK_SHIFT);
      bits[(slot % BLOCK_SLOTS) >> 3]! |= 1 << (slot & 7);
    }
  }

  remove(slot: number, words: Iterable<string>): void {
    for (const word of words) {
      const { bits } = this.#block(word, slot >> BLOCK_SHIFT);
      bits[(slot % BLOCK_SLOTS) >> 3]! &= ~(1 << (slot & 7));
    }
  }

  #block(word: string, block: number): WordBlock {
    const name = `${block} ${word}`;
    let changed = this.#changed.get(name);
    if (!changed) {
      const row = this.#sql.read("SELECT slots FROM alert_terms WHERE word = ? AND block = ?").get(word, block);
      const bits = new Uint8Array(BITMAP_BYTES);
      if (row) {
        visit((row as { slots: string }).slots, (slot) => (bits[(slot % BLOCK_SLOTS) >> 3]! |= 1 << (slot & 7)));
      }
      changed = { word, block, bits };
      this.#changed.set(name, changed);
    }
    return changed;
  }

  /** Must run in the transaction of the changes. */
  write(): void {
    for (const { word, block, bits } of this.#changed.values()) {
      const slots = pack(block, bits);
      if (slots === "") this.#sql.run("DELETE FROM alert_terms WHERE word = ? AND block = ?", word, block);
      else this.#sql.run("INSERT OR REPLACE INTO alert_terms(word, block, slots) VALUES (?, ?, ?)", word, block, slots);
    }
    this.#changed.clear();
  }

  /** Discards changes that are not written. */
  discard(): void {
    this.#changed.clear();
  }

  /** An array of `size` slots, with 1 for each whose alert contains the term. */
  find(term: Term, size: number): Uint8Array {
    const found = new Uint8Array(size);
    for (const { word, isPrefix } of spellings(term)) {
      const row = this.#sql
        .read(`SELECT group_concat(slots, '${SEPARATOR}') AS slots FROM alert_terms WHERE word >= ? AND word <= ?`)
        .get(word, isPrefix ? word + PREFIX_END : word) as { slots: string | null };
      visit(row.slots ?? "", (slot) => {
        found[slot] = 1;
      });
    }
    return found;
  }
}

function visit(slots: string, each: (slot: number) => void): void {
  for (let at = 0; at < slots.length;) {
    let number = 0;
    let code = slots.charCodeAt(at);
    for (; code >= 48 && code <= 57; code = slots.charCodeAt(++at)) number = number * 10 + code - 48;
    if (code === BITS_MARK.charCodeAt(0)) {
      const end = at + 1 + 2 * BITMAP_BYTES;
      visitBits(Buffer.from(slots.slice(at + 1, end), "hex"), (bit) => each((number << BLOCK_SHIFT) + bit));
      at = end;
    } else each(number);
    at += SEPARATOR.length;
  }
}

function visitBits(bits: Uint8Array, each: (bit: number) => void): void {
  for (let i = 0; i < bits.length; i++) {
    for (let byte = bits[i]!, bit = i * 8; byte !== 0; byte >>= 1, bit++) if (byte & 1) each(bit);
  }
}

function pack(block: number, bits: Uint8Array): string {
  const listed: number[] = [];
  visitBits(bits, (bit) => listed.push((block << BLOCK_SHIFT) + bit));
  if (listed.length <= LISTED_MAX) return listed.join(SEPARATOR);
  return block + BITS_MARK + Buffer.from(bits).toString("hex");
}
