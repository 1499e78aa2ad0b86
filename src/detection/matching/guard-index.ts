import type { Scalar } from "../../model/condition.ts";
import type { FieldValue } from "../../model/field.ts";
import type { Guard } from "./guard.ts";

// An index of the guards of one field. Whole values are looked up in a map; prefixes, suffixes and substrings by a hash of a
// few characters, then compared. A value is scanned once, regardless of the number of guards.

const GRAM = 4;
/** Substrings are looked up at every position, prefixes once: a sparse table keeps the former cheap. */
const PART_SLOTS = 1 << 15;
const END_SLOTS = 1 << 10;
/** Prefixes and suffixes are hashed over the longest of these lengths that fits, since many share a few characters. */
const END_LENGTHS = [4, 8, 12, 16] as const;
const LENGTH_BUCKETS = 256;
/** Up to this number of equal-length texts, comparing is faster than hashing a fresh string. */
const COMPARED_MAX = 4;

interface EqualText<Owner> {
  readonly text: string;
  readonly owners: Owner[];
}

/** A text and the owners of its guards. */
interface IndexedLiteral<Owner> {
  readonly text: string;
  readonly owners: Owner[];
  /** Position of the hashed characters in the text. */
  readonly offset: number;
  readonly hash: number;
}

export class GuardIndex<Owner> {
  readonly #equals = new Map<FieldValue, Owner[]>();
  /** The string values again, by length. */
  readonly #equalTexts: (EqualText<Owner>[] | undefined)[] = Array.from({ length: LENGTH_BUCKETS }, () => undefined);
  readonly #present: Owner[] = [];
  readonly #prefixes = new Map<number, TextTable<Owner>>();
  readonly #suffixes = new Map<number, TextTable<Owner>>();
  #grams: TextTable<Owner> | undefined;
  /** Substrings that are too short to hash. */
  readonly #short: IndexedLiteral<Owner>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(guard: Guard, owner: Owner): void {
    this.#size++;
    if (guard.kind === "present") this.#present.push(owner);
    else if (guard.kind === "equals") {
      const owners = this.#equals.get(guard.value);
      if (owners) owners.push(owner);
      else this.#addEqual(guard.value, [owner]);
    } else if (guard.kind === "contains") {
      if (guard.text.length < GRAM) addShort(this.#short, guard.text, owner);
      else (this.#grams ??= new TextTable(GRAM, PART_SLOTS)).add(guard.text, owner, "anywhere");
    } else this.#end(guard.kind, guard.text).add(guard.text, owner, guard.kind);
  }

  remove(guard: Guard, owner: Owner): void {
    this.#size--;
    if (guard.kind === "present") drop(this.#present, owner);
    else if (guard.kind === "equals") {
      const owners = this.#equals.get(guard.value)!;
      drop(owners, owner);
      if (owners.length > 0) return;
      this.#removeEqual(guard.value);
    } else if (guard.kind === "contains") {
      if (guard.text.length < GRAM) removeShort(this.#short, guard.text, owner);
      else if (this.#grams!.remove(guard.text, owner)) this.#grams = undefined;
    } else {
      const table = this.#end(guard.kind, guard.text);
      const tables = guard.kind === "prefix" ? this.#prefixes : this.#suffixes;
      if (table.remove(guard.text, owner)) tables.delete(table.length);
    }
  }

  #addEqual(value: Scalar, owners: Owner[]): void {
    this.#equals.set(value, owners);
    if (typeof value === "string") (this.#equalTexts[lengthOf(value)] ??= []).push({ text: value, owners });
  }

  #removeEqual(value: Scalar): void {
    this.#equals.delete(value);
    if (typeof value !== "string") return;
    const texts = this.#equalTexts[lengthOf(value)]!;
    drop(
      texts,
      texts.find(({ text }) => text === value)!,
    );
    if (texts.length === 0) this.#equalTexts[lengthOf(value)] = undefined;
  }

  #end(kind: "prefix" | "suffix", text: string): TextTable<Owner> {
    const tables = kind === "prefix" ? this.#prefixes : this.#suffixes;
    const length = END_LENGTHS.findLast((known) => known <= text.length) ?? text.length;
    let table = tables.get(length);
    if (!table) tables.set(length, (table = new TextTable(length, END_SLOTS)));
    return table;
  }

  /** Reports the owners of every guard that one of these values satisfies. An owner may be reported again. */
  visit(values: readonly FieldValue[], found: (owners: readonly Owner[]) => void): void {
    if (values.length === 0) return;
    if (this.#present.length > 0) found(this.#present);
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (typeof value === "string") this.#visitText(value, found);
      else {
        const owners = this.#equals.get(value);
        if (owners) found(owners);
      }
    }
  }

  #visitText(text: string, found: (owners: readonly Owner[]) => void): void {
    const equals = this.#equalTexts[lengthOf(text)];
    if (equals !== undefined && equals.length > COMPARED_MAX) {
      const owners = this.#equals.get(text);
      if (owners) found(owners);
    } else if (equals !== undefined) {
      for (let i = 0; i < equals.length; i++) if (equals[i]!.text === text) found(equals[i]!.owners);
    }
    for (const table of this.#prefixes.values()) table.visitAt(text, 0, found);
    for (const table of this.#suffixes.values()) table.visitAt(text, text.length - table.length, found);
    for (let i = 0; i < this.#short.length; i++) {
      const { text: part, owners } = this.#short[i]!;
      if (text.includes(part)) found(owners);
    }
    this.#grams?.visitAll(text, found);
  }
}

/** Texts by the hash of a run of their characters. */
class TextTable<Owner> {
  readonly length: number;
  readonly #literals = new Map<string, IndexedLiteral<Owner>>();
  readonly #buckets = new Map<number, IndexedLiteral<Owner>[]>();
  /** Number of texts by the low bits of their hash. Mostly 0, which ends the lookup. */
  readonly #filled: Uint16Array;
  readonly #mask: number;

  constructor(length: number, slots: number) {
    this.length = length;
    this.#filled = new Uint16Array(slots);
    this.#mask = slots - 1;
  }

  add(text: string, owner: Owner, place: "prefix" | "suffix" | "anywhere"): void {
    const known = this.#literals.get(text);
    if (known) {
      known.owners.push(owner);
      return;
    }
    const offset =
      place === "prefix" ? 0 : place === "suffix" ? text.length - this.length : this.#leastFilledOffset(text);
    const hash = hashOf(text, offset, this.length);
    const literal = { text, owners: [owner], offset, hash };
    this.#literals.set(text, literal);
    const bucket = this.#buckets.get(hash);
    if (bucket) bucket.push(literal);
    else this.#buckets.set(hash, [literal]);
    this.#filled[hash & this.#mask]!++;
  }

  /** Returns true if the table is now empty. */
  remove(text: string, owner: Owner): boolean {
    const literal = this.#literals.get(text)!;
    drop(literal.owners, owner);
    if (literal.owners.length > 0) return false;
    this.#literals.delete(text);
    const bucket = this.#buckets.get(literal.hash)!;
    drop(bucket, literal);
    if (bucket.length === 0) this.#buckets.delete(literal.hash);
    this.#filled[literal.hash & this.#mask]!--;
    return this.#literals.size === 0;
  }

  /** The offset whose hash slot is shared by the fewest texts. */
  #leastFilledOffset(text: string): number {
    let best = 0;
    let fewest = Infinity;
    for (let offset = 0; offset + this.length <= text.length && fewest > 0; offset++) {
      const filled = this.#filled[hashOf(text, offset, this.length) & this.#mask]!;
      if (filled < fewest) {
        fewest = filled;
        best = offset;
      }
    }
    return best;
  }

  visitAt(text: string, at: number, found: (owners: readonly Owner[]) => void): void {
    if (at < 0 || at + this.length > text.length) return;
    const hash = hashOf(text, at, this.length);
    if (this.#filled[hash & this.#mask] !== 0) this.#compare(text, at, hash, found);
  }

  visitAll(text: string, found: (owners: readonly Owner[]) => void): void {
    const filled = this.#filled;
    const mask = this.#mask;
    const last = text.length - GRAM;
    if (last < 0) return;
    let window = (text.charCodeAt(0) << 16) ^ (text.charCodeAt(1) << 8) ^ text.charCodeAt(2);
    for (let at = 0; at <= last; at++) {
      window = (window << 8) ^ text.charCodeAt(at + 3);
      const hash = mix(window);
      if (filled[hash & mask] !== 0) this.#compare(text, at, hash, found);
    }
  }

  #compare(text: string, at: number, hash: number, found: (owners: readonly Owner[]) => void): void {
    const bucket = this.#buckets.get(hash);
    if (!bucket) return;
    for (let i = 0; i < bucket.length; i++) {
      const literal = bucket[i]!;
      if (text.startsWith(literal.text, at - literal.offset)) found(literal.owners);
    }
  }
}

/** Characters above 255 overlap their neighbours. Collisions are harmless, since texts are compared. */
function hashOf(text: string, at: number, length: number): number {
  let window = 0;
  let hash = 0;
  for (let i = 0; i < length; i++) {
    window = (window << 8) ^ text.charCodeAt(at + i);
    if ((i & 3) === 3) hash = mix(window ^ (i > 3 ? hash : 0));
  }
  return (length & 3) === 0 ? hash : mix(window);
}

function mix(window: number): number {
  const product = Math.imul(window, 0x9e3779b1);
  return (product ^ (product >>> 15)) >>> 0;
}

function lengthOf(text: string): number {
  return Math.min(text.length, LENGTH_BUCKETS - 1);
}

function addShort<Owner>(list: IndexedLiteral<Owner>[], text: string, owner: Owner): void {
  const known = list.find((literal) => literal.text === text);
  if (known) known.owners.push(owner);
  else list.push({ text, owners: [owner], offset: 0, hash: 0 });
}

function removeShort<Owner>(list: IndexedLiteral<Owner>[], text: string, owner: Owner): void {
  const literal = list.find((known) => known.text === text)!;
  drop(literal.owners, owner);
  if (literal.owners.length === 0) drop(list, literal);
}

function drop<Item>(list: Item[], item: Item): void {
  const at = list.indexOf(item);
  list[at] = list.at(-1)!;
  list.pop();
}
