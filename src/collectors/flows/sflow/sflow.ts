import type { FlowPacket } from "../flow-packet.ts";
import { MAPPED_WORD, scaleCounter, setCounter } from "../flow-records.ts";
import { NO_PACKET, readEthernet, readIp } from "../packet-frame.ts";

// sFlow v5: the first bytes of sampled packets, one in N. Each becomes a flow of N packets and N times the length of its IP
// packet, which makes its bytes comparable to NetFlow's. Interface counters and discarded-packet samples are skipped.

const ADDRESS_IPV4 = 1;
const ADDRESS_IPV6 = 2;
const SAMPLES_MAX = 1024;
const RECORDS_MAX = 1024;

const FLOW_SAMPLE = 1;
const EXPANDED_FLOW_SAMPLE = 3;
const RAW_HEADER = 1;
const IPV4_RECORD = 3;
const IPV6_RECORD = 4;
const HEADER_ETHERNET = 1;
const HEADER_IPV4 = 11;
const HEADER_IPV6 = 12;

/** Separates sub-agents, which number their datagrams independently. The key times 65,536 ports stays an exact number. */
const KEY_BASE = 11 * 2 ** 32;

export function decodeSflow(packet: FlowPacket, start: number, end: number): void {
  const { view, exporter } = packet;
  const truncated = (what: string) => exporter.drop("truncated", 1, `an sFlow ${what}`, packet.receivedMs);
  if (end - start < 12) return truncated(`datagram of ${end - start} bytes is shorter than its header`);
  const family = view.getUint32(start + 4);
  if (family !== ADDRESS_IPV4 && family !== ADDRESS_IPV6) {
    exporter.drop("malformed", 1, `an sFlow datagram has an agent address of type ${family}`, packet.receivedMs);
    return;
  }
  let at = start + 8 + (family === ADDRESS_IPV4 ? 4 : 16);
  if (end - at < 16) return truncated(`datagram of ${end - start} bytes is shorter than its header`);
  // sFlow only reports uptime: samples get the time of their arrival.
  packet.setClock(packet.receivedMs, -1);
  const subAgent = exporter.domain(KEY_BASE + view.getUint32(at), packet.port, packet.receivedMs);
  exporter.observe(subAgent, view.getUint32(at + 4), 1);
  const samples = view.getUint32(at + 12);
  at += 16;
  if (samples > SAMPLES_MAX) {
    const message = `an sFlow datagram declares ${samples} samples, more than ${SAMPLES_MAX}`;
    exporter.drop("malformed", 1, message, packet.receivedMs);
    return;
  }
  let records = 0;
  for (let index = 0; index < samples; index++) {
    if (end - at < 8)
      return finish(packet, records, () => truncated(`datagram ends after ${index} of ${samples} samples`));
    const format = view.getUint32(at);
    const length = view.getUint32(at + 4);
    at += 8;
    if (length > end - at) {
      return finish(packet, records, () => truncated(`sample of ${length} bytes exceeds its datagram`));
    }
    if (format === FLOW_SAMPLE || format === EXPANDED_FLOW_SAMPLE) {
      if (readSample(packet, at, at + length, format === EXPANDED_FLOW_SAMPLE)) records++;
    }
    at += length;
  }
  finish(packet, records);
}

function finish({ exporter, receivedMs }: FlowPacket, records: number, also?: () => void): void {
  exporter.records += records;
  if (records > 0) exporter.lastRecordMs = receivedMs;
  also?.();
}

function readSample(packet: FlowPacket, start: number, end: number, expanded: boolean): boolean {
  const { view, exporter, batch, receivedMs } = packet;
  const headerBytes = expanded ? 44 : 32;
  if (end - start < headerBytes) {
    exporter.drop("truncated", 1, "an sFlow sample is shorter than its header", receivedMs);
    return false;
  }
  const rate = Math.max(1, view.getUint32(start + (expanded ? 12 : 8)));
  const count = view.getUint32(start + headerBytes - 4);
  let at = start + headerBytes;
  for (let index = 0; index < Math.min(count, RECORDS_MAX); index++) {
    if (end - at < 8) break;
    const format = view.getUint32(at);
    const length = view.getUint32(at + 4);
    at += 8;
    if (length > end - at) {
      exporter.drop("truncated", 1, "a record of an sFlow sample exceeds the sample", receivedMs);
      return false;
    }
    const row = batch.next();
    const bytes = readRecord(packet, format, at, at + length, row);
    if (bytes !== NO_PACKET) {
      exporter.samplingRate = rate;
      batch.exporter[row] = exporter.index;
      batch.version[row] = packet.version;
      setCounter(batch.bytes, row, bytes);
      setCounter(batch.packets, row, 1);
      scaleCounter(batch.bytes, row, rate);
      scaleCounter(batch.packets, row, rate);
      packet.setTimes(row, receivedMs, receivedMs);
      return true;
    }
    batch.count--;
    at += length;
  }
  // Not IP, or no record with a packet.
  exporter.dropUnaddressed(1, receivedMs);
  return false;
}

/** Returns the length of the IP packet, or NO_PACKET if the record has none with addresses. */
function readRecord({ view, batch }: FlowPacket, format: number, at: number, end: number, row: number): number {
  const length = end - at;
  if (format === RAW_HEADER && length >= 16) {
    const protocol = view.getUint32(at);
    const headerEnd = Math.min(end, at + 16 + view.getUint32(at + 12));
    const frameBytes = view.getUint32(at + 4);
    if (protocol === HEADER_ETHERNET) return readEthernet(view, at + 16, headerEnd, frameBytes, batch, row);
    const isIp = protocol === HEADER_IPV4 || protocol === HEADER_IPV6;
    return isIp ? readIp(view, at + 16, headerEnd, frameBytes, batch, row) : NO_PACKET;
  }
  const words = row * 4;
  if (format === IPV4_RECORD && length >= 28) {
    for (const [target, from] of [[batch.src, at + 8] as const, [batch.dst, at + 12] as const]) {
      target[words] = 0;
      target[words + 1] = 0;
      target[words + 2] = MAPPED_WORD;
      target[words + 3] = view.getUint32(from, true);
    }
    return readPortsAndFlags(view, at, at + 16, batch, row);
  }
  if (format === IPV6_RECORD && length >= 52) {
    for (let word = 0; word < 4; word++) {
      batch.src[words + word] = view.getUint32(at + 8 + word * 4, true);
      batch.dst[words + word] = view.getUint32(at + 24 + word * 4, true);
    }
    return readPortsAndFlags(view, at, at + 40, batch, row);
  }
  return NO_PACKET;
}

function readPortsAndFlags(view: DataView, at: number, ports: number, batch: FlowPacket["batch"], row: number): number {
  batch.protocol[row] = view.getUint32(at + 4);
  batch.ports[row] = (((view.getUint32(ports) & 0xffff) << 16) | (view.getUint32(ports + 4) & 0xffff)) >>> 0;
  batch.tcpFlags[row] = view.getUint32(ports + 8);
  return view.getUint32(at);
}
