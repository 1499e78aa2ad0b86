import { DAY_MS, startOfDay } from "../lib/time.ts";
import type { DemoEvent } from "./event-kind.ts";
import type { Random } from "./random.ts";
import { GATEWAY, INTRUDER, outsider, type DemoSite } from "./site.ts";

// Four attack scenarios, hidden among the ordinary events of the demo.

const MINUTE_MS = 60_000;

interface Scenario {
  /** The distance from the end as a fraction of the period, and the time of day of the start. */
  readonly back: number;
  readonly clockMs: number;
  readonly longestMs: number;
  generate(site: DemoSite, random: Random, startMs: number): DemoEvent[];
}

export const ATTACKERS = { bruteForce: "203.0.113.66", portScan: "198.51.100.23", tollFraud: "192.0.2.199" };
/** The person whose telephone account is misused. */
const MISUSED = 13;
export const SCANNED_PORTS = 240;
export const SCAN_STEP_MS = 450;
export const scannedPort = (nth: number) => 1 + nth * 37;

const atClock = (hours: number, minutes: number) => (hours * 60 + minutes) * MINUTE_MS;

/** A password is brute-forced at night, then the firewall is opened from inside. */
const bruteForce: Scenario = {
  back: 0.3,
  clockMs: atClock(2, 40),
  longestMs: 45 * MINUTE_MS,
  generate: (site, random, startMs) => {
    const { ip, enrichment } = outsider(ATTACKERS.bruteForce, random, 97);
    const target = site.people[0]!.laptop;
    const raw = { user: "admin", src_ip: ip, device: GATEWAY.device, service: "web" };
    const shared = { source: "network" as const, enrichment };
    const guesses = Array.from({ length: 180 }, (_, nth) => ({
      ...shared,
      type: "login_failure",
      severity: "medium" as const,
      atMs: startMs + nth * 11_000 + random.below(4000),
      raw: { ...raw, attempt: nth + 1 },
    }));
    const insideMs = startMs + 34 * MINUTE_MS;
    return [
      ...guesses,
      { ...shared, type: "admin_login", severity: "high", atMs: insideMs, raw },
      {
        ...shared,
        type: "config_changed",
        severity: "high",
        atMs: insideMs + 3 * MINUTE_MS,
        raw: { ...raw, setting: "remote_access.enabled", before: false, after: true },
      },
      {
        ...shared,
        type: "config_changed",
        severity: "high",
        atMs: insideMs + 4 * MINUTE_MS,
        raw: {
          ...raw,
          setting: "firewall.port_forward",
          after: { from_port: 3389, dst_ip: target.ip, dst_port: 3389 },
        },
      },
    ];
  },
};

/** A port scan of the gateway within two minutes. */
const portScan: Scenario = {
  back: 0.55,
  clockMs: atClock(13, 15),
  longestMs: 5 * MINUTE_MS,
  generate: (_, random, startMs) => {
    const { ip, enrichment } = outsider(ATTACKERS.portScan, random, 88);
    const shared = { source: "network" as const, enrichment };
    const raw = { src_ip: ip, dst_ip: GATEWAY.wan, protocol: "tcp", device: GATEWAY.device };
    const probes = Array.from({ length: SCANNED_PORTS }, (_, nth) => ({
      ...shared,
      type: "firewall_blocked",
      severity: "low" as const,
      atMs: startMs + nth * SCAN_STEP_MS + random.below(300),
      raw: { ...raw, src_port: 40_000 + nth, dst_port: scannedPort(nth), action: "block", rule: "wan-in default" },
    }));
    return [
      ...probes,
      {
        ...shared,
        type: "ids_alert",
        severity: "high",
        atMs: startMs + 2 * MINUTE_MS,
        raw: {
          ...raw,
          signature_id: 2100469,
          signature: "Port scan of many ports",
          category: "attempted-recon",
          action: "alert",
        },
      },
    ];
  },
};

/** An intruder follows an employee through a door, is seen by a camera, and connects a device. */
const tailgating: Scenario = {
  back: 0.42,
  clockMs: atClock(18, 52),
  longestMs: 30 * MINUTE_MS,
  generate: (site, random, startMs) => {
    const { user, badge } = random.pick(site.people);
    const place = { door: "Loading dock", zone: "dock" };
    const stranger = { src_ip: INTRUDER.ip, src_mac: INTRUDER.mac, host: "unknown" };
    const far = outsider(INTRUDER.server, random, 91);
    const at = (minutes: number) => startMs + minutes * MINUTE_MS;
    return [
      {
        type: "access_granted",
        source: "access",
        severity: "info",
        atMs: at(0),
        raw: { user, badge, ...place, method: "badge" },
      },
      { type: "door_held", source: "access", severity: "medium", atMs: at(0.7), raw: { ...place, duration_s: 41 } },
      {
        type: "person",
        source: "protect",
        severity: "low",
        atMs: at(1),
        raw: { camera: "Loading dock", zone: "dock", score: 96, count: 2 },
      },
      {
        type: "person",
        source: "protect",
        severity: "medium",
        atMs: at(6),
        raw: { camera: "Server room", zone: "server room", score: 93, count: 1 },
      },
      {
        type: "client_connected",
        source: "network",
        severity: "medium",
        atMs: at(9),
        raw: { ...stranger, device: "switch-2", port: 17, known: false },
      },
      {
        type: "dhcp_lease",
        source: "network",
        severity: "info",
        atMs: at(9.1),
        raw: { ...stranger, device: GATEWAY.device, lease_s: 43_200 },
      },
      {
        type: "dns_query",
        source: "network",
        severity: "info",
        atMs: at(10),
        raw: {
          ...stranger,
          dst_ip: GATEWAY.ip,
          dst_port: 53,
          protocol: "udp",
          query: "c2.example.org",
          answer: "NOERROR",
        },
      },
      {
        type: "ids_alert",
        source: "network",
        severity: "critical",
        atMs: at(12),
        raw: {
          ...stranger,
          dst_ip: far.ip,
          dst_port: 443,
          protocol: "tcp",
          signature_id: 2025275,
          signature: "Observed malicious certificate",
          category: "trojan-activity",
          action: "allow",
        },
        enrichment: far.enrichment,
      },
    ];
  },
};

/** A telephone account is brute-forced at night and makes international calls until the morning. */
const tollFraud: Scenario = {
  back: 0.72,
  clockMs: atClock(0, 50),
  longestMs: 200 * MINUTE_MS,
  generate: (site, random, startMs) => {
    const { ip, enrichment } = outsider(ATTACKERS.tollFraud, random, 93);
    const { extension, user } = site.people[MISUSED]!;
    const shared = { source: "talk" as const, enrichment };
    const guesses = Array.from({ length: 140 }, (_, nth) => ({
      ...shared,
      type: "sip_registration_failed",
      severity: "medium" as const,
      atMs: startMs + MINUTE_MS + nth * 6000 + random.below(3000),
      raw: { src_ip: ip, from: extension, reason: "wrong password", user_agent: "friendly-scanner" },
    }));
    const insideMs = startMs + 20 * MINUTE_MS;
    const calls = Array.from({ length: 36 }, (_, nth) => {
      const atMs = insideMs + (1 + nth * 4) * MINUTE_MS;
      const seconds = random.between(60, 230);
      const raw = {
        src_ip: ip,
        from: extension,
        user,
        to: `+99950012${random.between(100, 199)}`,
        call: `fraud-${nth + 1}`,
      };
      const severity = "medium" as const;
      return [
        { ...shared, type: "call_started", severity, atMs, raw },
        { ...shared, type: "call_ended", severity, atMs: atMs + seconds * 1000, raw: { ...raw, duration_s: seconds } },
      ];
    });
    return [
      {
        ...shared,
        type: "sip_scan",
        severity: "low",
        atMs: startMs,
        raw: { src_ip: ip, dst_port: 5060, protocol: "udp" },
      },
      ...guesses,
      {
        ...shared,
        type: "sip_registered",
        severity: "high",
        atMs: insideMs,
        raw: { src_ip: ip, from: extension, user },
      },
      ...calls.flat(),
    ];
  },
};

const SCENARIOS = { bruteForce, portScan, tailgating, tollFraud };
export type ScenarioName = keyof typeof SCENARIOS;

/** When each scenario starts; those that do not fit between the two times are left out. */
export function scenarioStarts(fromMs: number, toMs: number): ReadonlyMap<ScenarioName, number> {
  const starts = new Map<ScenarioName, number>();
  for (const [name, { back, clockMs, longestMs }] of Object.entries(SCENARIOS)) {
    let startMs = startOfDay(toMs - (toMs - fromMs) * back) + clockMs;
    if (startMs < fromMs) startMs += DAY_MS;
    if (startMs + longestMs > toMs) startMs -= DAY_MS;
    if (startMs >= fromMs) starts.set(name as ScenarioName, startMs);
  }
  return starts;
}

/** The events of all scenarios that fit between the two times, in chronological order. */
export function scenarioEvents(site: DemoSite, random: Random, fromMs: number, toMs: number): DemoEvent[] {
  const events = [...scenarioStarts(fromMs, toMs)].flatMap(([name, startMs]) =>
    SCENARIOS[name].generate(site, random, startMs),
  );
  return events.sort((a, b) => a.atMs - b.atMs);
}
