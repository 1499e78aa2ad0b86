import { MAPPED_WORD, type RecordBatch } from "./flow-records.ts";

// Parses the first bytes of a frame or packet down to the ports, as sampled by sFlow and carried by IPFIX. Addresses come from
// the outermost IP header: for a tunnel (VXLAN, GRE, SRv6), its endpoints.

const ETHERNET_BYTES = 14;
const VLAN_BYTES = 4;
const MPLS_LABEL_BYTES = 4;
const PPPOE_BYTES = 8;
const IPV6_BYTES = 40;
/** Tags, labels or extension headers that are skipped; no legitimate packet has more. */
const STEPS_MAX = 16;

const TYPE_IPV4 = 0x0800;
const TYPE_IPV6 = 0x86dd;
const TYPES_VLAN = new Set([0x8100, 0x88a8, 0x9100]);
const TYPES_MPLS = new Set([0x8847, 0x8848]);
const TYPE_PPPOE = 0x8864;
const PPP_IPV4 = 0x0021;
const PPP_IPV6 = 0x0057;

const ICMP = 1;
const TCP = 6;
const UDP = 17;
const ICMPV6 = 58;
const SCTP = 132;
const UDP_LITE = 136;
const IPV6_EXTENSIONS = new Set([0, 43, 60, 135]);
const IPV6_FRAGMENT = 44;
const AUTHENTICATION = 51;

/** The frame is not IP, or ends before its addresses. */
export const NO_PACKET = -1;

/**
 * Fills addresses, protocol, ports and flags of a row from a frame of `frameBytes`, of which the bytes from `start` to `end` were
 * captured. Returns the length of the IP packet, which is also what NetFlow counts, or NO_PACKET.
 */
export function readEthernet(
  view: DataView,
  start: number,
  end: number,
  frameBytes: number,
  batch: RecordBatch,
  row: number,
): number {
  if (end - start < ETHERNET_BYTES) return NO_PACKET;
  const inside = (at: number) => readIp(view, at, end, Math.max(0, frameBytes - (at - start)), batch, row);
  let type = view.getUint16(start + 12);
  let at = start + ETHERNET_BYTES;
  for (let step = 0; step < STEPS_MAX && TYPES_VLAN.has(type); step++) {
    if (end - at < VLAN_BYTES) return NO_PACKET;
    type = view.getUint16(at + 2);
    at += VLAN_BYTES;
  }
  if (TYPES_MPLS.has(type)) {
    for (let step = 0, bottom = false; step < STEPS_MAX && !bottom; step++) {
      if (end - at < MPLS_LABEL_BYTES) return NO_PACKET;
      bottom = (view.getUint8(at + 2) & 1) === 1;
      at += MPLS_LABEL_BYTES;
    }
    return inside(at);
  }
  if (type === TYPE_PPPOE) {
    if (end - at < PPPOE_BYTES) return NO_PACKET;
    const protocol = view.getUint16(at + 6);
    return protocol === PPP_IPV4 || protocol === PPP_IPV6 ? inside(at + PPPOE_BYTES) : NO_PACKET;
  }
  return type === TYPE_IPV4 || type === TYPE_IPV6 ? inside(at) : NO_PACKET;
}

/**
 * Does the same for an IPv4 or IPv6 packet. `packetBytes` is the length if the header has none, as in jumbograms and with
 * segmentation offload.
 */
export function readIp(
  view: DataView,
  at: number,
  end: number,
  packetBytes: number,
  batch: RecordBatch,
  row: number,
): number {
  if (end - at < 1) return NO_PACKET;
  const version = view.getUint8(at) >> 4;
  const headerLength =
    version === 4
      ? readIpv4(view, at, end, batch, row)
      : version === 6
        ? readIpv6(view, at, end, batch, row)
        : NO_PACKET;
  return headerLength === 0 ? packetBytes : headerLength;
}

/** Returns the length in the header, which may be 0. */
function readIpv4(view: DataView, at: number, end: number, batch: RecordBatch, row: number): number {
  if (end - at < 20) return NO_PACKET;
  setIpv4(batch.src, row, view.getUint32(at + 12, true));
  setIpv4(batch.dst, row, view.getUint32(at + 16, true));
  const headerBytes = (view.getUint8(at) & 0xf) * 4;
  const isFirstPart = (view.getUint16(at + 6) & 0x1fff) === 0;
  const protocol = view.getUint8(at + 9);
  readTransport(view, at + Math.max(20, headerBytes), isFirstPart ? end : 0, protocol, batch, row);
  return view.getUint16(at + 2);
}

function readIpv6(view: DataView, start: number, end: number, batch: RecordBatch, row: number): number {
  if (end - start < IPV6_BYTES) return NO_PACKET;
  for (let word = 0; word < 4; word++) {
    batch.src[row * 4 + word] = view.getUint32(start + 8 + word * 4, true);
    batch.dst[row * 4 + word] = view.getUint32(start + 24 + word * 4, true);
  }
  let protocol = view.getUint8(start + 6);
  let at = start + IPV6_BYTES;
  let readable = end;
  for (let step = 0; step < STEPS_MAX && end - at >= 8; step++) {
    if (IPV6_EXTENSIONS.has(protocol)) {
      protocol = view.getUint8(at);
      at += (view.getUint8(at + 1) + 1) * 8;
    } else if (protocol === AUTHENTICATION) {
      protocol = view.getUint8(at);
      at += (view.getUint8(at + 1) + 2) * 4;
    } else if (protocol === IPV6_FRAGMENT) {
      if (view.getUint16(at + 2) >> 3 !== 0) readable = 0;
      protocol = view.getUint8(at);
      at += 8;
    } else break;
  }
  readTransport(view, at, readable, protocol, batch, row);
  const payloadBytes = view.getUint16(start + 4);
  return payloadBytes === 0 ? 0 : IPV6_BYTES + payloadBytes;
}

/** Reads ports and flags; ports are 0 if the sample ends before them, and in later fragments. */
function readTransport(
  view: DataView,
  at: number,
  end: number,
  protocol: number,
  batch: RecordBatch,
  row: number,
): void {
  batch.protocol[row] = protocol;
  batch.ports[row] = 0;
  batch.tcpFlags[row] = 0;
  switch (protocol) {
    case TCP:
      if (end - at >= 14) batch.tcpFlags[row] = view.getUint16(at + 12) & 0x1ff;
      if (end - at >= 4) batch.ports[row] = view.getUint32(at);
      break;
    case UDP:
    case SCTP:
    case UDP_LITE:
      if (end - at >= 4) batch.ports[row] = view.getUint32(at);
      break;
    case ICMP:
    case ICMPV6:
      // Type and code go into the destination port, as in NetFlow.
      if (end - at >= 2) batch.ports[row] = view.getUint16(at);
      break;
    default:
      break;
  }
}

function setIpv4(target: Uint32Array, row: number, word: number): void {
  target[row * 4] = 0;
  target[row * 4 + 1] = 0;
  target[row * 4 + 2] = MAPPED_WORD;
  target[row * 4 + 3] = word;
}
