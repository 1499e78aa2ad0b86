import { domainToASCII } from "node:url";
import { fourNumber, parseAddress, parseCidr, type AddressRange } from "../../lib/ip.ts";
import { hashName, mixName, type ListTable } from "./list-table.ts";

// Parses the text of a list into its table. Each line has one entry: an address, a network, an address range or a domain; the rest
// of the line is ignored. A line in hosts-file format contributes its names.

const ENTRIES_MAX = 1_000_000;
const SAMPLE_CHARACTERS_MAX = 100;
const NAME_CHARACTERS_MAX = 253;
const NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/;
/** Addresses that hosts files use to block names, and the names of the machine itself. */
export const HOSTS_ADDRESSES = new Set([
  "0.0.0.0",
  "127.0.0.1",
  "127.0.1.1",
  "255.255.255.255",
  "::",
  "::1",
  "ff02::1",
  "ff02::2",
  "fe80::1%lo0",
]);
export const HOSTS_NAMES = /^(?:localhost(?:\.localdomain)?|local|broadcasthost|ip6-\w+|0\.0\.0\.0)$/;

/** `192.0.2.1 - 192.0.2.9`, followed by anything. */
export const SPACED_RANGE = /^([\da-f.:]+)\s+-\s+([\da-f.:]+)(?=$|[\s,])/i;

const FOUR_START = 0xffff00000000n;
const FOUR_END = 0xffffffffffffn;

export interface ParsedList {
  readonly table: ListTable;
  readonly addresses: number;
  readonly networks: number;
  readonly domains: number;
  readonly badLines: number;
  /** The first invalid line, for messages. */
  readonly badSample: string | null;
  readonly leftOut: number;
}

interface ListEntries {
  readonly singles: number[];
  readonly four: AddressRange[];
  readonly six: AddressRange[];
  readonly names: Set<string>;
  addresses: number;
  networks: number;
  leftOut: number;
  readonly max: number;
}

export function parseList(text: string, max = ENTRIES_MAX): ParsedList {
  const entries: ListEntries = {
    max,
    singles: [],
    four: [],
    six: [],
    names: new Set(),
    addresses: 0,
    networks: 0,
    leftOut: 0,
  };
  let badLines = 0;
  let badSample: string | null = null;
  for (let at = text.startsWith("\uFEFF") ? 1 : 0; at < text.length;) {
    const end = text.indexOf("\n", at);
    const line = text.slice(at, end < 0 ? text.length : end);
    at = end < 0 ? text.length : end + 1;
    if (parsePlainLine(line.trim(), entries) || parseLine(line, entries)) continue;
    badLines++;
    badSample ??= line.trim().slice(0, SAMPLE_CHARACTERS_MAX);
  }
  const { addresses, networks, leftOut, names } = entries;
  return { table: tableOf(entries), addresses, networks, domains: names.size, badLines, badSample, leftOut };
}

/** The fast path: nearly every line of a long list is only an address or a name. */
function parsePlainLine(line: string, entries: ListEntries): boolean {
  const four = fourNumber(line);
  if (four !== undefined) {
    if (countEntry(entries)) {
      entries.singles.push(four);
      entries.addresses++;
    }
    return true;
  }
  if (line.length > NAME_CHARACTERS_MAX || !NAME.test(line)) return false;
  addName(entries, line);
  return true;
}

/** Returns false if the line is invalid. */
function parseLine(line: string, entries: ListEntries): boolean {
  const comment = line.search(/[#;]|\/\//);
  const content = comment < 0 ? line : line.slice(0, comment);
  const words = content.split(/[\s,"']+/).filter((word) => word !== "");
  const [first, ...others] = words;
  if (first === undefined) return true;
  const ends = SPACED_RANGE.exec(content.trim())?.slice(1).map(parseAddress);
  if (ends?.every((end) => end !== undefined)) return addEnds(entries, ends as [bigint, bigint], () => true);
  if (HOSTS_ADDRESSES.has(first) && others.length > 0) {
    const names = others.filter((word) => !HOSTS_NAMES.test(word)).map(normaliseName);
    for (const name of names) if (name !== undefined) addName(entries, name);
    return names.every((name) => name !== undefined);
  }
  const columns = [first, others[0] ?? ""].map(parseAddress);
  // Two adjacent addresses may mean anything, such as source and destination: only the bounds of a network are a range.
  if (columns.every((end) => end !== undefined)) return addEnds(entries, columns as [bigint, bigint], isNetwork);
  const range = parseRange(first);
  const name = range ? undefined : normaliseName(first.replace(/^\*?\./, ""));
  if (range) addRange(entries, range);
  else if (name !== undefined) addName(entries, name);
  return range !== undefined || name !== undefined;
}

/** Adds an address range; returns false if the bounds are not a valid range. */
function addEnds(
  entries: ListEntries,
  [from, to]: readonly [bigint, bigint],
  isRange: (range: AddressRange) => boolean,
): boolean {
  if (from > to || isFour(from) !== isFour(to) || !isRange({ from, to })) return false;
  addRange(entries, { from, to });
  return true;
}

export function isNetwork({ from, to }: AddressRange): boolean {
  const size = to - from + 1n;
  return (size & (size - 1n)) === 0n && from % size === 0n;
}

/** `192.0.2.1`, `192.0.2.0/24` or `192.0.2.1-192.0.2.9`. */
export function parseRange(text: string): AddressRange | undefined {
  const dash = text.indexOf("-");
  if (dash < 0) return parseCidr(text);
  const [from, to] = [parseAddress(text.slice(0, dash)), parseAddress(text.slice(dash + 1))];
  if (from === undefined || to === undefined || from > to || isFour(from) !== isFour(to)) return undefined;
  return { from, to };
}

/** The domain in its normalised form; undefined if it is not a domain. */
export function normaliseName(text: string): string | undefined {
  if (text.length > NAME_CHARACTERS_MAX * 4) return undefined;
  const plain = text.endsWith(".") ? text.slice(0, -1) : text;
  const name = /^[\0-\x7f]*$/.test(plain) ? plain.toLowerCase() : domainToASCII(plain);
  return name.length <= NAME_CHARACTERS_MAX && NAME.test(name) ? name : undefined;
}

export const isFour = (address: bigint) => address >= FOUR_START && address <= FOUR_END;

function addRange(entries: ListEntries, { from, to }: AddressRange): void {
  if (!countEntry(entries)) return;
  if (from === to) entries.addresses++;
  else entries.networks++;
  if (isFour(from) && isFour(to)) entries.four.push({ from: from - FOUR_START, to: to - FOUR_START });
  else entries.six.push({ from, to });
}

function addName(entries: ListEntries, name: string): void {
  if (entries.names.has(name) || !countEntry(entries)) return;
  entries.names.add(name);
}

function countEntry(entries: ListEntries): boolean {
  if (entries.addresses + entries.networks + entries.names.size < entries.max) return true;
  entries.leftOut++;
  return false;
}

const numbers = (length: number) => new Uint32Array(new SharedArrayBuffer(length * 4));

function tableOf({ singles, four, six, names }: ListEntries): ListTable {
  const fours = mergeIpv4(new Uint32Array(singles).sort(), four.sort(byStart));
  const fourFrom = numbers(fours.length / 2);
  const fourTo = numbers(fours.length / 2);
  for (let i = 0; i < fourFrom.length; i++) {
    fourFrom[i] = fours[2 * i]!;
    fourTo[i] = fours[2 * i + 1]!;
  }
  const sixes = mergeRanges(six.sort(byStart));
  const sixFrom = numbers(sixes.length * 4);
  const sixTo = numbers(sixes.length * 4);
  for (const [i, { from, to }] of sixes.entries()) {
    sixFrom.set(sixNumbers(from), i * 4);
    sixTo.set(sixNumbers(to), i * 4);
  }
  return { fourFrom, fourTo, sixFrom, sixTo, ...nameTable(names) };
}

const byStart = (a: AddressRange, b: AddressRange) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0);

/** Merges sorted addresses and sorted ranges into alternating starts and ends. */
function mergeIpv4(singles: Uint32Array, ranges: readonly AddressRange[]): number[] {
  const found: number[] = [];
  let next = 0;
  const add = (from: number, to: number) => {
    const last = found.length - 1;
    if (last < 0 || from > found[last]! + 1) found.push(from, to);
    else if (to > found[last]!) found[last] = to;
  };
  for (const single of singles) {
    for (; next < ranges.length && ranges[next]!.from <= single; next++)
      add(Number(ranges[next]!.from), Number(ranges[next]!.to));
    add(single, single);
  }
  for (; next < ranges.length; next++) add(Number(ranges[next]!.from), Number(ranges[next]!.to));
  return found;
}

function sixNumbers(address: bigint): Uint32Array {
  const numbers = new Uint32Array(4);
  for (let i = 0; i < 4; i++) numbers[i] = Number((address >> BigInt(96 - 32 * i)) & 0xffffffffn);
  return numbers;
}

/** Merges overlapping and adjacent ranges, which are sorted by their start. */
function mergeRanges(ranges: readonly AddressRange[]): AddressRange[] {
  const found: AddressRange[] = [];
  for (const range of ranges) {
    const last = found.at(-1);
    if (!last || range.from > last.to + 1n) found.push(range);
    else if (range.to > last.to) found[found.length - 1] = { from: last.from, to: range.to };
  }
  return found;
}

function nameTable(names: ReadonlySet<string>): Pick<ListTable, "names" | "nameEnds" | "nameSlots"> {
  let characters = 0;
  for (const name of names) characters += name.length;
  const bytes = new Uint8Array(new SharedArrayBuffer(characters));
  const nameEnds = numbers(names.size);
  const nameSlots = numbers(2 ** Math.ceil(Math.log2(Math.max(2, names.size * 2))));
  let at = 0;
  let number = 0;
  for (const name of names) {
    for (let i = 0; i < name.length; i++) bytes[at++] = name.charCodeAt(i);
    nameEnds[number++] = at;
    let slot = mixName(hashName(name), nameSlots.length);
    while (nameSlots[slot] !== 0) slot = (slot + 1) & (nameSlots.length - 1);
    nameSlots[slot] = number;
  }
  return { names: bytes, nameEnds, nameSlots };
}
