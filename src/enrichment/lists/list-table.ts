import { canonicalAddress, fourNumber, sixGroups } from "../../lib/ip.ts";

// The entries of one list, in shared memory: a thread builds the table, and the main thread queries it.

export interface ListTable {
  /** IPv4 ranges in ascending order, neither overlapping nor adjacent. */
  readonly fourFrom: Uint32Array;
  readonly fourTo: Uint32Array;
  /** The same for IPv6, four numbers each. */
  readonly sixFrom: Uint32Array;
  readonly sixTo: Uint32Array;
  /** All names in sequence, and the end of each. */
  readonly names: Uint8Array;
  readonly nameEnds: Uint32Array;
  /** The hash table: the index of a name plus one, or 0, at the slot of `mixName`; its length is a power of two. */
  readonly nameSlots: Uint32Array;
}

const DOT = 46;
const HASH_START = 0x811c9dc5;
const HASH_FACTOR = 0x01000193;

/** Hashes run from the end of a name to its start, which yields the hashes of all its parent domains on the way. */
const addToHash = (hash: number, code: number) => Math.imul(hash ^ code, HASH_FACTOR);
export const mixName = (hash: number, slots: number) => (hash ^ (hash >>> 15)) & (slots - 1);

export function hashName(name: string): number {
  let hash = HASH_START;
  for (let i = name.length - 1; i >= 0; i--) hash = addToHash(hash, name.charCodeAt(i));
  return hash;
}

/** An address in the form that tables are queried with: one number for IPv4, four for IPv6. */
export function addressNumbers(text: string): number | Uint32Array | undefined {
  const four = fourNumber(text);
  if (four !== undefined) return four;
  const groups = sixGroups(text);
  // An address that begins with zeros may be IPv4-mapped.
  if (groups !== undefined && groups[0] !== 0) return wordsOf(groups);
  const address = canonicalAddress(text);
  return address === undefined ? undefined : (fourNumber(address) ?? wordsOf(sixGroups(address)!));
}

function wordsOf(groups: Uint16Array): Uint32Array {
  const words = new Uint32Array(4);
  for (let i = 0; i < 4; i++) words[i] = groups[2 * i]! * 65_536 + groups[2 * i + 1]!;
  return words;
}

export function hasAddress(table: ListTable, address: number | Uint32Array): boolean {
  return typeof address === "number" ? hasFour(table, address) : hasSix(table, address);
}

function hasFour({ fourFrom, fourTo }: ListTable, value: number): boolean {
  let low = 0;
  let high = fourFrom.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (fourFrom[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low > 0 && fourTo[low - 1]! >= value;
}

function hasSix({ sixFrom, sixTo }: ListTable, value: Uint32Array): boolean {
  let low = 0;
  let high = sixFrom.length / 4;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareSix(sixFrom, middle, value) <= 0) low = middle + 1;
    else high = middle;
  }
  return low > 0 && compareSix(sixTo, low - 1, value) >= 0;
}

function compareSix(table: Uint32Array, index: number, value: Uint32Array): number {
  for (let i = 0; i < 4; i++) {
    const difference = table[index * 4 + i]! - value[i]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

/** True if the list has the name or a parent domain: `b.example` matches `a.b.example`. The name is in normalised form. */
export function hasName(table: ListTable, name: string): boolean {
  if (table.nameEnds.length === 0) return false;
  let hash = HASH_START;
  for (let i = name.length - 1; i >= 0; i--) {
    hash = addToHash(hash, name.charCodeAt(i));
    if ((i === 0 || name.charCodeAt(i - 1) === DOT) && hasEnding(table, name, i, hash)) return true;
  }
  return false;
}

function hasEnding({ names, nameEnds, nameSlots }: ListTable, name: string, from: number, hash: number): boolean {
  for (let slot = mixName(hash, nameSlots.length); ; slot = (slot + 1) & (nameSlots.length - 1)) {
    const number = nameSlots[slot]!;
    if (number === 0) return false;
    const start = number === 1 ? 0 : nameEnds[number - 2]!;
    if (nameEnds[number - 1]! - start === name.length - from && isAt(names, start, name, from)) return true;
  }
}

function isAt(names: Uint8Array, start: number, name: string, from: number): boolean {
  for (let i = from; i < name.length; i++) if (names[start + i - from] !== name.charCodeAt(i)) return false;
  return true;
}
