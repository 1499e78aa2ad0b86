import { appendFileSync, renameSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeKey, startServer, type ServerProcess } from "../server-process.ts";
import { authorized } from "../tocsin.ts";

// A followed file is renamed while the service is killed again and again: each line is stored once.

const KILLS = 2;
let folder: string;
let dataDir: string;
let path: string;
let key: string;
let server: ServerProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-eve-crash-"));
  dataDir = join(folder, "data");
  path = join(folder, "eve.json");
  key = await makeKey(dataDir);
});
afterAll(async () => {
  await server?.end("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

const start = async () => {
  server = await startServer({ dataDir, variables: { TOCSIN_EVE_FILE: path } });
};

async function ask<Answer>(question: string, body?: object): Promise<Answer> {
  const { headers } = authorized(key);
  const answer = await fetch(server.address + question, {
    headers: { ...headers, ...(body && { "content-type": "application/json" }) },
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  });
  return (await answer.json()) as Answer;
}

const total = async () => (await ask<{ pagination: { total: number } }>("/v1/events?per_page=1")).pagination.total;

/** Some lines have no timestamp, some belong to another day, some lie in the future: a replay must recognise all of them. */
function lineOf(n: number): string {
  const now = Date.now();
  const time = [now, now - 86_400_000, now + 600_000][n % 3]!;
  return `${JSON.stringify({
    ...(n % 7 !== 0 && { timestamp: new Date(time).toISOString().replace("Z", "000+0000") }),
    event_type: "alert",
    src_ip: "192.0.2.1",
    dest_ip: "198.51.100.2",
    alert: { signature: "made up", signature_id: n, severity: 2, action: "allowed", category: "x" },
  })}\n`;
}

test("every line is stored once, however often the service is killed", async () => {
  let written = 0;
  const write = (count: number) => {
    const lines = Array.from({ length: count }, () => lineOf(written++));
    appendFileSync(path, lines.join(""));
  };
  write(3000);
  for (let round = 0; round < KILLS; round++) {
    await start();
    const before = await total();
    write(4000);
    // In the middle of the work, not before it begins.
    await expect.poll(total, { interval: 5 }).toBeGreaterThan(before);
    await sleep(round * 40);
    await server.end("SIGKILL");
    write(500);
    if (round === 0) {
      renameSync(path, `${path}.1`);
      writeFileSync(path, "");
      write(1000);
    }
  }
  await start();
  await expect.poll(total).toBe(written);
  const aggs = { numbers: { cardinality: { field: "raw.signature_id" } } };
  const { data } = await ask<{ data: { total: number; aggregations: { numbers: { value: number } } } }>(
    "/v1/events/search",
    { query: { bool: { must: [] } }, limit: 0, aggs },
  );
  expect(data).toMatchObject({ total: written, aggregations: { numbers: { value: written } } });
  const { data: collectors } = await ask<{ data: { eve_file: object } }>("/v1/collectors");
  expect(collectors.eve_file).toMatchObject({ path, state: "reading", lag_bytes: 0 });
  expect(await server.end()).toBe(0);
});
