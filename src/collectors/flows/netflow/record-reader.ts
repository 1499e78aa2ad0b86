import { NO_PACKET, readEthernet, readIp } from "../packet-frame.ts";
import type { FlowPacket } from "../flow-packet.ts";
import {
  exactCounter,
  MAPPED_WORD,
  NAT_WORDS,
  scaleCounter,
  setCounter,
  setExactCounter,
  type RecordBatch,
} from "../flow-records.ts";
import type { ObservationDomain } from "./observation-domain.ts";
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
} from "./netflow-fields.ts";
import { readNat, swapNat, isNatEvent } from "./nat.ts";
import type { TotalCounters, RecordTemplate } from "./record-template.ts";
import { copyAddress, isZero, readNumber } from "./netflow-values.ts";

// Reads one v9 or IPFIX record by the offsets of its template.

const EGRESS = 1;
const ICMP_PROTOCOL = 1;
const ICMPV6_PROTOCOL = 58;
const WORD = 2 ** 32;
/** Seconds from 1900, the NTP epoch, to 1970. */
const NTP_OFFSET = 2_208_988_800;
const RATE_MAX = WORD - 1;

/**
 * Reads a flow, and the reverse flow if the record has one; a direction without traffic is left out. Returns false if the record
 * has no address. `setRate` is the sampling rate of all records of the set, or negative if each record has its own.
 */
export function readFlow(
  packet: FlowPacket,
  domain: ObservationDomain,
  template: RecordTemplate,
  at: number,
  setRate: number,
): boolean {
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
  if (isAddressed) readPortsAndFlags(view, at, template, batch, row);
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
  const rate = setRate < 0 ? recordRate(view, at, template, domain) : setRate;
  if (rate !== 1) {
    scaleCounter(batch.bytes, row, rate);
    scaleCounter(batch.packets, row, rate);
    packet.exporter.samplingRate = rate;
  }
  // A record without traffic is kept: it may report a refused attempt or a translation. One direction of a connection without
  // traffic is not, nor is a report that adds nothing to the last one.
  const isEmpty =
    (template.hasReverse || totals.bytes || totals.packets) &&
    hasNoTraffic(batch, row) &&
    !isNatEvent(view, at, template);
  if (template.hasReverse) readReverse(packet, domain, template, at, row, rate, isEmpty);
  else if (isEmpty) batch.count--;
  return true;
}

function hasNoTraffic({ bytes, packets }: RecordBatch, row: number): boolean {
  return (bytes[row * 2]! | bytes[row * 2 + 1]! | packets[row * 2]! | packets[row * 2 + 1]!) === 0;
}

function readPortsAndFlags(
  view: DataView,
  at: number,
  template: RecordTemplate,
  batch: RecordBatch,
  row: number,
): void {
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

/** Reads the sampled packet of a record. Returns the length of its IP packet, or NO_PACKET if there is none. */
function readSection(view: DataView, at: number, template: RecordTemplate, batch: RecordBatch, row: number): number {
  const { offsets, lengths } = template;
  const frame = offsets[FRAME_SECTION]!;
  if (frame >= 0) {
    const end = at + frame + lengths[FRAME_SECTION]!;
    const size = offsets[FRAME_BYTES]!;
    const frameBytes = size < 0 ? lengths[FRAME_SECTION]! : readNumber(view, at + size, lengths[FRAME_BYTES]!);
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
    // A template with addresses of both IP versions has zeros in those that the flow does not use.
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

/** The ICMP type and code, stored as the destination port, which is where exporters without a field for them put them. */
function readIcmp(view: DataView, at: number, { offsets, lengths }: RecordTemplate): number {
  if (offsets[ICMP]! >= 0) return readNumber(view, at + offsets[ICMP]!, lengths[ICMP]!) & 0xffff;
  if (offsets[ICMP_TYPE]! < 0) return 0;
  const type = readNumber(view, at + offsets[ICMP_TYPE]!, lengths[ICMP_TYPE]!) & 0xff;
  const code = offsets[ICMP_CODE]! < 0 ? 0 : readNumber(view, at + offsets[ICMP_CODE]!, lengths[ICMP_CODE]!) & 0xff;
  return (type << 8) | code;
}

function readCounter(
  view: DataView,
  at: number,
  slot: number,
  { offsets, lengths }: RecordTemplate,
  counters: Uint32Array,
  row: number,
): void {
  const offset = offsets[slot]!;
  let low = 0;
  let high = 0;
  if (offset >= 0) {
    const length = lengths[slot]!;
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

/** Returns milliseconds since 1970, or NaN if the record has no such time. */
function readTime(
  packet: FlowPacket,
  domain: ObservationDomain,
  template: RecordTemplate,
  at: number,
  slot: number,
): number {
  const offset = template.offsets[slot]!;
  if (offset < 0) return Number.NaN;
  const { view } = packet;
  const length = template.lengths[slot]!;
  const value = readNumber(view, at + offset, length);
  switch (template.times[slot]!) {
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

/** Converts uptime, a millisecond counter that wraps around every 49.7 days, to the time nearest to the export. */
function readUptime(
  packet: FlowPacket,
  domain: ObservationDomain,
  template: RecordTemplate,
  at: number,
  value: number,
): number {
  if (packet.uptimeMs >= 0) return packet.exportMs + ((value - packet.uptimeMs) | 0);
  const offset = template.offsets[SYSTEM_START]!;
  const systemStartMs =
    offset < 0 ? domain.systemStartMs : readNumber(packet.view, at + offset, template.lengths[SYSTEM_START]!);
  if (systemStartMs === undefined) return Number.NaN;
  const timeMs = systemStartMs + value;
  return timeMs + Math.round((packet.exportMs - timeMs) / WORD) * WORD;
}

function setTimes(
  packet: FlowPacket,
  template: RecordTemplate,
  at: number,
  row: number,
  startMs: number,
  endMs: number,
): void {
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

/** The sampling rate of all records of a template; negative if records carry their own rate or name a sampler. */
export function commonRate({ offsets, varying }: RecordTemplate, domain: ObservationDomain): number {
  const isPerRecord =
    varying !== null ||
    offsets[SAMPLER]! >= 0 ||
    offsets[SAMPLING_INTERVAL]! >= 0 ||
    offsets[SAMPLING_PACKETS]! >= 0 ||
    offsets[SAMPLING_POPULATION]! >= 0 ||
    offsets[SAMPLING_PROBABILITY]! >= 0;
  return isPerRecord ? -1 : domain.rateOf(undefined);
}

/** The sampling rate in the record itself, or else the one that the exporter reported for its domain. */
function recordRate(view: DataView, at: number, template: RecordTemplate, domain: ObservationDomain): number {
  const { offsets, lengths } = template;
  const own = readRate(view, at, template);
  if (own !== undefined && own > 0) return own;
  const sampler = offsets[SAMPLER]!;
  return domain.rateOf(sampler < 0 ? undefined : readNumber(view, at + sampler, lengths[SAMPLER]!));
}

/** The sampling rate N (one packet in N); undefined if there is none, 0 if it is invalid. */
function readRate(view: DataView, at: number, { offsets, lengths }: RecordTemplate): number | undefined {
  const read = (slot: number) =>
    offsets[slot]! < 0 ? undefined : readNumber(view, at + offsets[slot]!, lengths[slot]!);
  let rate: number | undefined;
  if (offsets[SAMPLING_PACKETS]! >= 0 && offsets[SAMPLING_SPACE]! >= 0) {
    const taken = read(SAMPLING_PACKETS)!;
    rate = (taken + read(SAMPLING_SPACE)!) / taken;
  } else if (offsets[SAMPLING_SIZE]! >= 0 && offsets[SAMPLING_POPULATION]! >= 0) {
    rate = read(SAMPLING_POPULATION)! / read(SAMPLING_SIZE)!;
  } else if (offsets[SAMPLING_PROBABILITY]! >= 0) {
    rate = 1 / view.getFloat64(at + offsets[SAMPLING_PROBABILITY]!);
  } else {
    // Element 305 alone is the interval.
    rate = read(SAMPLING_INTERVAL) ?? read(SAMPLING_PACKETS);
  }
  if (rate === undefined) return undefined;
  return rate >= 1 && rate <= RATE_MAX ? rate : 0;
}

/** Applies an options record to its domain: the sampling rate, and the start of the uptime. */
export function readOptions(packet: FlowPacket, domain: ObservationDomain, template: RecordTemplate, at: number): void {
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
 * Turns total counters into deltas by subtracting the previous report of the flow. The flow is identified by its addresses, ports,
 * id and start as the exporter reports them, without clock correction, which may differ from packet to packet.
 */
function subtractReported(
  packet: FlowPacket,
  template: RecordTemplate,
  totals: TotalCounters,
  at: number,
  row: number,
  keyPrefix: string,
): void {
  if (!totals.bytes && !totals.packets) return;
  const { batch, view } = packet;
  const { offsets, lengths, times } = template;
  const read = (slot: number) => (offsets[slot]! < 0 ? 0 : readNumber(view, at + offsets[slot]!, lengths[slot]!));
  // A start relative to the export differs in each report.
  const start = times[START] === TIME_BEFORE_EXPORT ? 0 : read(START);
  const words = row * 4;
  const { src, dst } = batch;
  const key = `${keyPrefix}${packet.exporter.index} ${read(FLOW_ID)} ${start} ${batch.ports[row]!} ${batch.protocol[row]!} ${src.subarray(words, words + 4).join()} ${dst.subarray(words, words + 4).join()}`;
  const bytes = totals.bytes ? exactCounter(batch.bytes, row) : 0n;
  const packets = totals.packets ? exactCounter(batch.packets, row) : 0n;
  const before = packet.lastReports.replace(key, { bytes, packets });
  // A counter that went down belongs to another flow with the same key.
  if (!before || before.bytes > bytes || before.packets > packets) return;
  if (totals.bytes) setExactCounter(batch.bytes, row, bytes - before.bytes);
  if (totals.packets) setExactCounter(batch.packets, row, packets - before.packets);
}

/** Adds the reverse direction as its own flow, with source and destination swapped. It replaces an empty forward flow. */
function readReverse(
  packet: FlowPacket,
  domain: ObservationDomain,
  template: RecordTemplate,
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
  // A new row may start a new batch, which overwrites the forward row.
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
  if (hasNoTraffic(batch, back)) {
    batch.count--;
    return;
  }
  if (rate !== 1) {
    scaleCounter(batch.bytes, back, rate);
    scaleCounter(batch.packets, back, rate);
  }
}
