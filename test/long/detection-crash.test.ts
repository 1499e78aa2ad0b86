import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { makeKey, startServer } from "../server-process.ts";

// Detection when the process is killed at any moment: every stored event counts once, in one alert per incident.

const USERS = 40;
const ADDRESSES = 120;
const THRESHOLD = 5;
const PATIENCE_MS = 100_000;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-detection-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const RULES = [
  {
    name: "crash.each_user",
    description: "Every failure, one alert for each user",
    severity: "low",
    conditions: [{ field: "type", equals: "login_failure" }],
    dedup: { period: "7d", by: "raw.user" },
    actions: [{ alert: { channels: [] } }],
  },
  {
    name: "crash.each_address",
    description: "Many failures from one address",
    severity: "high",
    conditions: [{ field: "type", equals: "login_failure" }],
    window: "1h",
    threshold: { count: THRESHOLD, group_by: "raw.src_ip" },
    dedup: { period: "7d" },
    actions: [{ alert: { channels: [] } }],
  },
  {
    name: "crash.pair",
    description: "A failure, then a door held, for one user",
    severity: "medium",
    conditions: [],
    window: "1h",
    group_by: "raw.user",
    sequence: [
      { name: "failure", conditions: [{ field: "type", equals: "login_failure" }] },
      { name: "door", conditions: [{ field: "type", equals: "door_held" }] },
    ],
    dedup: { period: "7d" },
    actions: [{ alert: { channels: [] } }],
  },
  {
    name: "crash.never_closed",
    description: "A door held that nobody closes, told of by the clock",
    severity: "medium",
    conditions: [{ field: "raw.user", equals: "user-0" }],
    window: "1s",
    group_by: "raw.user",
    sequence: [
      { name: "held", conditions: [{ field: "type", equals: "door_held" }] },
      { name: "closed", conditions: [{ field: "type", equals: "door_closed" }], absent: true },
    ],
    dedup: { period: "7d" },
    actions: [{ alert: { channels: [] } }],
  },
];

let sent = 0;
const submission = () => {
  const n = sent++;
  return {
    type: n % 3 === 0 ? "door_held" : "login_failure",
    source: "custom",
    data: { n, user: `user-${(n * 7) % USERS}`, src_ip: `192.0.2.${(n * 11) % ADDRESSES}` },
  };
};

type Counts = Record<string, number>;

it("misses no alert, duplicates none and counts every event once, whenever it is killed", async () => {
  const dataDir = join(folder, "killed");
  const key = await makeKey(dataDir);
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const start = async () => {
    const server = await startServer({ dataDir });
    onTestFinished(async () => {
      await server.end("SIGKILL");
    });
    const ask = async (path: string, body?: unknown): Promise<any> => {
      const request = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
      return (await fetch(server.address + path, request)).json();
    };
    return { server, ask };
  };

  const first = await start();
  for (const rule of RULES) expect((await first.ask("/v1/rules", rule)).data.name).toBe(rule.name);
  let running = first;
  for (let round = 0; round < 4; round++) {
    const { server, ask } = running;
    const down = new AbortController();
    const write = async (size: number) => {
      while (!down.signal.aborted) {
        try {
          await ask("/v1/events/batch", Array.from({ length: size }, submission));
        } catch (error) {
          // fetch throws a TypeError when the connection is gone, as it is after a kill.
          if (error instanceof TypeError || error instanceof SyntaxError) return;
          throw error;
        }
      }
    };
    const writers = [1, 3, 50, 200].map(write);
    await sleep(500 + 170 * round);
    await server.end("SIGKILL");
    down.abort();
    await Promise.all(writers);
    running = await start();
  }

  const { ask, server } = running;
  const stored = async (type: string, field: string): Promise<Counts> => {
    const query = { bool: { must: [{ field: "type", equals: type }] } };
    const { data } = await ask("/v1/events/search", {
      query,
      aggs: { by: { terms: { field, size: 1000 } } },
      limit: 0,
    });
    return Object.fromEntries(
      data.aggregations.by.buckets.map((b: { key: string; count: number }) => [b.key, b.count]),
    );
  };
  /** The events of each alert by its group; two alerts of one group are a failure. */
  const alerts = async (name: string): Promise<{ total: number; events: number }> => {
    const found: { id: string; event_count: number }[] = [];
    for (let after = ""; ;) {
      const { data, pagination } = await ask(`/v1/alerts?rule_name=${name}&limit=100${after}`);
      found.push(...data);
      if (pagination.next_cursor === null) break;
      after = `&after=${pagination.next_cursor}`;
    }
    return { total: found.length, events: found.reduce((sum, alert) => sum + alert.event_count, 0) };
  };
  const sum = (counts: Counts) => Object.values(counts).reduce((total, count) => total + count, 0);
  const byUser = await stored("login_failure", "raw.user");
  const byAddress = await stored("login_failure", "raw.src_ip");
  const many = Object.fromEntries(Object.entries(byAddress).filter(([, count]) => count >= THRESHOLD));
  expect(sum(byUser)).toBeGreaterThan(1000);

  const until = Date.now() + PATIENCE_MS;
  let each = await alerts("crash.each_user");
  while (each.events < sum(byUser) && Date.now() < until) {
    await sleep(100);
    each = await alerts("crash.each_user");
  }
  expect(each).toEqual({ total: Object.keys(byUser).length, events: sum(byUser) });
  expect(await alerts("crash.each_address")).toEqual({ total: Object.keys(many).length, events: sum(many) });
  expect((await alerts("crash.pair")).total).toBe(USERS);
  const held = (await stored("door_held", "raw.user"))["user-0"]!;
  let neverClosed = await alerts("crash.never_closed");
  while (neverClosed.events < held && Date.now() < until) {
    await sleep(100);
    neverClosed = await alerts("crash.never_closed");
  }
  expect(neverClosed).toEqual({ total: 1, events: held });
  const rules = (await ask("/v1/rules?search=crash.")).data as { name: string; stats: { matches_24h: number } }[];
  const matches = Object.fromEntries(rules.map(({ name, stats }) => [name, stats.matches_24h]));
  expect(matches["crash.each_user"]).toBe(sum(byUser));
  expect(matches["crash.each_address"]).toBe(sum(byUser));
  expect(matches["crash.pair"]).toBe(sum(byUser) + sum(await stored("door_held", "raw.user")));
  expect(await server.end()).toBe(0);
});
