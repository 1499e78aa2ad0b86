import { NO_PACKET, readEthernet, readIp } from "../frame.ts";
import type { Packet } from "../packet.ts";
import {
  exactCounter,
  MAPPED_WORD,
  NAT_WORDS,
  scaleCounter,
  setCounter,
  setExactCounter,
  type RecordBatch,
} from "../records.ts";
import type { Domain } from "./domain.ts";
import {
  BYTES,
  DIRECTION,
  DST_IPV4,
  DST_IPV6,
  DST_PORT,
  DURATION,
  END,
  FLOW_ID,
  FRAME_BYTES,
  FRAME_SECTION,
  ICMP,
  ICMP_CODE,
  ICMP_TYPE,
  IP_SECTION,
  PACKETS,
  PROTOCOL,
  REVERSE_BYTES,
  REVERSE_END,
  REVERSE_FLAGS,
  REVERSE_PACKETS,
  REVERSE_START,
  SAMPLER,
  SAMPLING_INTERVAL,
  SAMPLING_PACKETS,
  SAMPLING_POPULATION,
  SAMPLING_PROBABILITY,
  SAMPLING_SIZE,
  SAMPLING_SPACE,
  SRC_IPV4,
  SRC_IPV6,
  SRC_PORT,
  START,
  STATION_IPV4,
  SYSTEM_START,
  TCP_FLAGS,
  TIME_BEFORE_EXPORT,
  TIME_MICROSECONDS,
  TIME_MILLISECONDS,
  TIME_NTP,
  TIME_SECONDS,
  TIME_UPTIME,
} from "./fields.ts";
import { readNat, swapNat, tellsNatEvent } from "./nat.ts";
import type { CounterTotals, Template } from "./template.ts";
import { copyAddress, isZero, readNumber } from "./values.ts";

// One record of v9 or IPFIX, read by the plan of its template.

const EGRESS = 1;
const ICMP_PROTOCOL = 1;
const ICMPV6_PROTOCOL = 58;
const WORD = 2 ** 32;
/** Seconds from 1900, where NTP counts from, to 1970; and the seconds of an era of NTP. */
const NTP_OFFSET = 2_208_988_800;
const RATE_MAX = WORD - 1;

/**
 * Reads a flow, and its way back where the record holds one; a side that sent nothing is left out. False where it has no address
 * to be stored under. `setRate` is the rate of all records of the set, or below zero where each has its own.
 */
export function readFlow(packet: Packet, domain: Domain, template: Template, at: number, setRate: number): boolean {
  const { view, batch } = packet;
  const { offsets, totals } = template;
  const row = batch.next();
  const isAddressed = readAddresses(view, at, offsets, batch, row);
  const packetBytes = isAddressed ? 0 : readSection(view, at, template, batch, row);
  if (packetBytes === NO_PACKET) {
    batch.count--;
    return false;
  }
  batch.exporter[row] = packet.exporter.index;
  batch.version[row] = packet.version;
  if (isAddressed) readEnds(view, at, template, batch, row);
  if (template.hasNat) readNat(view, at, template, batch, row);
  readCounter(view, at, BYTES, template, batch.bytes, row);
  readCounter(view, at, PACKETS, template, batch.packets, row);
  if (!isAddressed) {
    if (offsets[BYTES]! < 0) setCounter(batch.bytes, row, packetBytes);
    if (offsets[PACKETS]! < 0) setCounter(batch.packets, row, 1);
  }

  const endMs = readTime(packet, domain, template, at, END);
  const startMs = readTime(packet, domain, template, at, START);
  setTimes(packet, template, at, row, startMs, endMs);

  subtractReported(packet, template, totals, at, row, "");
  const rate = setRate < 0 ? rateOf(view, at, template, domain) : setRate;
  if (rate !== 1) {
    scaleCounter(batch.bytes, row, rate);
    scaleCounter(batch.packets, row, rate);
    packet.exporter.samplingRate = rate;
  }
  // A record that counts nothing may still tell of something: an attempt that was refused, or a translation. One side of a
  // connection, or a report that adds nothing to the last one, does not.
  const isEmpty =
    (template.hasReverse || totals.bytes || totals.packets) &&
    isNothing(batch, row) &&
    !tellsNatEvent(view, at, template);
  if (template.hasReverse) readReverse(packet, domain, template, at, row, rate, isEmpty);
  else if (isEmpty) batch.count--;
  return true;
}

function isNothing({ bytes, packets }: RecordBatch, row: number): boolean {
  return (bytes[row * 2]! | bytes[row * 2 + 1]! | packets[row * 2]! | packets[row * 2 + 1]!) === 0;
}

/** Protocol, ports and flags. */
function readEnds(view: DataView, at: number, template: Template, batch: RecordBatch, row: number): void {
  const { offsets, lengths } = template;
  const protocol = offsets[PROTOCOL]! < 0 ? 0 : readNumber(view, at + offsets[PROTOCOL]!, lengths[PROTOCOL]!);
  batch.protocol[row] = protocol;
  const srcPort = offsets[SRC_PORT]! < 0 ? 0 : readNumber(view, at + offsets[SRC_PORT]!, lengths[SRC_PORT]!);
  let dstPort = offsets[DST_PORT]! < 0 ? 0 : readNumber(view, at + offsets[DST_PORT]!, lengths[DST_PORT]!);
  if ((protocol === ICMP_PROTOCOL || protocol === ICMPV6_PROTOCOL) && srcPort === 0 && dstPort === 0) {
    dstPort = readIcmp(view, at, template);
  }
  batch.ports[row] = ((srcPort << 16) | (dstPort & 0xffff)) >>> 0;
  batch.tcpFlags[row] =
    offsets[TCP_FLAGS]! < 0 ? 0 : readNumber(view, at + offsets[TCP_FLAGS]!, lengths[TCP_FLAGS]!) & 0xffff;
}

/** Ends and length of a packet whose beginning the record holds; NO_PACKET where it holds none, or nothing of IP. */
function readSection(view: DataView, at: number, template: Template, batch: RecordBatch, row: number): number {
  const { offsets, lengths } = template;
  const frame = offsets[FRAME_SECTION]!;
  if (frame >= 0) {
    const end = at + frame + lengths[FRAME_SECTION]!;
    const told = offsets[FRAME_BYTES]!;
    const frameBytes = told < 0 ? lengths[FRAME_SECTION]! : readNumber(view, at + told, lengths[FRAME_BYTES]!);
    return readEthernet(view, at + frame, end, frameBytes, batch, row);
  }
  const ip = offsets[IP_SECTION]!;
  if (ip < 0) return NO_PACKET;
  return readIp(view, at + ip, at + ip + lengths[IP_SECTION]!, lengths[IP_SECTION]!, batch, row);
}

function readAddresses(
  view: DataView,
  at: number,
  offsets: readonly number[],
  batch: RecordBatch,
  row: number,
): boolean {
  const { src, dst } = batch;
  const words = row * 4;
  const src6 = offsets[SRC_IPV6]!;
  const dst6 = offsets[DST_IPV6]!;
  let src4 = offsets[SRC_IPV4]!;
  let dst4 = offsets[DST_IPV4]!;
  const v6 = src6 >= 0 || dst6 >= 0;
  const v4 = src4 >= 0 || dst4 >= 0;
  if (v6) {
    copyAddress(view, src6 < 0 ? -1 : at + src6, src, words);
    copyAddress(view, dst6 < 0 ? -1 : at + dst6, dst, words);
    // A template with both kinds fills the one that the flow is not of with zeros.
    if (!v4 || !(isZero(src, words) && isZero(dst, words))) return true;
  }
  if (!v4) {
    const station = offsets[STATION_IPV4]!;
    if (station < 0) return false;
    if (offsets[DIRECTION]! >= 0 && view.getUint8(at + offsets[DIRECTION]!) === EGRESS) dst4 = station;
    else src4 = station;
  }
  src[words] = 0;
  src[words + 1] = 0;
  src[words + 2] = MAPPED_WORD;
  src[words + 3] = src4 < 0 ? 0 : view.getUint32(at + src4, true);
  dst[words] = 0;
  dst[words + 1] = 0;
  dst[words + 2] = MAPPED_WORD;
  dst[words + 3] = dst4 < 0 ? 0 : view.getUint32(at + dst4, true);
  return true;
}

/** Type and code stand where the destination port would, as every exporter without a field for them has it. */
function readIcmp(view: DataView, at: number, { offsets, lengths }: Template): number {
  if (offsets[ICMP]! >= 0) return readNumber(view, at + offsets[ICMP]!, lengths[ICMP]!) & 0xffff;
  if (offsets[ICMP_TYPE]! < 0) return 0;
  const type = readNumber(view, at + offsets[ICMP_TYPE]!, lengths[ICMP_TYPE]!) & 0xff;
  const code = offsets[ICMP_CODE]! < 0 ? 0 : readNumber(view, at + offsets[ICMP_CODE]!, lengths[ICMP_CODE]!) & 0xff;
  return (type << 8) | code;
}

function readCounter(
  view: DataView,
  at: number,
  place: number,
  { offsets, lengths }: Template,
  counters: Uint32Array,
  row: number,
): void {
  const offset = offsets[place]!;
  let low = 0;
  let high = 0;
  if (offset >= 0) {
    const length = lengths[place]!;
    if (length === 4) low = view.getUint32(at + offset);
    else if (length === 8) {
      high = view.getUint32(at + offset);
      low = view.getUint32(at + offset + 4);
    } else {
      for (let index = 0; index < length; index++) {
        high = ((high << 8) | (low >>> 24)) >>> 0;
        low = ((low << 8) | view.getUint8(at + offset + index)) >>> 0;
      }
    }
  }
  counters[row * 2] = low;
  counters[row * 2 + 1] = high;
}

/** Milliseconds since 1970; NaN where the record does not say. */
function readTime(packet: Packet, domain: Domain, template: Template, at: number, place: number): number {
  const offset = template.offsets[place]!;
  if (offset < 0) return Number.NaN;
  const { view } = packet;
  const length = template.lengths[place]!;
  const value = readNumber(view, at + offset, length);
  switch (template.times[place]!) {
    case TIME_MILLISECONDS:
      return value;
    case TIME_UPTIME:
      return readUptime(packet, domain, template, at, value);
    case TIME_SECONDS:
      return value * 1000;
    case TIME_NTP: {
      const seconds = view.getUint32(at + offset);
      const since = seconds >= NTP_OFFSET ? seconds - NTP_OFFSET : seconds + WORD - NTP_OFFSET;
      return since * 1000 + Math.floor((view.getUint32(at + offset + 4) * 1000) / WORD);
    }
    case TIME_BEFORE_EXPORT:
      return packet.exportMs - value / 1000;
    default:
      return Number.NaN;
  }
}

/** Uptime is a count of milliseconds that begins anew every 49.7 days; the turn nearest to the export is meant. */
function readUptime(packet: Packet, domain: Domain, template: Template, at: number, value: number): number {
  if (packet.uptimeMs >= 0) return packet.exportMs + ((value - packet.uptimeMs) | 0);
  const offset = template.offsets[SYSTEM_START]!;
  const systemStartMs =
    offset < 0 ? domain.systemStartMs : readNumber(packet.view, at + offset, template.lengths[SYSTEM_START]!);
  if (systemStartMs === undefined) return Number.NaN;
  const told = systemStartMs + value;
  return told + Math.round((packet.exportMs - told) / WORD) * WORD;
}

function setTimes(packet: Packet, template: Template, at: number, row: number, startMs: number, endMs: number): void {
  let start = startMs;
  let end = endMs;
  const offset = template.offsets[DURATION]!;
  if (offset >= 0 && (Number.isNaN(start) || Number.isNaN(end))) {
    const value = readNumber(packet.view, at + offset, template.lengths[DURATION]!);
    const duration = template.times[DURATION] === TIME_MICROSECONDS ? value / 1000 : value;
    if (!Number.isNaN(start)) end = start + duration;
    else {
      if (Number.isNaN(end)) end = packet.exportMs;
      start = end - duration;
    }
  }
  if (Number.isNaN(end)) end = Number.isNaN(start) ? packet.exportMs : start;
  if (Number.isNaN(start)) start = end;
  packet.setTimes(row, start, end);
}

/** The rate of every record of a template; below zero where records tell it themselves or name a sampler. */
export function rateOfAll({ offsets, varying }: Template, domain: Domain): number {
  const tells =
    varying !== null ||
    offsets[SAMPLER]! >= 0 ||
    offsets[SAMPLING_INTERVAL]! >= 0 ||
    offsets[SAMPLING_PACKETS]! >= 0 ||
    offsets[SAMPLING_POPULATION]! >= 0 ||
    offsets[SAMPLING_PROBABILITY]! >= 0;
  return tells ? -1 : domain.rateOf(undefined);
}

/** The rate that the record itself tells, else the one that the exporter told for its domain. */
function rateOf(view: DataView, at: number, template: Template, domain: Domain): number {
  const { offsets, lengths } = template;
  const own = readRate(view, at, template);
  if (own !== undefined && own > 0) return own;
  const sampler = offsets[SAMPLER]!;
  return domain.rateOf(sampler < 0 ? undefined : readNumber(view, at + sampler, lengths[SAMPLER]!));
}

/** One packet in so many was looked at; undefined where nothing is said, 0 where what is said makes no sense. */
function readRate(view: DataView, at: number, { offsets, lengths }: Template): number | undefined {
  const read = (place: number) =>
    offsets[place]! < 0 ? undefined : readNumber(view, at + offsets[place]!, lengths[place]!);
  let rate: number | undefined;
  if (offsets[SAMPLING_PACKETS]! >= 0 && offsets[SAMPLING_SPACE]! >= 0) {
    const taken = read(SAMPLING_PACKETS)!;
    rate = (taken + read(SAMPLING_SPACE)!) / taken;
  } else if (offsets[SAMPLING_SIZE]! >= 0 && offsets[SAMPLING_POPULATION]! >= 0) {
    rate = read(SAMPLING_POPULATION)! / read(SAMPLING_SIZE)!;
  } else if (offsets[SAMPLING_PROBABILITY]! >= 0) {
    rate = 1 / view.getFloat64(at + offsets[SAMPLING_PROBABILITY]!);
  } else {
    // With 305 alone, one packet in so many is taken.
    rate = read(SAMPLING_INTERVAL) ?? read(SAMPLING_PACKETS);
  }
  if (rate === undefined) return undefined;
  return rate >= 1 && rate <= RATE_MAX ? rate : 0;
}

/** What options tell about their domain: the sampling rate, and when uptime began. */
export function readOptions(packet: Packet, domain: Domain, template: Template, at: number): void {
  const { view } = packet;
  const { offsets, lengths } = template;
  if (offsets[SYSTEM_START]! >= 0) {
    domain.systemStartMs = readNumber(view, at + offsets[SYSTEM_START]!, lengths[SYSTEM_START]!);
  }
  const rate = readRate(view, at, template);
  if (rate === undefined) return;
  const sampler = offsets[SAMPLER]!;
  domain.setRate(sampler < 0 ? undefined : readNumber(view, at + sampler, lengths[SAMPLER]!), rate || 1);
}

/**
 * Counters that count from the flow's beginning are told again with every report of it: what was told before is taken off. A flow
 * is known by its ends, its id and its beginning, as the exporter tells them: its clock may be off, and corrected differently
 * with each packet.
 */
function subtractReported(
  packet: Packet,
  template: Template,
  totals: CounterTotals,
  at: number,
  row: number,
  side: string,
): void {
  if (!totals.bytes && !totals.packets) return;
  const { batch, view } = packet;
  const { offsets, lengths, times } = template;
  const told = (place: number) => (offsets[place]! < 0 ? 0 : readNumber(view, at + offsets[place]!, lengths[place]!));
  // How long before the export is another number each time.
  const start = times[START] === TIME_BEFORE_EXPORT ? 0 : told(START);
  const words = row * 4;
  const { src, dst } = batch;
  const key = `${side}${packet.exporter.index} ${told(FLOW_ID)} ${start} ${batch.ports[row]!} ${batch.protocol[row]!} ${src.subarray(words, words + 4).join()} ${dst.subarray(words, words + 4).join()}`;
  const bytes = totals.bytes ? exactCounter(batch.bytes, row) : 0n;
  const packets = totals.packets ? exactCounter(batch.packets, row) : 0n;
  const before = packet.totals.replace(key, { bytes, packets });
  // Fewer than before: another flow that only looks the same.
  if (!before || before.bytes > bytes || before.packets > packets) return;
  if (totals.bytes) setExactCounter(batch.bytes, row, bytes - before.bytes);
  if (totals.packets) setExactCounter(batch.packets, row, packets - before.packets);
}

/** The way back of a connection is a flow of its own, with its ends exchanged. It takes the place of a way there that is empty. */
function readReverse(
  packet: Packet,
  domain: Domain,
  template: Template,
  at: number,
  row: number,
  rate: number,
  isForwardEmpty: boolean,
): void {
  const { view, batch } = packet;
  const { offsets, lengths } = template;
  const forward = {
    src: batch.src.slice(row * 4, row * 4 + 4),
    dst: batch.dst.slice(row * 4, row * 4 + 4),
    ports: batch.ports[row]!,
    protocol: batch.protocol[row]!,
    firstSeen: batch.firstSeen[row]!,
    lastSeen: batch.lastSeen[row]!,
    nat: batch.isTranslated[row] === 1 ? batch.nat.slice(row * NAT_WORDS, (row + 1) * NAT_WORDS) : undefined,
  };
  if (isForwardEmpty) batch.count--;
  // Another place may mean a batch begun anew: nothing of the first row is there any more.
  const back = batch.next();
  batch.exporter[back] = packet.exporter.index;
  batch.version[back] = packet.version;
  batch.src.set(forward.dst, back * 4);
  batch.dst.set(forward.src, back * 4);
  batch.ports[back] = ((forward.ports << 16) | (forward.ports >>> 16)) >>> 0;
  batch.protocol[back] = forward.protocol;
  if (forward.nat) swapNat(forward.nat, batch, back);
  batch.tcpFlags[back] =
    offsets[REVERSE_FLAGS]! < 0 ? 0 : readNumber(view, at + offsets[REVERSE_FLAGS]!, lengths[REVERSE_FLAGS]!) & 0xffff;
  readCounter(view, at, REVERSE_BYTES, template, batch.bytes, back);
  readCounter(view, at, REVERSE_PACKETS, template, batch.packets, back);
  const startMs = readTime(packet, domain, template, at, REVERSE_START);
  const endMs = readTime(packet, domain, template, at, REVERSE_END);
  batch.firstSeen[back] = forward.firstSeen;
  batch.lastSeen[back] = forward.lastSeen;
  if (!Number.isNaN(startMs) || !Number.isNaN(endMs)) {
    packet.setTimes(back, Number.isNaN(startMs) ? endMs : startMs, Number.isNaN(endMs) ? startMs : endMs);
  }
  subtractReported(packet, template, template.reverseTotals, at, back, "back ");
  if (isNothing(batch, back)) {
    batch.count--;
    return;
  }
  if (rate !== 1) {
    scaleCounter(batch.bytes, back, rate);
    scaleCounter(batch.packets, back, rate);
  }
}
