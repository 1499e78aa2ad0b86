import type { Term } from "../words.ts";
import type { Statements } from "./statements.ts";

// Which alerts have a word. A row stands for a word in a thousand alerts, so that a word that every alert has takes a hundred
// rows for a hundred thousand of them, and one that a single alert has takes two bytes beside itself.

export const WORD_INDEX_SCHEMA = `
CREATE TABLE IF NOT EXISTS alert_terms(word TEXT NOT NULL, block INTEGER NOT NULL, slots BLOB NOT NULL, PRIMARY KEY(word, block)) STRICT, WITHOUT ROWID;
`;

const BLOCK_SHIFT = 10;
const BLOCK_SLOTS = 1 << BLOCK_SHIFT;
const BITMAP_BYTES = BLOCK_SLOTS / 8;
/** So many are listed, two bytes each; more are bits. Their lengths tell them apart. */
const LISTED_MAX = BITMAP_BYTES / 2 - 1;
const AFTER_ALL = "\u{10ffff}";

interface Block {
  readonly word: string;
  readonly block: number;
  readonly bits: Uint8Array;
}

export class WordIndex {
  readonly #sql: Statements;
  /** What has changed and is not written yet: alerts that come together share most of their words. */
  readonly #changed = new Map<string, Block>();

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  /** Seen by searches once it is written. */
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

  #block(word: string, block: number): Block {
    const name = `${block} ${word}`;
    let changed = this.#changed.get(name);
    if (!changed) {
      const row = this.#sql.read("SELECT slots FROM alert_terms WHERE word = ? AND block = ?").get(word, block);
      const bits = new Uint8Array(BITMAP_BYTES);
      if (row) visit((row as { slots: Uint8Array }).slots, (place) => (bits[place >> 3]! |= 1 << (place & 7)));
      changed = { word, block, bits };
      this.#changed.set(name, changed);
    }
    return changed;
  }

  /** Within the transaction of those who added and removed. */
  write(): void {
    for (const { word, block, bits } of this.#changed.values()) {
      const slots = pack(bits);
      if (slots.length === 0) this.#sql.run("DELETE FROM alert_terms WHERE word = ? AND block = ?", word, block);
      else this.#sql.run("INSERT OR REPLACE INTO alert_terms(word, block, slots) VALUES (?, ?, ?)", word, block, slots);
    }
    this.#changed.clear();
  }

  /** What is not written will not be. */
  forget(): void {
    this.#changed.clear();
  }

  /** One for each of the first `size` slots that have the word, or one that begins with it. */
  find({ word, goesOn }: Term, size: number): Uint8Array {
    const found = new Uint8Array(size);
    const rows = this.#sql
      .read("SELECT block, slots FROM alert_terms WHERE word >= ? AND word <= ?")
      .iterate(word, goesOn ? word + AFTER_ALL : word);
    for (const { block, slots } of rows as unknown as Iterable<{ block: number; slots: Uint8Array }>) {
      const first = block << BLOCK_SHIFT;
      visit(slots, (place) => {
        found[first + place] = 1;
      });
    }
    return found;
  }
}

function visit(slots: Uint8Array, each: (place: number) => void): void {
  if (slots.length < BITMAP_BYTES) {
    for (let i = 0; i < slots.length; i += 2) each(slots[i]! | (slots[i + 1]! << 8));
    return;
  }
  for (let i = 0; i < BITMAP_BYTES; i++) {
    for (let bits = slots[i]!, place = i * 8; bits !== 0; bits >>= 1, place++) if (bits & 1) each(place);
  }
}

/** The bits themselves, or a list of the few that are set. */
function pack(bits: Uint8Array): Uint8Array {
  const listed: number[] = [];
  visit(bits, (place) => listed.push(place & 0xff, place >> 8));
  return listed.length / 2 <= LISTED_MAX ? Uint8Array.from(listed) : bits;
}
