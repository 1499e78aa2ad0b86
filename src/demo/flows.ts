import { DAY_MS, startOfDay } from "../lib/time.ts";
import { flowRowsOf, type FlowRow } from "../model/flow-rows.ts";
import { FLOW_WINDOW_MS, type FlowRows } from "../model/flow.ts";
import { activity } from "./demo.ts";
import { randomFrom, type Random } from "./random.ts";
import { GATEWAY, makeSite, troublemaker, type Site } from "./site.ts";

// The traffic of the same imagined site: what its gateway would export, both directions of each conversation.

const TCP = 6;
const UDP = 17;
const ICMP = 1;
const TCP_FLAGS_WHOLE = 27;
const SYN = 2;
/** What devices still send when nobody is there. */
const NIGHT_SHARE = 0.15;
const RECORDER = "10.20.0.10";
const BACKUP_SERVER = "10.20.0.20";
const OFFSITE = "198.51.100.200";
const COURIER = "203.0.113.77";
const SCANNER = "203.0.113.99";
const SCANNED_PORTS = 600;

export interface DemoFlowsQuestion {
  readonly seed: number;
  /** Milliseconds; whole minutes between them get flows. */
  readonly from: number;
  readonly to: number;
  /** About so many rows. */
  readonly rows: number;
}

interface Talk {
  readonly weight: number;
  readonly protocol: number;
  readonly port: number;
  /** Who is talked to. */
  readonly peer: (site: Site, random: Random) => string;
  /** Bytes that go and come, at most; most talks are far smaller. */
  readonly sentMax: number;
  readonly gotMax: number;
}

const anyone = (site: Site, random: Random) => troublemaker(site, random).ip;
const inside = (address: string) => () => address;

const TALKS: readonly Talk[] = [
  { weight: 50, protocol: TCP, port: 443, peer: anyone, sentMax: 400_000, gotMax: 40_000_000 },
  { weight: 6, protocol: UDP, port: 443, peer: anyone, sentMax: 200_000, gotMax: 60_000_000 },
  { weight: 5, protocol: TCP, port: 80, peer: anyone, sentMax: 20_000, gotMax: 900_000 },
  { weight: 22, protocol: UDP, port: 53, peer: inside(GATEWAY.ip), sentMax: 900, gotMax: 4000 },
  { weight: 4, protocol: TCP, port: 993, peer: anyone, sentMax: 60_000, gotMax: 3_000_000 },
  { weight: 3, protocol: UDP, port: 123, peer: inside(GATEWAY.ip), sentMax: 80, gotMax: 80 },
  { weight: 5, protocol: TCP, port: 445, peer: inside(BACKUP_SERVER), sentMax: 6_000_000, gotMax: 9_000_000 },
  { weight: 2, protocol: ICMP, port: 0, peer: inside(GATEWAY.ip), sentMax: 700, gotMax: 700 },
  { weight: 3, protocol: UDP, port: 7442, peer: inside(RECORDER), sentMax: 30_000_000, gotMax: 40_000 },
];
const WEIGHTS = TALKS.reduce((sum, { weight }) => sum + weight, 0);

/** A day's rows at a time, in order of time, the same for the same question. */
export function* demoFlows({ seed, from, to, rows }: DemoFlowsQuestion): Iterable<FlowRows> {
  const random = randomFrom(seed);
  const site = makeSite(random);
  const first = Math.ceil(from / FLOW_WINDOW_MS) * FLOW_WINDOW_MS;
  const minutes = Math.floor((to - first) / FLOW_WINDOW_MS);
  const busyness = (at: number) => NIGHT_SHARE + (1 - NIGHT_SHARE) * activity(at);
  let all = 0;
  for (let minute = 0; minute < minutes; minute++) all += busyness(first + minute * FLOW_WINDOW_MS);
  let day: FlowRow[] = [];
  let owed = 0;
  for (let minute = 0; minute < minutes; minute++) {
    const at = first + minute * FLOW_WINDOW_MS;
    // Each talk is two rows.
    for (owed += (rows * busyness(at)) / all / 2; owed >= 1; owed--) day.push(...talk(site, random, at));
    day.push(...incidents(site, at, to));
    const isLastOfDay = startOfDay(at + FLOW_WINDOW_MS) !== startOfDay(at + 2 * FLOW_WINDOW_MS);
    if (day.length === 0 || !(isLastOfDay || minute === minutes - 1)) continue;
    yield flowRowsOf(day);
    day = [];
  }
}

function talk(site: Site, random: Random, at: number): FlowRow[] {
  let point = random.next() * WEIGHTS;
  const { protocol, port, peer, sentMax, gotMax } = TALKS.find(({ weight }) => (point -= weight) < 0)!;
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
  /** Of who began, and of who was called. */
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
    tcpFlags: protocol === TCP ? (flags ?? TCP_FLAGS_WHOLE) : 0,
    bytes: BigInt(bytes),
    packets: BigInt(Math.max(1, Math.ceil(bytes / 1100))),
    firstSeenMs: at + startMs,
    lastSeenMs: at + startMs + lengthMs,
    exporter: GATEWAY.ip,
    version: 9,
  };
}

const minutesOfDay = (at: number) => Math.floor((at - startOfDay(at)) / FLOW_WINDOW_MS);

/** What a person should find: the nightly backup, which is as it should be, and two things that are not. */
function incidents(site: Site, at: number, to: number): FlowRow[] {
  const minute = minutesOfDay(at);
  const found: FlowRow[] = [];
  const lengthMs = FLOW_WINDOW_MS - 1;
  if (minute >= 120 && minute < 150)
    found.push(
      row({ at, src: BACKUP_SERVER, dst: OFFSITE, protocol: TCP, ports: [40_022, 22], bytes: 90_000_000, lengthMs }),
    );
  const daysBack = Math.floor((startOfDay(to) - startOfDay(at)) / DAY_MS);
  const device = site.devices[7]!;
  // Someone carries files out at night, one after the other.
  if (daysBack === 1 && minute >= 205 && minute < 230)
    found.push(
      row({
        at,
        src: device.ip,
        dst: COURIER,
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
