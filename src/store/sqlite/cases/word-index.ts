import { spellings, type Term } from "../../search/text-search.ts";
import { AFTER_ALL } from "../../search/words.ts";
import type { Statements } from "./prepared-statements.ts";

// Which alerts have a word. A row stands for a word in a thousand alerts, so that a word that every alert has takes a hundred
// rows for a hundred thousand of them. Rows are text that can be put one behind the other: what a search finds, be it a hundred
// thousand different words that begin alike, is one text by the time it leaves the engine.

export const WORD_INDEX_SCHEMA = `
CREATE TABLE IF NOT EXISTS alert_terms(word TEXT NOT NULL, block INTEGER NOT NULL, slots TEXT NOT NULL, PRIMARY KEY(word, block)) STRICT, WITHOUT ROWID;
`;

const BLOCK_SHIFT = 10;
const BLOCK_SLOTS = 1 << BLOCK_SHIFT;
const BITMAP_BYTES = BLOCK_SLOTS / 8;
/** Up to so many are listed by their numbers: `7,1023`. More are the block's number and its bits: `5:00ff…`. */
const LISTED_MAX = 32;
const BETWEEN = ",";
const BEFORE_BITS = ":";

interface WordBlock {
  readonly word: string;
  readonly block: number;
  readonly bits: Uint8Array;
}

export class WordIndex {
  readonly #sql: Statements;
  /** What has changed and is not written yet: alerts that come together share most of their words. */
  readonly #changed = new Map<string, WordBlock>();

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

  /** Within the transaction of those who added and removed. */
  write(): void {
    for (const { word, block, bits } of this.#changed.values()) {
      const slots = pack(block, bits);
      if (slots === "") this.#sql.run("DELETE FROM alert_terms WHERE word = ? AND block = ?", word, block);
      else this.#sql.run("INSERT OR REPLACE INTO alert_terms(word, block, slots) VALUES (?, ?, ?)", word, block, slots);
    }
    this.#changed.clear();
  }

  /** What is not written will not be. */
  forget(): void {
    this.#changed.clear();
  }

  /** One for each of the first `size` slots that have the word, or one that begins with it. */
  find(term: Term, size: number): Uint8Array {
    const found = new Uint8Array(size);
    for (const { word, goesOn } of spellings(term)) {
      const row = this.#sql
        .read(`SELECT group_concat(slots, '${BETWEEN}') AS slots FROM alert_terms WHERE word >= ? AND word <= ?`)
        .get(word, goesOn ? word + AFTER_ALL : word) as { slots: string | null };
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
    if (code === BEFORE_BITS.charCodeAt(0)) {
      const end = at + 1 + 2 * BITMAP_BYTES;
      visitBits(Buffer.from(slots.slice(at + 1, end), "hex"), (place) => each((number << BLOCK_SHIFT) + place));
      at = end;
    } else each(number);
    at += BETWEEN.length;
  }
}

function visitBits(bits: Uint8Array, each: (place: number) => void): void {
  for (let i = 0; i < bits.length; i++) {
    for (let byte = bits[i]!, place = i * 8; byte !== 0; byte >>= 1, place++) if (byte & 1) each(place);
  }
}

function pack(block: number, bits: Uint8Array): string {
  const listed: number[] = [];
  visitBits(bits, (place) => listed.push((block << BLOCK_SHIFT) + place));
  if (listed.length <= LISTED_MAX) return listed.join(BETWEEN);
  return block + BEFORE_BITS + Buffer.from(bits).toString("hex");
}
