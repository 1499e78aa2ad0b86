import { DAY_MS, startOfDay } from "../lib/time.ts";
import { flowRowsOf, type FlowRow } from "../model/flow-rows.ts";
import { FLOW_WINDOW_MS, type FlowRows } from "../model/flow.ts";
import { activity } from "./demo.ts";
import { randomFrom, type Random } from "./random.ts";
import { GATEWAY, makeSite, randomOutsider, type DemoSite } from "./site.ts";

// The flows of the demo site, as its gateway would export them: both directions of each conversation.

const TCP = 6;
const UDP = 17;
const ICMP = 1;
/** SYN, FIN, PSH and ACK: a complete connection. */
const TCP_FLAGS_COMPLETE = 27;
const SYN = 2;
/** The share of traffic that remains at night. */
const NIGHT_SHARE = 0.15;
const RECORDER = "10.20.0.10";
const BACKUP_SERVER = "10.20.0.20";
const OFFSITE = "198.51.100.200";
const EXFILTRATION_TARGET = "203.0.113.77";
const SCANNER = "203.0.113.99";
const SCANNED_PORTS = 600;

export interface DemoFlowsOptions {
  readonly seed: number;
  /** Milliseconds; the full minutes between them get flows. */
  readonly from: number;
  readonly to: number;
  /** Approximate. */
  readonly rows: number;
}

interface ConversationKind {
  readonly weight: number;
  readonly protocol: number;
  readonly port: number;
  /** Picks the other end. */
  readonly peer: (site: DemoSite, random: Random) => string;
  /** Maximum bytes in each direction; most conversations are far smaller. */
  readonly sentMax: number;
  readonly receivedMax: number;
}

const outside = (site: DemoSite, random: Random) => randomOutsider(site, random).ip;
const inside = (address: string) => () => address;

const CONVERSATION_KINDS: readonly ConversationKind[] = [
  { weight: 50, protocol: TCP, port: 443, peer: outside, sentMax: 400_000, receivedMax: 40_000_000 },
  { weight: 6, protocol: UDP, port: 443, peer: outside, sentMax: 200_000, receivedMax: 60_000_000 },
  { weight: 5, protocol: TCP, port: 80, peer: outside, sentMax: 20_000, receivedMax: 900_000 },
  { weight: 22, protocol: UDP, port: 53, peer: inside(GATEWAY.ip), sentMax: 900, receivedMax: 4000 },
  { weight: 4, protocol: TCP, port: 993, peer: outside, sentMax: 60_000, receivedMax: 3_000_000 },
  { weight: 3, protocol: UDP, port: 123, peer: inside(GATEWAY.ip), sentMax: 80, receivedMax: 80 },
  { weight: 5, protocol: TCP, port: 445, peer: inside(BACKUP_SERVER), sentMax: 6_000_000, receivedMax: 9_000_000 },
  { weight: 2, protocol: ICMP, port: 0, peer: inside(GATEWAY.ip), sentMax: 700, receivedMax: 700 },
  { weight: 3, protocol: UDP, port: 7442, peer: inside(RECORDER), sentMax: 30_000_000, receivedMax: 40_000 },
];
const WEIGHT_SUM = CONVERSATION_KINDS.reduce((sum, { weight }) => sum + weight, 0);

/** Yields the rows of one day at a time, in chronological order; the same options give the same rows. */
export function* demoFlows({ seed, from, to, rows }: DemoFlowsOptions): Iterable<FlowRows> {
  const random = randomFrom(seed);
  const site = makeSite(random);
  const first = Math.ceil(from / FLOW_WINDOW_MS) * FLOW_WINDOW_MS;
  const minutes = Math.floor((to - first) / FLOW_WINDOW_MS);
  const busyness = (at: number) => NIGHT_SHARE + (1 - NIGHT_SHARE) * activity(at);
  let busynessSum = 0;
  for (let minute = 0; minute < minutes; minute++) busynessSum += busyness(first + minute * FLOW_WINDOW_MS);
  let day: FlowRow[] = [];
  let owed = 0;
  for (let minute = 0; minute < minutes; minute++) {
    const at = first + minute * FLOW_WINDOW_MS;
    // Each conversation has two rows.
    for (owed += (rows * busyness(at)) / busynessSum / 2; owed >= 1; owed--)
      day.push(...conversation(site, random, at));
    day.push(...incidents(site, at, to));
    const isLastOfDay = startOfDay(at + FLOW_WINDOW_MS) !== startOfDay(at + 2 * FLOW_WINDOW_MS);
    if (day.length === 0 || !(isLastOfDay || minute === minutes - 1)) continue;
    yield flowRowsOf(day);
    day = [];
  }
}

function conversation(site: DemoSite, random: Random, at: number): FlowRow[] {
  let point = random.next() * WEIGHT_SUM;
  const {
    protocol,
    port,
    peer,
    sentMax,
    receivedMax: gotMax,
  } = CONVERSATION_KINDS.find(({ weight }) => (point -= weight) < 0)!;
  const device = site.devices[Math.floor(random.next() ** 2 * site.devices.length)]!;
  const size = random.next() ** 6;
  const startMs = random.below(FLOW_WINDOW_MS - 5000);
  const shared = {
    at,
    protocol,
    startMs,
    lengthMs: random.below(FLOW_WINDOW_MS - startMs),
    ports: [protocol === ICMP ? 0 : random.between(32_768, 60_999), port] as const,
  };
  const other = peer(site, random);
  return [
    row({ ...shared, src: device.ip, dst: other, bytes: 60 + Math.round(sentMax * size) }),
    row({ ...shared, src: other, dst: device.ip, bytes: 60 + Math.round(gotMax * size), isReply: true }),
  ];
}

interface RowParts {
  readonly at: number;
  readonly src: string;
  readonly dst: string;
  readonly protocol: number;
  /** The ports of the initiator and of the responder. */
  readonly ports: readonly [number, number];
  readonly bytes: number;
  readonly startMs?: number;
  readonly lengthMs?: number;
  readonly isReply?: true;
  readonly flags?: number;
}

function row({ at, src, dst, protocol, ports, bytes, startMs = 0, lengthMs = 0, isReply, flags }: RowParts): FlowRow {
  const [srcPort, dstPort] = isReply ? [ports[1], ports[0]] : ports;
  return {
    windowStartMs: at,
    src,
    dst,
    srcPort,
    dstPort,
    protocol,
    tcpFlags: protocol === TCP ? (flags ?? TCP_FLAGS_COMPLETE) : 0,
    bytes: BigInt(bytes),
    packets: BigInt(Math.max(1, Math.ceil(bytes / 1100))),
    firstSeenMs: at + startMs,
    lastSeenMs: at + startMs + lengthMs,
    exporter: GATEWAY.ip,
    version: 9,
  };
}

const minutesOfDay = (at: number) => Math.floor((at - startOfDay(at)) / FLOW_WINDOW_MS);

/** Conspicuous traffic: the nightly backup, which is legitimate, an exfiltration and a port scan. */
function incidents(site: DemoSite, at: number, to: number): FlowRow[] {
  const minute = minutesOfDay(at);
  const found: FlowRow[] = [];
  const lengthMs = FLOW_WINDOW_MS - 1;
  if (minute >= 120 && minute < 150)
    found.push(
      row({ at, src: BACKUP_SERVER, dst: OFFSITE, protocol: TCP, ports: [40_022, 22], bytes: 90_000_000, lengthMs }),
    );
  const daysBack = Math.floor((startOfDay(to) - startOfDay(at)) / DAY_MS);
  const device = site.devices[7]!;
  // An exfiltration at night.
  if (daysBack === 1 && minute >= 205 && minute < 230)
    found.push(
      row({
        at,
        src: device.ip,
        dst: EXFILTRATION_TARGET,
        protocol: TCP,
        ports: [51_000 + minute, 443],
        bytes: 210_000_000,
        lengthMs,
      }),
    );
  if (daysBack === 2 && minute === 812)
    for (let port = 1; port <= SCANNED_PORTS; port++)
      found.push(
        row({ at, src: SCANNER, dst: GATEWAY.wan, protocol: TCP, ports: [47_000, port], bytes: 44, flags: SYN }),
      );
  return found;
}
