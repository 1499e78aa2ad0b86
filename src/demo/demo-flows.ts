import { DAY_MS, startOfDay } from "../lib/time.ts";
import { flowRowsOf, type FlowRow } from "../model/flow-rows.ts";
import { FLOW_WINDOW_MS, type FlowRows } from "../model/flow.ts";
import { activity } from "./demo.ts";
import { randomFrom, type Random } from "./random.ts";
import { exchange, flowRow, ICMP, TCP, UDP } from "./flow-row.ts";
import { scenarioFlows } from "./scenario-flows.ts";
import {
  BACKUP_SERVER,
  GATEWAY,
  INTRANET,
  makeSite,
  randomOutsider,
  RECORDER,
  TELEPHONE_SERVER,
  type DemoSite,
  type Device,
} from "./site.ts";

// The flows of the demo site, as its gateway would export them: both directions of each conversation.

/** The share of traffic that remains at night. */
const NIGHT_SHARE = 0.15;
const OFFSITE = "198.51.100.200";
const EXFILTRATION_TARGET = "203.0.113.77";

export interface DemoFlowsOptions {
  readonly seed: number;
  /** Milliseconds; the full minutes between them get flows. */
  readonly from: number;
  readonly to: number;
  /** The start of the events, whose scenarios the flows show too. Default: `from`. */
  readonly eventsFrom?: number;
  /** Approximate. */
  readonly rows: number;
}

interface ConversationKind {
  readonly weight: number;
  readonly protocol: number;
  readonly port: number;
  readonly initiator: (site: DemoSite, random: Random) => Device;
  /** Picks the other end. */
  readonly peer: (site: DemoSite, random: Random) => string;
  /** Maximum bytes in each direction; most conversations are far smaller. */
  readonly sentMax: number;
  readonly receivedMax: number;
}

/** A few devices cause most of the traffic. */
const client = ({ devices }: DemoSite, random: Random) => devices[Math.floor(random.next() ** 2 * devices.length)]!;
const camera = ({ cameras }: DemoSite, random: Random) => random.pick(cameras);
const deskPhone = ({ deskPhones }: DemoSite, random: Random) => random.pick(deskPhones);
const outside = (site: DemoSite, random: Random) => randomOutsider(site, random).ip;
const inside = (address: string) => () => address;
const web = { initiator: client, peer: outside };
const gateway = { initiator: client, peer: inside(GATEWAY.ip) };
const files = { initiator: client, peer: inside(BACKUP_SERVER.ip) };
const intranet = { initiator: client, peer: inside(INTRANET.ip) };
const recording = { initiator: camera, peer: inside(RECORDER) };
const telephony = { initiator: deskPhone, peer: inside(TELEPHONE_SERVER) };

const CONVERSATION_KINDS: readonly ConversationKind[] = [
  { ...web, weight: 50, protocol: TCP, port: 443, sentMax: 400_000, receivedMax: 40_000_000 },
  { ...web, weight: 6, protocol: UDP, port: 443, sentMax: 200_000, receivedMax: 60_000_000 },
  { ...web, weight: 5, protocol: TCP, port: 80, sentMax: 20_000, receivedMax: 900_000 },
  { ...gateway, weight: 22, protocol: UDP, port: 53, sentMax: 900, receivedMax: 4000 },
  { ...web, weight: 4, protocol: TCP, port: 993, sentMax: 60_000, receivedMax: 3_000_000 },
  { ...gateway, weight: 3, protocol: UDP, port: 123, sentMax: 80, receivedMax: 80 },
  { ...files, weight: 5, protocol: TCP, port: 445, sentMax: 6_000_000, receivedMax: 9_000_000 },
  { ...intranet, weight: 4, protocol: TCP, port: 443, sentMax: 90_000, receivedMax: 2_000_000 },
  { ...gateway, weight: 2, protocol: ICMP, port: 0, sentMax: 700, receivedMax: 700 },
  { ...recording, weight: 6, protocol: UDP, port: 7442, sentMax: 30_000_000, receivedMax: 40_000 },
  { ...telephony, weight: 3, protocol: UDP, port: 5060, sentMax: 9000, receivedMax: 9000 },
];
const WEIGHT_SUM = CONVERSATION_KINDS.reduce((sum, { weight }) => sum + weight, 0);

/** Yields the rows of one day at a time, in chronological order; the same options give the same rows. */
export function* demoFlows({ seed, from, to, eventsFrom = from, rows }: DemoFlowsOptions): Iterable<FlowRows> {
  const random = randomFrom(seed);
  const site = makeSite(random);
  const first = Math.ceil(from / FLOW_WINDOW_MS) * FLOW_WINDOW_MS;
  const minutes = Math.floor((to - first) / FLOW_WINDOW_MS);
  const busyness = (at: number) => NIGHT_SHARE + (1 - NIGHT_SHARE) * activity(at);
  let busynessSum = 0;
  for (let minute = 0; minute < minutes; minute++) busynessSum += busyness(first + minute * FLOW_WINDOW_MS);
  const ofScenarios = scenarioFlows(site, eventsFrom, to);
  let day: FlowRow[] = [];
  let owed = 0;
  for (let minute = 0; minute < minutes; minute++) {
    const at = first + minute * FLOW_WINDOW_MS;
    // Each conversation has two rows.
    for (owed += (rows * busyness(at)) / busynessSum / 2; owed >= 1; owed--)
      day.push(...conversation(site, random, at));
    day.push(...incidents(site, at, to), ...(ofScenarios.get(at) ?? []));
    const isLastOfDay = startOfDay(at + FLOW_WINDOW_MS) !== startOfDay(at + 2 * FLOW_WINDOW_MS);
    if (day.length === 0 || !(isLastOfDay || minute === minutes - 1)) continue;
    yield flowRowsOf(day);
    day = [];
  }
}

function conversation(site: DemoSite, random: Random, at: number): FlowRow[] {
  let point = random.next() * WEIGHT_SUM;
  const kind = CONVERSATION_KINDS.find(({ weight }) => (point -= weight) < 0)!;
  const { protocol, port, initiator, peer, sentMax, receivedMax } = kind;
  const size = random.next() ** 6;
  const startMs = random.below(FLOW_WINDOW_MS - 5000);
  return exchange({
    at,
    src: initiator(site, random).ip,
    dst: peer(site, random),
    protocol,
    startMs,
    lengthMs: random.below(FLOW_WINDOW_MS - startMs),
    ports: [protocol === ICMP ? 0 : random.between(32_768, 60_999), port],
    bytes: 60 + Math.round(sentMax * size),
    received: 60 + Math.round(receivedMax * size),
  });
}

const minutesOfDay = (at: number) => Math.floor((at - startOfDay(at)) / FLOW_WINDOW_MS);

/** Conspicuous traffic outside the scenarios: the nightly backup, which is legitimate, and an exfiltration. */
function incidents(site: DemoSite, at: number, to: number): FlowRow[] {
  const minute = minutesOfDay(at);
  const found: FlowRow[] = [];
  const shared = { at, protocol: TCP, lengthMs: FLOW_WINDOW_MS - 1 };
  if (minute >= 120 && minute < 150)
    found.push(flowRow({ ...shared, src: BACKUP_SERVER.ip, dst: OFFSITE, ports: [40_022, 22], bytes: 90_000_000 }));
  const daysBack = Math.floor((startOfDay(to) - startOfDay(at)) / DAY_MS);
  const { laptop } = site.people[7]!;
  if (daysBack === 1 && minute >= 205 && minute < 230)
    found.push(
      flowRow({
        ...shared,
        src: laptop.ip,
        dst: EXFILTRATION_TARGET,
        ports: [51_000 + minute, 443],
        bytes: 210_000_000,
      }),
    );
  return found;
}
