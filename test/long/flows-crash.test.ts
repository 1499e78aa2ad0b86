import { createSocket } from "node:dgram";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  concat,
  ipv4,
  record,
  set,
  template,
  v5,
  v9,
  type FieldSpec,
} from "../../src/collectors/flows/packets.fixture.ts";
import { makeKey, startServer, type ServerProcess } from "../server-process.ts";
import { eventually } from "../detection.ts";
import { authorized } from "../tocsin.ts";

// The service is killed while a window is open, and again right after it has stored the window.

const MINUTE = 60_000;
/** Bytes of a row in the journal. */
const ROW_BYTES = 84;
/** Bytes of its translation, in addition. */
const TRANSLATION_BYTES = 40;

let folder: string;
let dataDir: string;
let key: string;
let server: ServerProcess;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-flows-crash-"));
  dataDir = join(folder, "data");
  key = await makeKey(dataDir);
});

afterEach(async () => {
  await server?.end("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

async function ask<Answer>(path: string): Promise<Answer> {
  const answer = await fetch(server.address + path, authorized(key));
  return (await answer.json()) as Answer;
}

async function start(): Promise<number> {
  const variables = {
    TOCSIN_NETFLOW_PORT: "0",
    TOCSIN_FLOWS_ADDRESSES: "127.0.0.1",
    TOCSIN_FLOWS_JOURNAL_SECONDS: "1",
  };
  server = await startServer({ dataDir, variables });
  const { data } = await ask<{ data: { listeners: { port: number }[] } }>("/v1/collectors");
  return data.listeners[0]!.port;
}

const stored = () => ask<{ total: number; flows: { bytes: number; src_ip: string }[] }>("/api/v1/flows?limit=1000");

const unstored = async () => {
  const names = await readdir(join(dataDir, "flow-windows"));
  return names.filter((name) => name.endsWith(".window"));
};

/** Size of the windows that are not yet stored. */
const written = async () => {
  const sizes = (await unstored()).map(async (name) => (await stat(join(dataDir, "flow-windows", name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
};

test("the next start stores records from before the last journal write, once", async () => {
  const port = await start();
  const flows = Array.from({ length: 30 }, (_, index) => ({
    src: `10.0.0.${index}`,
    dst: "10.0.1.1",
    bytes: 1000 + index,
  }));
  const socket = createSocket("udp4");
  const seconds = Math.floor(Date.now() / 1000);
  for (let times = 0; times < 3; times++) socket.send(v5(flows, { seconds, sequence: times * 30 }), port, "127.0.0.1");
  await expect.poll(written).toBeGreaterThan(30 * ROW_BYTES);
  // Waits for the journal write after the last record.
  await sleep(2500);
  socket.close();
  await server.end("SIGKILL");

  await start();
  await expect.poll(async () => (await stored()).total).toBe(30);
  expect((await stored()).flows.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(3 * (30_000 + (29 * 30) / 2));
  await server.end("SIGKILL");

  await start();
  await sleep(2000);
  expect((await stored()).total).toBe(30);
  expect(await server.end()).toBe(0);
  expect(await unstored()).toEqual([]);
});

test("translations and NAT events survive a kill while their window is open, and no summary counts the events", async () => {
  const port = await start();
  const fields: readonly FieldSpec[] = [
    [8, 4],
    [12, 4],
    [7, 2],
    [11, 2],
    [4, 1],
    [225, 4],
    [227, 2],
    [230, 1],
    [2, 4],
    [1, 4],
  ];
  // One host with more NAT sessions than a busy host has: each would be a contact if it had traffic.
  const sessions = Array.from({ length: 200 }, (_, nth) => {
    const packets = nth === 0 ? 3 : 0;
    const ends = [ipv4("10.20.1.66"), ipv4(`198.51.100.${nth}`), 50_000, 443, 6];
    return record(fields, [...ends, ipv4("203.0.113.1"), 61_000 + nth, 1, packets, packets * 100]);
  });
  const socket = createSocket("udp4");
  const seconds = Math.floor(Date.now() / 1000);
  for (let from = 0; from < sessions.length; from += 40) {
    const data = set(256, concat(...sessions.slice(from, from + 40)));
    socket.send(v9([set(0, template(256, fields)), data], { seconds, sequence: from / 40 }), port, "127.0.0.1");
  }
  await expect.poll(written).toBeGreaterThan(sessions.length * (ROW_BYTES + TRANSLATION_BYTES));
  socket.close();
  await server.end("SIGKILL");

  await start();
  await expect.poll(async () => (await stored()).total).toBe(sessions.length);
  const { flows } = await ask<{ flows: unknown[] }>("/api/v1/flows?nat_ip=203.0.113.1&nat_port=61007");
  const nat = { nat_src_ip: "203.0.113.1", nat_src_port: 61_007, nat_dst_ip: null, nat_dst_port: null };
  expect(flows).toMatchObject([{ src_ip: "10.20.1.66", dst_ip: "198.51.100.7", bytes: 0, packets: 0, ...nat }]);
  expect((await ask<{ data: unknown[] }>("/v1/events?type=flow_summary")).data).toEqual([]);
});

test("a scan across two minutes is one alert, although the service is killed in between and afterwards", async () => {
  const boundary = Math.floor(Date.now() / MINUTE - 5) * MINUTE;
  const flowOf = (port: number) => {
    const end = new Date(boundary - 7450 + port * 100).toISOString();
    const flow = { pkts_toserver: 1, bytes_toserver: 60, pkts_toclient: 0, bytes_toclient: 0, start: end, end };
    const ends = { src_ip: "10.20.1.66", src_port: 51_000, dest_ip: "10.20.4.2", dest_port: port, proto: "TCP" };
    return { timestamp: end, event_type: "flow", ...ends, flow, tcp: { tcp_flags_ts: "02" } };
  };
  const ports = Array.from({ length: 150 }, (_, index) => 1 + index);
  const alerts = async () => (await ask<{ data: any[] }>("/v1/alerts?rule_name=network.flow_port_scan")).data;
  const summaries = async () => (await ask<{ data: any[] }>("/v1/events?type=flow_summary")).data;
  await start();
  for (const half of [ports.slice(0, 74), ports.slice(74)]) {
    const { headers } = authorized(key);
    const request = { method: "POST", headers: { ...headers, "content-type": "application/json" } };
    const body = JSON.stringify(half.map(flowOf));
    const answer = await fetch(`${server.address}/v1/collect/eve`, { ...request, body });
    expect(answer.status).toBe(200);
    await expect.poll(written).toBeGreaterThan(half.length * ROW_BYTES);
    await server.end("SIGKILL");
    await start();
    await eventually(stored, ({ total }) => expect(total).toBe(half.at(-1)));
  }
  const [alert, ...others] = await eventually(alerts, (found) => expect(found.length).toBeGreaterThan(0));
  expect(others).toEqual([]);
  expect(alert.title).toBe("10.20.1.66 probes 150 ports");
  const events = await summaries();
  expect(events.map(({ raw }) => raw.ports).sort((one, other) => one - other)).toEqual([74, 150]);
  await server.end("SIGKILL");
  await start();
  expect(await alerts()).toMatchObject([{ id: alert.id }]);
  expect(await summaries()).toHaveLength(events.length);
});
