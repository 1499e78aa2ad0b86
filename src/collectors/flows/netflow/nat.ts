import {
  MAPPED_WORD,
  NAT_DST_WORD,
  NAT_PORTS_WORD,
  NAT_SRC_WORD,
  NAT_WORDS,
  type RecordBatch,
} from "../flow-records.ts";
import {
  NAT_DST_IPV4,
  NAT_DST_IPV6,
  NAT_DST_PORT,
  NAT_EVENT,
  NAT_SRC_IPV4,
  NAT_SRC_IPV6,
  NAT_SRC_PORT,
} from "./netflow-fields.ts";
import type { RecordTemplate } from "./record-template.ts";
import { copyAddress, isZero, readNumber } from "./netflow-values.ts";

// NAT: addresses and ports after translation.

interface NatSide {
  readonly ipv4: number;
  readonly ipv6: number;
  readonly port: number;
  /** The offset of the side's address within a translation. */
  readonly word: number;
}

const SOURCE: NatSide = { ipv4: NAT_SRC_IPV4, ipv6: NAT_SRC_IPV6, port: NAT_SRC_PORT, word: NAT_SRC_WORD };
const DESTINATION: NatSide = { ipv4: NAT_DST_IPV4, ipv6: NAT_DST_IPV6, port: NAT_DST_PORT, word: NAT_DST_WORD };
const UNCHANGED = -1;

/** Reads the translation into the record's row, which must already have its addresses and ports. */
export function readNat(view: DataView, at: number, template: RecordTemplate, batch: RecordBatch, row: number): void {
  const ports = batch.ports[row]!;
  const srcPort = readSide(view, at, template, SOURCE, batch.nat, row, batch.src, ports >>> 16);
  const dstPort = readSide(view, at, template, DESTINATION, batch.nat, row, batch.dst, ports & 0xffff);
  if (srcPort === UNCHANGED && dstPort === UNCHANGED) return;
  batch.isTranslated[row] = 1;
  batch.nat[row * NAT_WORDS + NAT_PORTS_WORD] = ((Math.max(0, srcPort) << 16) | Math.max(0, dstPort)) >>> 0;
}

/** Returns the port, or 0 if it is not reported. For an untranslated side it sets the address to zeros and returns UNCHANGED. */
function readSide(
  view: DataView,
  at: number,
  { offsets, lengths }: RecordTemplate,
  side: NatSide,
  nat: Uint32Array,
  row: number,
  original: Uint32Array,
  originalPort: number,
): number {
  const words = row * NAT_WORDS + side.word;
  const [ipv4, ipv6, portOffset] = [offsets[side.ipv4]!, offsets[side.ipv6]!, offsets[side.port]!];
  copyAddress(view, ipv6 < 0 ? -1 : at + ipv6, nat, words);
  // Exporters fill an unused address with zeros: of an untranslated side, or of the other IP version.
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

/** Sets the translation of the reverse flow: source and destination are swapped. */
export function swapNat(forward: Uint32Array, batch: RecordBatch, row: number): void {
  const at = row * NAT_WORDS;
  batch.isTranslated[row] = 1;
  batch.nat.set(forward.subarray(NAT_SRC_WORD, NAT_SRC_WORD + 4), at + NAT_DST_WORD);
  batch.nat.set(forward.subarray(NAT_DST_WORD, NAT_DST_WORD + 4), at + NAT_SRC_WORD);
  const ports = forward[NAT_PORTS_WORD]!;
  batch.nat[at + NAT_PORTS_WORD] = ((ports << 16) | (ports >>> 16)) >>> 0;
}

/** True for a record of a NAT event, which is kept even if its counters are zero. */
export function isNatEvent(view: DataView, at: number, { offsets, lengths }: RecordTemplate): boolean {
  const offset = offsets[NAT_EVENT]!;
  return offset >= 0 && readNumber(view, at + offset, lengths[NAT_EVENT]!) !== 0;
}
