import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { formatTime } from "../src/lib/time.ts";
import { openTestServer, type TestServer } from "./api-server.ts";
import { alertsOf, eventually } from "./detection.ts";

// Scans that Suricata reports long after the fact, from the real collector to the alert. A restart closes the open windows
// at once; otherwise a test would wait a minute for the clock.

const MINUTE = 60_000;
const SWEEP = { name: "network.flow_host_sweep" };
const SCAN = { name: "network.flow_port_scan" };

let server: TestServer;
beforeEach(async () => void (server = await openTestServer()));
afterEach(() => server.close());

interface Attempt {
  readonly dst?: string;
  readonly port?: number;
  readonly endMs: number;
}

const flowOf = ({ dst = "10.20.4.2", port = 445, endMs }: Attempt) => ({
  timestamp: formatTime(endMs + MINUTE),
  event_type: "flow",
  src_ip: "10.20.1.66",
  src_port: 51_000,
  dest_ip: dst,
  dest_port: port,
  proto: "TCP",
  flow: {
    pkts_toserver: 1,
    pkts_toclient: 0,
    bytes_toserver: 60,
    bytes_toclient: 0,
    start: formatTime(endMs),
    end: formatTime(endMs),
    state: "new",
    reason: "timeout",
  },
  tcp: { tcp_flags: "02", tcp_flags_ts: "02", tcp_flags_tc: "00", syn: true },
});

async function send(attempts: readonly Attempt[]): Promise<void> {
  const answer = await server.call("POST", "/v1/collect/eve", { body: attempts.map(flowOf) });
  expect(answer.status, answer.text).toBeLessThan(300);
}

const windows = async () => (await server.call("GET", "/v1/collectors")).body.data.windows;
/** Oldest first. */
const summaries = async () =>
  ((await server.call("GET", "/v1/events?type=flow_summary&per_page=100")).body.data as any[]).reverse();
const restart = async () => void (server = await server.restart());

/** The alerts of a rule, once there is one and detection has processed every stored event. */
async function alerts(rule: { name: string }): Promise<any[]> {
  await eventually(
    () => alertsOf(server, rule),
    (found) => expect(found.length).toBeGreaterThan(0),
  );
  await detectionCaughtUp();
  return alertsOf(server, rule);
}

/** The alert of an event that is stored last proves that everything before it was processed. */
async function detectionCaughtUp(): Promise<void> {
  const probe = { type: "door_forced", source: "custom", severity: "high", data: { door: `probe ${Math.random()}` } };
  const name = `test.probe_${Math.random().toString(36).slice(2)}`;
  const rule = {
    name,
    severity: "low",
    description: "Last event of a test.",
    title: "probe",
    conditions: [{ field: "raw.door", equals: probe.data.door }],
    actions: [{ alert: { channels: [] } }],
  };
  expect((await server.call("POST", "/v1/rules", { body: rule })).status).toBe(201);
  expect((await server.call("POST", "/v1/events", { body: probe })).status).toBe(201);
  await eventually(
    () => alertsOf(server, { name }),
    (found) => expect(found).toHaveLength(1),
  );
}

/** A minute that is already stored. */
const pastMinute = (minutes: number) => Math.floor(Date.now() / MINUTE - minutes) * MINUTE;
const host = (index: number) => `10.30.${index >> 8}.${index & 255}`;
const times = <Made>(count: number, make: (index: number) => Made) => Array.from({ length: count }, (_, i) => make(i));

describe("a sweep that is reported late", () => {
  test.each([3, 31])("by %i minutes is one alert", async (minutes) => {
    const endMs = pastMinute(minutes) + 30_000;
    await send(times(250, (index) => ({ dst: host(index), endMs: endMs + index })));
    expect((await windows()).late_records).toBe(250);
    await restart();
    const found = await alerts(SWEEP);
    expect(found).toHaveLength(1);
    expect(found[0].title).toBe("10.20.1.66 contacts 250 addresses");
    expect(await summaries()).toMatchObject([{ raw: { peers: 250, ports: 1, packets: 250, bytes: 15_000 } }]);
  });

  test("in parts too small to be a sweep on their own is one alert", async () => {
    const endMs = pastMinute(4) + 30_000;
    const attempts = times(250, (index) => ({ dst: host(index), endMs: endMs + index }));
    for (let from = 0; from < 250; from += 50) {
      await send(attempts.slice(from, from + 50));
      await restart();
    }
    const found = await alerts(SWEEP);
    expect(found).toHaveLength(1);
    expect((await summaries()).map(({ raw }) => [raw.revision, raw.peers])).toEqual([
      [1, 50],
      [2, 100],
      [3, 150],
      [4, 200],
      [5, 250],
    ]);
  });

  test("later than flows.late_seconds is refused and counted", async () => {
    const endMs = pastMinute(62);
    const body = times(250, (index) => flowOf({ dst: host(index), endMs }));
    expect((await server.call("POST", "/v1/collect/eve", { body })).text).toContain("too_late");
  });
});

describe("a port scan across a minute boundary", () => {
  const boundary = () => pastMinute(5);
  const scan = (count: number, startMs: number, lengthMs: number) =>
    times(count, (index) => ({ port: 1 + index, endMs: startMs + Math.floor((index * lengthMs) / count) }));

  test("is one alert with all of its ports", async () => {
    await send(scan(150, boundary() - 7400, 15_000));
    await restart();
    const found = await alerts(SCAN);
    expect(found).toHaveLength(1);
    expect(found[0].title).toBe("10.20.1.66 probes 150 ports");
    expect((await summaries()).map(({ raw }) => raw.ports)).toEqual([74, 150]);
  });

  test("is one alert if its second half arrives first and the service restarts in between", async () => {
    const attempts = scan(150, boundary() - 7400, 15_000);
    await send(attempts.slice(74));
    await restart();
    await send(attempts.slice(0, 74));
    await restart();
    const found = await alerts(SCAN);
    expect(found).toHaveLength(1);
    expect(Math.max(...(await summaries()).map(({ raw }) => raw.ports))).toBe(150);
  });

  test("is no alert if no 60 seconds contain a hundred ports", async () => {
    const startMs = boundary() - 80_000;
    // 99 in any 60 seconds, 198 in the two minutes.
    await send([...scan(99, startMs, 10_000), ...scan(198, startMs + 60_000, 20_000).slice(99)]);
    await restart();
    await detectionCaughtUp();
    expect(await alertsOf(server, SCAN)).toEqual([]);
    expect(Math.max(...(await summaries()).map(({ raw }) => raw.ports))).toBe(99);
  });
});
