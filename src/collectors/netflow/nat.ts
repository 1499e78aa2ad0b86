import { MAPPED_WORD, NAT_DST_WORD, NAT_PORTS_WORD, NAT_SRC_WORD, NAT_WORDS, type RecordBatch } from "../records.ts";
import {
  NAT_DST_IPV4,
  NAT_DST_IPV6,
  NAT_DST_PORT,
  NAT_EVENT,
  NAT_SRC_IPV4,
  NAT_SRC_IPV6,
  NAT_SRC_PORT,
} from "./fields.ts";
import type { Template } from "./template.ts";
import { copyAddress, isZero, readNumber } from "./values.ts";

// Where a gateway translates addresses: both ends as they are on its far side.

interface Side {
  readonly ipv4: number;
  readonly ipv6: number;
  readonly port: number;
  /** Where the side's address lies within the words of a translation. */
  readonly word: number;
}

const SOURCE: Side = { ipv4: NAT_SRC_IPV4, ipv6: NAT_SRC_IPV6, port: NAT_SRC_PORT, word: NAT_SRC_WORD };
const DESTINATION: Side = { ipv4: NAT_DST_IPV4, ipv6: NAT_DST_IPV6, port: NAT_DST_PORT, word: NAT_DST_WORD };
const UNCHANGED = -1;

/** Reads the translation into the record's row, whose own addresses and ports must be there already. */
export function readNat(view: DataView, at: number, template: Template, batch: RecordBatch, row: number): void {
  const ports = batch.ports[row]!;
  const srcPort = readSide(view, at, template, SOURCE, batch.nat, row, batch.src, ports >>> 16);
  const dstPort = readSide(view, at, template, DESTINATION, batch.nat, row, batch.dst, ports & 0xffff);
  if (srcPort === UNCHANGED && dstPort === UNCHANGED) return;
  batch.isTranslated[row] = 1;
  batch.nat[row * NAT_WORDS + NAT_PORTS_WORD] = ((Math.max(0, srcPort) << 16) | Math.max(0, dstPort)) >>> 0;
}

/** Gives the port, 0 where it is not told; UNCHANGED, and zeros for the address, where the side stays as it was. */
function readSide(
  view: DataView,
  at: number,
  { offsets, lengths }: Template,
  side: Side,
  nat: Uint32Array,
  row: number,
  original: Uint32Array,
  originalPort: number,
): number {
  const words = row * NAT_WORDS + side.word;
  const [ipv4, ipv6, portOffset] = [offsets[side.ipv4]!, offsets[side.ipv6]!, offsets[side.port]!];
  copyAddress(view, ipv6 < 0 ? -1 : at + ipv6, nat, words);
  // Exporters fill what they do not translate, or translate to the other IP version, with zeros.
  const four = ipv4 < 0 ? 0 : view.getUint32(at + ipv4, true);
  if (four !== 0 && isZero(nat, words)) {
    nat[words + 2] = MAPPED_WORD;
    nat[words + 3] = four;
  }
  const port = portOffset < 0 ? 0 : readNumber(view, at + portOffset, lengths[side.port]!) & 0xffff;
  const isPortKept = port === 0 || port === originalPort;
  if (isZero(nat, words)) {
    if (isPortKept) return UNCHANGED;
    for (let word = 0; word < 4; word++) nat[words + word] = original[row * 4 + word]!;
    return port;
  }
  if (!isPortKept) return port;
  for (let word = 0; word < 4; word++) if (nat[words + word] !== original[row * 4 + word]) return port;
  nat.fill(0, words, words + 4);
  return UNCHANGED;
}

/** The translation of the way there, for the way back: source and destination change places. */
export function swapNat(forward: Uint32Array, batch: RecordBatch, row: number): void {
  const at = row * NAT_WORDS;
  batch.isTranslated[row] = 1;
  batch.nat.set(forward.subarray(NAT_SRC_WORD, NAT_SRC_WORD + 4), at + NAT_DST_WORD);
  batch.nat.set(forward.subarray(NAT_DST_WORD, NAT_DST_WORD + 4), at + NAT_SRC_WORD);
  const ports = forward[NAT_PORTS_WORD]!;
  batch.nat[at + NAT_PORTS_WORD] = ((ports << 16) | (ports >>> 16)) >>> 0;
}

/** The record is about a translation that was made or ended: it stands for itself, whatever its counters say. */
export function tellsNatEvent(view: DataView, at: number, { offsets, lengths }: Template): boolean {
  const offset = offsets[NAT_EVENT]!;
  return offset >= 0 && readNumber(view, at + offset, lengths[NAT_EVENT]!) !== 0;
}
