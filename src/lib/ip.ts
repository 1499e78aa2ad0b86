import { isIP } from "node:net";

// Parsing and formatting of IP addresses. Octal, hexadecimal and short forms are not addresses: logs do not use them.

/** An address as 128 bits, IPv4 as mapped IPv6, so that all spellings of an address give one number. */
export function parseAddress(text: string): bigint | undefined {
  const four = fourNumber(text);
  if (four !== undefined) return FIRST_MAPPED + BigInt(four);
  const groups = parseSix(text);
  return groups && groupsNumber(groups);
}
const FIRST_MAPPED = 0xffff00000000n;

function groupsNumber(groups: Uint16Array): bigint {
  let value = 0n;
  for (let i = 0; i < 8; i += 2) value = (value << 32n) | BigInt(groups[i]! * 0x10000 + groups[i + 1]!);
  return value;
}

/** The canonical spelling of an address: dotted for IPv4, also where it is mapped; RFC 5952 for IPv6. */
export function canonicalAddress(text: string): string | undefined {
  if (fourNumber(text) !== undefined) return text;
  const groups = parseSix(text);
  if (groups === undefined) return undefined;
  return isMapped(groups) ? formatFour(groups[6]! * 0x10000 + groups[7]!) : formatGroups(groups);
}

function isMapped(groups: Uint16Array): boolean {
  return groups[5] === 0xffff && groups.subarray(0, 5).every((group) => group === 0);
}

/** The groups of an IPv6 address in any spelling: with a zone, or with a dotted IPv4 address at its end. */
function parseSix(text: string): Uint16Array | undefined {
  const zoneAt = text.indexOf("%");
  if (zoneAt >= 0 && isIP(text) === 0) return undefined;
  const address = zoneAt < 0 ? text : text.slice(0, zoneAt);
  if (!address.includes(".")) return sixGroups(address);
  const tailAt = address.lastIndexOf(":") + 1;
  const four = fourNumber(address.slice(tailAt));
  if (tailAt === 0 || four === undefined) return undefined;
  return sixGroups(`${address.slice(0, tailAt)}${(four >>> 16).toString(16)}:${(four & 0xffff).toString(16)}`);
}

/** A dotted IPv4 address as a number; undefined for anything else. It allocates nothing. */
export function fourNumber(text: string): number | undefined {
  let value = 0;
  let part = 0;
  let digits = 0;
  let dots = 0;
  for (let i = 0; i <= text.length; i++) {
    const code = i < text.length ? text.charCodeAt(i) : DOT;
    if (code === DOT) {
      if (digits === 0 || part > 255) return undefined;
      value = value * 256 + part;
      part = digits = 0;
      dots++;
      continue;
    }
    // A leading zero is ambiguous, octal or decimal: not an address.
    if (code < ZERO || code > NINE || (digits > 0 && part === 0) || digits === 3) return undefined;
    part = part * 10 + code - ZERO;
    digits++;
  }
  return dots === 4 ? value : undefined;
}
const [DOT, ZERO, NINE] = [46, 48, 57];

/** The eight groups of an IPv6 address in plain hexadecimal; undefined for any other text. */
export function sixGroups(text: string): Uint16Array | undefined {
  if (isIP(text) !== 6) return undefined;
  const groups = new Uint16Array(8);
  let count = 0;
  let gapAt = -1;
  let value = 0;
  let digits = 0;
  for (let i = 0; i <= text.length; i++) {
    const code = i < text.length ? text.charCodeAt(i) : COLON;
    if (code === COLON) {
      if (digits > 0) groups[count++] = value;
      value = digits = 0;
      if (i + 1 < text.length && text.charCodeAt(i + 1) === COLON) gapAt = count;
      continue;
    }
    const digit = code <= NINE ? code - ZERO : (code | 32) - LETTER_A + 10;
    if (digit < 0 || digit > 15) return undefined;
    value = value * 16 + digit;
    digits++;
  }
  if (gapAt >= 0) {
    groups.copyWithin(8 - (count - gapAt), gapAt, count);
    groups.fill(0, gapAt, 8 - (count - gapAt));
  }
  return groups;
}
const [COLON, LETTER_A] = [58, 97];

/** The /64 network in groups of 16 bits: one site has it, and may use every address in it. */
const NETWORK_GROUPS = 4;

/** The /64 network of an IPv6 address, which identifies a host that may use any address in it; undefined for other texts. */
export function sixNetwork(text: string): string | undefined {
  return sixGroups(text.split("%", 1)[0]!)?.subarray(0, NETWORK_GROUPS).join(":");
}

const MAPPED = 0xffffn;

/** The unit that limits count as one client: an IPv4 address, or an IPv6 /64. */
export function clientNetwork(address: string): string {
  if (fourNumber(address) !== undefined) return address;
  const canonical = canonicalAddress(address) ?? address;
  const network = sixNetwork(canonical);
  return network === undefined ? canonical : `${network}::/64`;
}

/** Loopback: a local program, or a local proxy that serves many clients. */
export function isLoopback(address: string): boolean {
  const value = parseAddress(address);
  if (value === undefined) return false;
  return value === 1n || (value >> 32n === MAPPED && ((value >> 24n) & 0xffn) === 127n);
}

/** The canonical spelling of a number from parseAddress. */
export function formatAddress(value: bigint): string {
  if (value >> 32n === MAPPED) {
    return formatFour(Number(value & 0xffffffffn));
  }
  const groups = new Uint16Array(8);
  for (let i = 0; i < 8; i++) groups[i] = Number((value >> BigInt(112 - 16 * i)) & 0xffffn);
  return formatGroups(groups);
}

function formatFour(value: number): string {
  return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
}

/** The canonical spelling of an IPv6 address that is not a mapped IPv4 address. */
export function formatGroups(numbers: Uint16Array): string {
  const groups = Array.from(numbers, (group) => group.toString(16));
  const zeros = longestZeros(groups);
  if (zeros.length < 2) return groups.join(":");
  return `${groups.slice(0, zeros.start).join(":")}::${groups.slice(zeros.start + zeros.length).join(":")}`;
}

/** RFC 5952 shortens the longest run of zero groups, or the first of several. */
function longestZeros(groups: readonly string[]): { start: number; length: number } {
  let longest = { start: 0, length: 0 };
  let length = 0;
  for (const [index, group] of groups.entries()) {
    length = group === "0" ? length + 1 : 0;
    if (length > longest.length) longest = { start: index - length + 1, length };
  }
  return longest;
}

export interface AddressRange {
  readonly from: bigint;
  readonly to: bigint;
}

/** An address as 16 bytes, IPv4 as mapped IPv6. The text must be an address. */
export function addressBytes(text: string): Uint8Array {
  let value = parseAddress(text)!;
  const bytes = new Uint8Array(16);
  for (let index = 15; index >= 0; index--, value >>= 8n) bytes[index] = Number(value & 0xffn);
  return bytes;
}

/** `10.0.0.0/8`, `2001:db8::/32`, or a single address. */
export function parseCidr(text: string): AddressRange | undefined {
  const slash = text.indexOf("/");
  const address = slash < 0 ? text : text.slice(0, slash);
  const family = isIP(address);
  const base = parseAddress(address);
  if (base === undefined) return undefined;
  if (slash < 0) return { from: base, to: base };
  const bits = text.slice(slash + 1);
  if (!/^(0|[1-9]\d{0,2})$/.test(bits)) return undefined;
  const length = Number(bits);
  if (length > (family === 4 ? 32 : 128)) return undefined;
  const free = BigInt((family === 4 ? 32 : 128) - length);
  const from = (base >> free) << free;
  return { from, to: from + (1n << free) - 1n };
}

/** True for an address in one of the ranges; false for any other text. */
export function isInRanges(ranges: readonly AddressRange[], text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && ranges.some((range) => rangeHolds(range, address));
}

/** IPv4 addresses are mapped into IPv6, but a network wider than that mapping is IPv6 only: ::/0 holds no IPv4. */
export function rangeHolds({ from, to }: AddressRange, address: bigint): boolean {
  return address >= from && address <= to && (address >> 32n !== MAPPED || from >> 32n === MAPPED);
}
