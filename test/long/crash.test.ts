import {
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { DAY_MS } from "../../src/lib/time.ts";
import { columnsFile, eventsFolder } from "../../src/store/files/layout.ts";
import { makeKey, startServer, type ServerOptions, type ServerProcess } from "../server-process.ts";
import { makeSmallDisk } from "../small-disk.ts";

// The real server under failure: killed, files damaged, disk full.

const BATCH_SIZE = 200;
const READS_AT_ONCE = 16;
/** Single look-ups sample the ids evenly, so that every commit is covered; the list is compared in full. */
const LOOKED_UP_MAX = 1000;
const REBUILD_MS_MAX = 100_000;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-crash-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function freshDataDir(name: string): Promise<{ dataDir: string; key: string }> {
  const dataDir = join(folder, name);
  return { dataDir, key: await makeKey(dataDir) };
}

/** A server that is killed at the end of the test, whatever its state. */
async function serve(options: ServerOptions): Promise<ServerProcess> {
  const server = await startServer(options);
  onTestFinished(async () => {
    await server.end("SIGKILL");
  });
  return server;
}

interface Body {
  readonly data: { id: string; ids: string[]; total: number; aggregations: unknown } & { id: string }[];
  readonly pagination: { total: number; next_cursor: string | null };
  readonly error: { code: string };
}

interface Reply {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly body: Body;
}

type Ask = (path: string, body?: unknown) => Promise<Reply>;

const client =
  ({ address }: ServerProcess, key: string): Ask =>
  async (path, body) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const request = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(address + path, request);
    const retryAfter = response.headers.get("retry-after");
    return { status: response.status, retryAfter, body: (await response.json()) as Body };
  };

/** Events of today and yesterday, so that one commit writes two files. */
const submission = (n: number) => ({
  type: n % 3 === 0 ? "login_failure" : "door_held",
  source: "custom",
  timestamp: new Date(Date.now() - (n % 5 === 0 ? DAY_MS : 0)).toISOString(),
  severity: n % 7 === 0 ? "high" : "low",
  data: {
    n,
    user: `user-${n % 50}`,
    src_ip: `192.0.2.${n % 200}`,
    message: "a line of a log that is long enough to matter",
  },
});

/** Submits single events and batches on several connections until stopped or the server is gone. */
function startWriters(ask: Ask): { readonly acknowledged: string[]; stop(): Promise<void> } {
  const acknowledged: string[] = [];
  const stopping = new AbortController();
  let sent = 0;
  const write = async (size: number) => {
    while (!stopping.signal.aborted) {
      const events = Array.from({ length: size }, () => submission(sent++));
      try {
        const reply = size === 1 ? await ask("/v1/events", events[0]) : await ask("/v1/events/batch", events);
        if (reply.status < 300) acknowledged.push(...(size === 1 ? [reply.body.data.id] : reply.body.data.ids));
      } catch (error) {
        // fetch throws a TypeError when the connection is gone, as it is after a kill.
        if (error instanceof TypeError || error instanceof SyntaxError) return;
        throw error;
      }
    }
  };
  const writers = [1, 1, 1, 1, BATCH_SIZE, BATCH_SIZE].map(write);
  return {
    acknowledged,
    stop: async () => {
      stopping.abort();
      await Promise.all(writers);
    },
  };
}

/** Every event in the list, and the reported total. */
async function walk(ask: Ask): Promise<{ ids: string[]; total: number }> {
  const ids: string[] = [];
  for (let after = ""; ;) {
    const { status, body } = await ask(`/v1/events?limit=100${after}`);
    expect(status).toBe(200);
    ids.push(...body.data.map(({ id }) => id));
    if (body.pagination.next_cursor === null) return { ids, total: body.pagination.total };
    after = `&after=${body.pagination.next_cursor}`;
  }
}

/** The ids that a single look-up does not find, from an even sample. */
async function missing(ask: Ask, ids: readonly string[]): Promise<string[]> {
  const lost: string[] = [];
  const step = Math.ceil(ids.length / LOOKED_UP_MAX);
  const lookedUp = ids.filter((_, at) => at % step === 0);
  let next = 0;
  const look = async () => {
    for (let id = lookedUp[next++]; id !== undefined; id = lookedUp[next++]) {
      if ((await ask(`/v1/events/${id}`)).status !== 200) lost.push(id);
    }
  };
  await Promise.all(Array.from({ length: READS_AT_ONCE }, look));
  return lost;
}

/** Lists, totals and look-ups agree and contain every acknowledged event. */
async function expectAll(ask: Ask, acknowledged: readonly string[]): Promise<void> {
  const { ids, total } = await walk(ask);
  const listed = new Set(ids);
  expect(listed.size).toBe(ids.length);
  expect(total).toBe(ids.length);
  const totalOf = async (type: string) => (await ask(`/v1/events?type=${type}&per_page=1`)).body.pagination.total;
  expect((await totalOf("login_failure")) + (await totalOf("door_held"))).toBe(total);
  expect(acknowledged.filter((id) => !listed.has(id))).toEqual([]);
  expect(await missing(ask, acknowledged)).toEqual([]);
}

it("loses no acknowledged event over three kills under load, and never reuses an id", async () => {
  const { dataDir, key } = await freshDataDir("killed");
  const acknowledged: string[] = [];
  for (let round = 0; round < 3; round++) {
    const server = await serve({ dataDir });
    const writers = startWriters(client(server, key));
    await sleep(700 + 400 * round);
    // A crowded machine needs longer to acknowledge anything.
    while (writers.acknowledged.length <= BATCH_SIZE) await sleep(20);
    await server.end("SIGKILL");
    await writers.stop();

    const again = await serve({ dataDir });
    const newest = acknowledged.reduce((max, id) => (id > max ? id : max), "");
    expect(writers.acknowledged.every((id) => id > newest)).toBe(true);
    acknowledged.push(...writers.acknowledged);
    expect(new Set(acknowledged).size).toBe(acknowledged.length);
    await expectAll(client(again, key), acknowledged);
    expect(await again.end()).toBe(0);
  }
});

const QUESTION = {
  query: {},
  aggs: { types: { terms: { field: "type" } }, users: { cardinality: { field: "raw.user" } } },
  limit: 0,
};

function overwrite(path: string, share: number): void {
  const file = openSync(path, "r+");
  const noise = Buffer.alloc(64 * 1024, 0xa5);
  writeSync(file, noise, 0, noise.length, Math.floor(statSync(path).size * share));
  closeSync(file);
}

function truncate(path: string, bytesOff: number): void {
  const file = openSync(path, "r+");
  ftruncateSync(file, Math.max(0, statSync(path).size - bytesOff));
  closeSync(file);
}

it("rebuilds the columns from the journal, however their file is damaged", async () => {
  const { dataDir, key } = await freshDataDir("columns");
  const columns = columnsFile(dataDir);
  const server = await serve({ dataDir });
  const ask = client(server, key);
  for (let at = 0; at < 20_000; at += 2000) {
    const events = Array.from({ length: 2000 }, (_, n) => submission(at + n));
    expect((await ask("/v1/events/batch", events)).status).toBe(200);
  }
  const right = (await ask("/v1/events/search", QUESTION)).body.data;
  expect(right.total).toBe(20_000);
  expect(await server.end()).toBe(0);

  const damages: Record<string, () => unknown> = {
    "the beginning overwritten": () => overwrite(columns, 0),
    "the middle overwritten": () => overwrite(columns, 0.5),
    "cut in half": () => truncate(columns, Math.ceil(statSync(columns).size / 2)),
    empty: () => truncate(columns, statSync(columns).size),
    "not there": () => rm(columns),
    "text in its place": () => writeFile(columns, "this is no column file"),
  };
  for (const [name, damage] of Object.entries(damages)) {
    await damage();
    const again = await serve({ dataDir });
    const search = client(again, key);
    const until = performance.now() + REBUILD_MS_MAX;
    let reply = await search("/v1/events/search", QUESTION);
    // During the rebuild the server may answer 503, but never wrongly.
    while (reply.status === 503 && performance.now() < until) {
      await sleep(100);
      reply = await search("/v1/events/search", QUESTION);
    }
    expect(reply.status, name).toBe(200);
    expect(reply.body.data, name).toEqual(right);
    expect((await search("/v1/events?severity=high")).body.pagination.total, name).toBe(2858);
    expect(await again.end(), name).toBe(0);
  }
});

it("serves the intact part of a journal whose last bytes never reached the disk", async () => {
  const { dataDir, key } = await freshDataDir("torn");
  const server = await serve({ dataDir });
  const writers = startWriters(client(server, key));
  await sleep(1000);
  await server.end("SIGKILL");
  await writers.stop();

  const logs = readdirSync(eventsFolder(dataDir)).filter((name) => name.endsWith("-wal"));
  expect(logs.length).toBeGreaterThan(0);
  for (const name of logs) truncate(join(eventsFolder(dataDir), name), 5000);

  const again = await serve({ dataDir });
  const ask = client(again, key);
  const { ids, total } = await walk(ask);
  expect(total).toBe(ids.length);
  // Only events in the truncated bytes may be missing: the last few groups.
  expect(ids.length).toBeGreaterThan(writers.acknowledged.length / 2);
  const counted = await ask("/v1/events/search", QUESTION);
  expect(counted.body.data.total).toBe(total);
  expect(await missing(ask, ids)).toEqual([]);

  const later = (await ask("/v1/events", submission(1))).body.data.id;
  expect([...ids, ...writers.acknowledged].every((id) => id < later)).toBe(true);
  await expectAll(ask, [...ids, later]);
});

/** Makes the page with this text unreadable, but no page that a start reads. */
function spoilPageOf(path: string, marker: string): void {
  const db = new DatabaseSync(path);
  const { page_size: pageSize } = db.prepare("PRAGMA page_size").get() as { page_size: number };
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
  const bytes = readFileSync(path);
  const TABLE_LEAF = 13;
  for (let at = bytes.indexOf(marker); at >= 0; at = bytes.indexOf(marker, at + 1)) {
    const page = at - (at % pageSize);
    if (bytes[page] !== TABLE_LEAF) continue;
    bytes[page] = 0x77;
    writeFileSync(path, bytes);
    return;
  }
  throw new Error("no page of events has it");
}

it("keeps running beside a damaged page that its start did not read, and answers 503 to reads of that page", async () => {
  const { dataDir, key } = await freshDataDir("page");
  const first = await serve({ dataDir, variables: { TOCSIN_ANALYSIS_AUTOMATIC_FROM: "off" } });
  const ask = client(first, key);
  const rule = {
    name: "test.marked",
    description: "Marked",
    severity: "high",
    conditions: [{ field: "type", equals: "marked" }],
    actions: [{ alert: { channels: [] } }],
  };
  expect((await ask("/v1/rules", rule)).status).toBe(201);
  const events = Array.from({ length: 500 }, () => ({ ...submission(1), data: { text: "x".repeat(400) } }));
  expect((await ask("/v1/events/batch", events)).status).toBe(200);
  const marked = { type: "marked", source: "custom", data: { marker: "ZZMARKERZZ", text: "y".repeat(6000) } };
  const { id } = (await ask("/v1/events", marked)).body.data;
  const last = await ask("/v1/events/batch", events);
  let alerts = (await ask("/v1/alerts")).body.data;
  for (; alerts.length === 0; alerts = (await ask("/v1/alerts")).body.data) await sleep(50);
  expect(await first.end()).toBe(0);
  const day = readdirSync(eventsFolder(dataDir)).find((name) => name.endsWith(".db"));
  spoilPageOf(join(eventsFolder(dataDir), day!), marked.data.marker);

  const again = await serve({ dataDir });
  const look = client(again, key);
  const logged = () => readFileSync(`${dataDir}.log`, "utf8");
  for (let i = 0; i < 600 && !logged().includes("its automatic analysis is skipped"); i++) await sleep(50);
  expect(logged()).toMatch(/The file .* is damaged.*its automatic analysis is skipped/);
  const alert = `/v1/alerts/${alerts[0]!.id}`;
  for (const path of [`/v1/events/${id}`, "/v1/events?type=marked", alert]) {
    expect([path, await look(path)]).toMatchObject([path, { status: 503, body: { error: { code: "unavailable" } } }]);
  }
  expect(await look(`${alert}/analyze`, {})).toMatchObject({ status: 503 });
  expect((await look(`/v1/events/${last.body.data.ids.at(-1)}`)).status).toBe(200);
  expect(logged()).not.toContain('"level":"fatal"');
  expect(await again.end()).toBe(0);
});

/** Undefined if the file does not exist. */
function tablesIn(path: string): number | undefined {
  if (!existsSync(path)) return undefined;
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return db.prepare("SELECT name FROM sqlite_master").all().length;
  } finally {
    db.close();
  }
}

it("answers 503 while the disk is full, loses nothing, and recovers once there is space", async ({ skip }) => {
  const disk = await makeSmallDisk(folder);
  if (!disk) return skip("this process may neither mount a small disk nor limit the size of files");
  const { dataDir, shellBefore } = disk;
  const key = await makeKey(dataDir);
  const server = await serve({ dataDir, ...(shellBefore ? { shellBefore } : {}) });
  const ask = client(server, key);
  const acknowledged: string[] = [];
  let sent = 0;
  const submitBatch = async () => {
    const reply = await ask(
      "/v1/events/batch",
      Array.from({ length: 500 }, () => submission(sent++)),
    );
    if (reply.status < 300) acknowledged.push(...reply.body.data.ids);
    return reply;
  };
  for (let batch = 0; batch < 5; batch++) expect((await submitBatch()).status).toBe(200);

  await disk.fill(server);
  let reply = await submitBatch();
  while (reply.status === 200) reply = await submitBatch();
  expect(reply).toMatchObject({ status: 503, body: { error: { code: "unavailable" } } });
  expect(Number(reply.retryAfter)).toBeGreaterThan(0);
  let single = await ask("/v1/events", submission(sent++));
  for (; single.status === 201; single = await ask("/v1/events", submission(sent++)))
    acknowledged.push(single.body.data.id);
  expect(single).toMatchObject({ status: 503, body: { error: { code: "unavailable" } } });
  expect(await ask("/readyz")).toMatchObject({ status: 503, body: { error: { code: "unavailable" } } });
  // A new day's file without space for its tables is not left behind half created.
  for (let day = 10; day < 14; day++) {
    const timestamp = new Date(Date.now() - day * DAY_MS);
    const older = await ask("/v1/events", { ...submission(sent++), timestamp });
    if (older.status === 201) acknowledged.push(older.body.data.id);
    else expect(older.status).toBe(503);
    const name = `tocsin-events-${timestamp.toISOString().slice(0, 10).replaceAll("-", ".")}.db`;
    expect(tablesIn(join(eventsFolder(dataDir), name))).not.toBe(0);
  }
  // Reads still work, including those that would first flush detection's state.
  expect((await ask("/v1/events?per_page=5")).body.data).toHaveLength(5);
  expect((await ask("/v1/rules?per_page=5")).body.data).toHaveLength(5);
  // Other writes either fit into the remaining space or are refused.
  const rule = {
    name: "crash.rule",
    description: "A rule",
    severity: "low",
    conditions: [{ field: "type", equals: "x" }],
    actions: [{ alert: { channels: [] } }],
  };
  const week = { from: "2026-01-01", to: "2026-01-08" };
  for (const [path, body] of [
    ["/v1/rules", rule],
    ["/v1/keys", { name: "another", scopes: ["events:read"] }],
    ["/v1/events/export", { format: "ndjson", time_range: week }],
  ] as const)
    expect([201, 202, 503], path).toContain((await ask(path, body)).status);

  await disk.makeRoom(server);
  const until = performance.now() + REBUILD_MS_MAX;
  // The server notices the free space without a write.
  while ((await ask("/readyz")).status !== 200 && performance.now() < until) await sleep(200);
  expect((await ask("/readyz")).status).toBe(200);
  while ((await submitBatch()).status !== 200 && performance.now() < until) await sleep(200);
  expect((await submitBatch()).status).toBe(200);
  expect((await ask("/readyz")).status).toBe(200);
  await expectAll(ask, acknowledged);
  expect(await server.end()).toBe(0);

  const again = await serve({ dataDir });
  await expectAll(client(again, key), acknowledged);
  expect(await again.end()).toBe(0);
});
