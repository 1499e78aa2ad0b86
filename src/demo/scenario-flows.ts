import type { FlowRow } from "../model/flow-rows.ts";
import { FLOW_WINDOW_MS } from "../model/flow.ts";
import { exchange, flowRow, SYN, TCP, UDP } from "./flow-row.ts";
import { ATTACKERS, scannedPort, SCANNED_PORTS, SCAN_STEP_MS, scenarioStarts, type ScenarioName } from "./scenarios.ts";
import { BACKUP_SERVER, GATEWAY, INTRUDER, TELEPHONE_SERVER, type DemoSite } from "./site.ts";

// The traffic of the scenarios, at the time of their events.

const MB = 1_000_000;
const lengthMs = FLOW_WINDOW_MS - 1;
const windowOf = (ms: number) => Math.floor(ms / FLOW_WINDOW_MS) * FLOW_WINDOW_MS;

/** The start of each minute from `first` (inclusive) to `last` (exclusive), counted from the start of the scenario. */
function minutes(startMs: number, first: number, last: number): number[] {
  return Array.from({ length: last - first }, (_, nth) => windowOf(startMs) + (first + nth) * FLOW_WINDOW_MS);
}

const SCENARIO_FLOWS: Readonly<Record<ScenarioName, (site: DemoSite, startMs: number) => FlowRow[]>> = {
  /** Requests to the login page, then a remote desktop through the opened port. */
  bruteForce: (site, startMs) => {
    const src = ATTACKERS.bruteForce;
    const login = { src, dst: GATEWAY.wan, protocol: TCP, lengthMs, bytes: 9_400, received: 21_000 };
    const desktop = { src, dst: site.people[0]!.laptop.ip, protocol: TCP, lengthMs, bytes: 2 * MB, received: 38 * MB };
    return [
      ...minutes(startMs, 0, 38).flatMap((at, nth) => exchange({ ...login, at, ports: [49_200 + nth, 443] })),
      ...minutes(startMs, 39, 58).flatMap((at) => exchange({ ...desktop, at, ports: [50_333, 3389] })),
    ];
  },
  portScan: (_, startMs) =>
    Array.from({ length: SCANNED_PORTS }, (_, nth) =>
      flowRow({
        at: windowOf(startMs + nth * SCAN_STEP_MS),
        src: ATTACKERS.portScan,
        dst: GATEWAY.wan,
        protocol: TCP,
        ports: [40_000 + nth, scannedPort(nth)],
        bytes: 44,
        flags: SYN,
      }),
    ),
  /** The connected device resolves names, reports to its server, tries every laptop, and copies files out. */
  tailgating: (site, startMs) => {
    const device = { src: INTRUDER.ip, protocol: TCP, lengthMs };
    const names = { ...device, dst: GATEWAY.ip, protocol: UDP, bytes: 74, received: 190 };
    const probe = { ...device, bytes: 132, flags: SYN };
    const beacon = { ...device, dst: INTRUDER.server, bytes: 3_100, received: 1_800 };
    const copied = { ...device, dst: BACKUP_SERVER.ip, bytes: MB, received: 140 * MB };
    const sent = { ...device, dst: INTRUDER.server, bytes: 118 * MB, received: 2 * MB };
    return [
      ...minutes(startMs, 10, 56).flatMap((at, nth) => [
        ...exchange({ ...names, at, ports: [40_100 + nth, 53] }),
        ...exchange({ ...beacon, at, ports: [51_000 + nth, 443] }),
      ]),
      ...site.people.map(({ laptop }, nth) =>
        flowRow({ ...probe, at: windowOf(startMs) + 15 * FLOW_WINDOW_MS, dst: laptop.ip, ports: [52_000 + nth, 445] }),
      ),
      ...minutes(startMs, 18, 24).flatMap((at) => exchange({ ...copied, at, ports: [52_200, 445] })),
      ...minutes(startMs, 25, 32).flatMap((at) => exchange({ ...sent, at, ports: [52_400, 443] })),
    ];
  },
  /** Registrations, then one call at a time. */
  tollFraud: (_, startMs) => {
    const peer = { src: ATTACKERS.tollFraud, dst: TELEPHONE_SERVER, protocol: UDP, lengthMs };
    return [
      ...minutes(startMs, 0, 20).flatMap((at) =>
        exchange({ ...peer, at, ports: [5062, 5060], bytes: 6_800, received: 5_200 }),
      ),
      ...minutes(startMs, 21, 165).flatMap((at) =>
        exchange({ ...peer, at, ports: [16_400, 20_000], bytes: 640_000, received: 650_000 }),
      ),
    ];
  },
};

/** The flows of all scenarios that fit between the two times, by the start of their minute. */
export function scenarioFlows(site: DemoSite, fromMs: number, toMs: number): ReadonlyMap<number, readonly FlowRow[]> {
  const byMinute = new Map<number, FlowRow[]>();
  for (const [name, startMs] of scenarioStarts(fromMs, toMs)) {
    for (const row of SCENARIO_FLOWS[name](site, startMs)) {
      const rows = byMinute.get(row.windowStartMs);
      if (rows) rows.push(row);
      else byMinute.set(row.windowStartMs, [row]);
    }
  }
  return byMinute;
}
