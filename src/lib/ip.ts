import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** An address as 128 bits, IPv4 in its mapped place, so that two spellings of one address are one number. */
export function parseAddress(text: string): bigint | undefined {
  const four = fourNumber(text);
  if (four !== undefined) return FIRST_MAPPED + BigInt(four);
  const groups = sixGroups(text);
  if (groups) return groupsNumber(groups);
  // isIP first: ipaddr.js also takes octal, hexadecimal and short forms that no log means as an address.
  if (isIP(text) === 0) return undefined;
  const parsed = parse(text);
  return (parsed.kind() === "ipv4" ? FIRST_MAPPED : 0n) + toNumber(parsed.toByteArray());
}
const FIRST_MAPPED = 0xffff00000000n;

function groupsNumber(groups: Uint16Array): bigint {
  let value = 0n;
  for (let i = 0; i < 8; i += 2) value = (value << 32n) | BigInt(groups[i]! * 0x10000 + groups[i + 1]!);
  return value;
}

/** The one spelling of an address: dotted IPv4 (mapped IPv4 included), RFC 5952 for IPv6. */
export function canonicalAddress(text: string): string | undefined {
  if (isIP(text) === 0) return undefined;
  const parsed = parse(text);
  return parsed.kind() === "ipv4" ? parsed.toString() : (parsed as ipaddr.IPv6).toRFC5952String();
}

/** ipaddr.js takes `::8.8.8.8` for `::ffff:8.8.8.8`, although it is `::808:808` everywhere else. */
const COMPATIBLE = /^::\d+\./;

function parse(text: string): ipaddr.IPv4 | ipaddr.IPv6 {
  const zone = text.indexOf("%");
  const address = zone < 0 ? text : text.slice(0, zone);
  return ipaddr.process(COMPATIBLE.test(address) ? `0${address}` : address);
}

/** A dotted IPv4 address as a number; undefined for anything else. Quick: it makes nothing on the way. */
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
    // A leading zero is octal to some and decimal to others: no address.
    if (code < ZERO || code > NINE || (digits > 0 && part === 0) || digits === 3) return undefined;
    part = part * 10 + code - ZERO;
    digits++;
  }
  return dots === 4 ? value : undefined;
}
const [DOT, ZERO, NINE] = [46, 48, 57];

/** The eight groups of an IPv6 address in hexadecimal alone; undefined for other spellings, and for anything else. */
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

/** Groups of an IPv6 address, of 16 bits each, that are the network: a house has one, and its owner all that is in it. */
const NETWORK_GROUPS = 4;

/** The network of an IPv6 address, by which those are told apart who have as many addresses as they like; undefined for any other. */
export function sixNetwork(text: string): string | undefined {
  return sixGroups(text.split("%", 1)[0]!)?.subarray(0, NETWORK_GROUPS).join(":");
}

const MAPPED = 0xffffn;

/** What limits count as one client: an IPv4 address, or an IPv6 /64, since one host may use any address of its own. */
export function clientNetwork(address: string): string {
  if (fourNumber(address) !== undefined) return address;
  const canonical = canonicalAddress(address) ?? address;
  const network = sixNetwork(canonical);
  return network === undefined ? canonical : `${network}::/64`;
}

/** An address of this machine: a local program, or a local proxy that speaks for many clients. */
export function isLoopback(address: string): boolean {
  const value = parseAddress(address);
  if (value === undefined) return false;
  return value === 1n || (value >> 32n === MAPPED && ((value >> 24n) & 0xffn) === 127n);
}

/** The one spelling of an address that is a number, as parseAddress makes them. */
export function formatAddress(value: bigint): string {
  if (value >> 32n === MAPPED) {
    const four = Number(value & 0xffffffffn);
    return `${four >>> 24}.${(four >>> 16) & 255}.${(four >>> 8) & 255}.${four & 255}`;
  }
  const groups = new Uint16Array(8);
  for (let i = 0; i < 8; i++) groups[i] = Number((value >> BigInt(112 - 16 * i)) & 0xffffn);
  return formatGroups(groups);
}

/** The one spelling of an IPv6 address that is no IPv4 address in disguise. */
export function formatGroups(numbers: Uint16Array): string {
  const groups = Array.from(numbers, (group) => group.toString(16));
  const zeros = longestZeros(groups);
  if (zeros.length < 2) return groups.join(":");
  return `${groups.slice(0, zeros.start).join(":")}::${groups.slice(zeros.start + zeros.length).join(":")}`;
}

/** RFC 5952 shortens the longest run of zero groups, the first of equally long ones. */
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

/** An address as 16 bytes, IPv4 in its mapped place. The text must be one. */
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

/** Whether the text is an address in one of these. */
export function isInRanges(ranges: readonly AddressRange[], text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && ranges.some((range) => rangeHolds(range, address));
}

/** IPv4 has its place within IPv6, but a network that is wider than this place is one of IPv6: ::/0 holds no IPv4. */
export function rangeHolds({ from, to }: AddressRange, address: bigint): boolean {
  return address >= from && address <= to && (address >> 32n !== MAPPED || from >> 32n === MAPPED);
}

function toNumber(bytes: number[]): bigint {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return value;
}
