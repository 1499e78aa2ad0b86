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

export class WordIndex {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  add(slot: number, words: Iterable<string>): void {
    const block = slot >> BLOCK_SHIFT;
    for (const word of words) this.#put(word, block, withPlace(this.#slots(word, block), slot % BLOCK_SLOTS));
  }

  remove(slot: number, words: Iterable<string>): void {
    const block = slot >> BLOCK_SHIFT;
    for (const word of words) this.#put(word, block, withoutPlace(this.#slots(word, block), slot % BLOCK_SLOTS));
  }

  #slots(word: string, block: number): Uint8Array {
    const row = this.#sql.read("SELECT slots FROM alert_terms WHERE word = ? AND block = ?").get(word, block);
    return (row as { slots: Uint8Array } | undefined)?.slots ?? new Uint8Array();
  }

  #put(word: string, block: number, slots: Uint8Array): void {
    if (slots.length === 0) this.#sql.run("DELETE FROM alert_terms WHERE word = ? AND block = ?", word, block);
    else this.#sql.run("INSERT OR REPLACE INTO alert_terms(word, block, slots) VALUES (?, ?, ?)", word, block, slots);
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

function withPlace(slots: Uint8Array, place: number): Uint8Array {
  if (slots.length === BITMAP_BYTES) {
    const bits = slots.slice();
    bits[place >> 3]! |= 1 << (place & 7);
    return bits;
  }
  const listed = withoutPlace(slots, place);
  if (listed.length / 2 < LISTED_MAX) return Uint8Array.of(...listed, place & 0xff, place >> 8);
  const bits = new Uint8Array(BITMAP_BYTES);
  visit(listed, (each) => (bits[each >> 3]! |= 1 << (each & 7)));
  return withPlace(bits, place);
}

/** Bits stay bits, however few are left; none at all are nothing. */
function withoutPlace(slots: Uint8Array, place: number): Uint8Array {
  if (slots.length === BITMAP_BYTES) {
    const bits = slots.slice();
    bits[place >> 3]! &= ~(1 << (place & 7));
    return bits.some((byte) => byte !== 0) ? bits : new Uint8Array();
  }
  for (let i = 0; i < slots.length; i += 2) {
    if ((slots[i]! | (slots[i + 1]! << 8)) === place) return Uint8Array.of(...slots.slice(0, i), ...slots.slice(i + 2));
  }
  return slots;
}
