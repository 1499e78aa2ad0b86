import { createSocket } from "node:dgram";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { v5 } from "../src/collectors/packets.fixture.ts";
import { makeKey, startServer, type ServerProcess } from "./server-process.ts";
import { authorized } from "./tocsin.ts";

// The service is killed while a window is open, and again right after it has stored what it found.

let folder: string;
let dataDir: string;
let key: string;
let server: ServerProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-flows-crash-"));
  dataDir = join(folder, "data");
  key = await makeKey(dataDir);
});

afterAll(async () => {
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

test("what was received before the last writing of the journal is stored by the next start, once", async () => {
  const port = await start();
  const flows = Array.from({ length: 30 }, (_, index) => ({
    src: `10.0.0.${index}`,
    dst: "10.0.1.1",
    bytes: 1000 + index,
  }));
  const socket = createSocket("udp4");
  const seconds = Math.floor(Date.now() / 1000);
  for (let times = 0; times < 3; times++) socket.send(v5(flows, { seconds, sequence: times * 30 }), port, "127.0.0.1");
  const journal = join(dataDir, "flow-windows");
  const written = async () => {
    const sizes = (await readdir(journal)).map(async (name) => (await stat(join(journal, name))).size);
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  };
  await expect.poll(written).toBeGreaterThan(30 * 80);
  // The writing after the last record.
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
  expect((await readdir(journal)).filter((name) => name.endsWith(".window"))).toEqual([]);
});
