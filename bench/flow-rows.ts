import { randomFrom, type Random } from "../src/demo/random.ts";
import { ADDRESS_BYTES, FLOW_WINDOW_MS, type FlowRows } from "../src/model/flow.ts";
import { emptyFlowRows } from "../src/model/flow-rows.ts";

// Made-up rows of closed windows, as on a site with a few thousand hosts. The same seed gives the same rows.

const HOSTS = 5000;
const OUTSIDE = 200_000;
const SIX_SHARE = 0.1;
const DOMAIN = 53;
const SERVICES = [443, 443, 443, 443, 80, DOMAIN, DOMAIN, 22, 123, 8443, 993, 3389] as const;
const FLAGS = [27, 27, 26, 24, 2, 22] as const;
/** Internet protocols by number. */
const ICMP = 1;
const TCP = 6;
const UDP = 17;

function writeFour(bytes: Uint8Array, row: number, address: number): void {
  const at = row * ADDRESS_BYTES;
  bytes[at + 10] = bytes[at + 11] = 0xff;
  bytes[at + 12] = address >>> 24;
  bytes[at + 13] = address >>> 16;
  bytes[at + 14] = address >>> 8;
  bytes[at + 15] = address;
}

/** 2001:db8:<site>::<host>, with a random-looking interface identifier, as hosts choose it. */
function writeSix(bytes: Uint8Array, row: number, site: number, host: number): void {
  const at = row * ADDRESS_BYTES;
  bytes.set([0x20, 0x01, 0x0d, 0xb8, site >>> 8, site, 0, 0], at);
  for (let index = 8; index < ADDRESS_BYTES; index++)
    bytes[at + index] = Math.imul(host + 1, 0x9e3779b1 + index) >>> 16;
}

/** Favours low numbers: a few hosts have most of the traffic. */
const skewed = (random: Random, count: number) => Math.floor(count * random.next() ** 3);

/** External addresses, spread over all networks. */
const outsideFour = (nth: number) => (0x40000000 + Math.imul(nth + 1, 0x2545f491)) >>> 0;

export function* benchFlows(seed: number, fromMs: number, minutes: number, perMinute: number): Iterable<FlowRows> {
  const random = randomFrom(seed);
  for (let minute = 0; minute < minutes; minute++) {
    const rows = emptyFlowRows(perMinute);
    const start = fromMs + minute * FLOW_WINDOW_MS;
    for (let row = 0; row < perMinute; row++) fillRow(rows, row, start, random);
    yield rows;
  }
}

function fillRow(rows: FlowRows, row: number, start: number, random: Random): void {
  const six = random.next() < SIX_SHARE;
  const outgoing = random.onceIn(2);
  const [inside, outside] = outgoing ? [rows.src, rows.dst] : [rows.dst, rows.src];
  const [near, far] = [skewed(random, HOSTS), skewed(random, OUTSIDE)];
  if (six) {
    writeSix(inside, row, 1, near);
    writeSix(outside, row, 16 + (far % 5000), far);
  } else {
    writeFour(inside, row, 0x0a140000 + near);
    writeFour(outside, row, outsideFour(far));
  }
  writeFour(rows.exporter, row, 0x0a140001);
  const service = random.pick(SERVICES);
  const ephemeral = random.between(32_768, 60_999);
  rows.srcPort[row] = outgoing ? ephemeral : service;
  rows.dstPort[row] = outgoing ? service : ephemeral;
  rows.protocol[row] = random.onceIn(40) ? ICMP : service === DOMAIN || service === 123 ? UDP : TCP;
  rows.tcpFlags[row] = rows.protocol[row] === TCP ? random.pick(FLAGS) : 0;
  const packets = Math.ceil(Math.exp(random.next() ** 2 * 9));
  rows.packets[row] = BigInt(packets);
  rows.bytes[row] = BigInt(Math.ceil(packets * (60 + 1400 * random.next() ** 2)));
  const first = random.below(FLOW_WINDOW_MS);
  rows.windowStart[row] = start;
  rows.firstSeen[row] = start + first;
  rows.lastSeen[row] = start + first + random.below(FLOW_WINDOW_MS - first);
  rows.version[row] = 9;
}
