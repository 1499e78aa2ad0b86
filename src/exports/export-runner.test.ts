import { DuckDBInstance } from "@duckdb/node-api";
import { existsSync, mkdirSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { idMaker } from "../lib/id.ts";
import { DAY_MS } from "../lib/time.ts";
import { ALWAYS } from "../model/condition.ts";
import type { Event, EventDraft, JsonObject } from "../model/event.ts";
import type { ExportFormat, ExportJob, ExportQuery, ParquetTask } from "../model/export.ts";
import { changed } from "../../test/api-server.ts";
import { openStore } from "../store/open-store.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import { DEFAULT_COLUMNS } from "./export-columns.ts";
import { readCsv } from "./csv-reader.fixture.ts";
import {
  EXPORTS_KEPT_PER_KEY_MAX,
  EXPORTS_QUEUED_MAX,
  EXPORTS_UNFINISHED_PER_KEY_MAX,
  TooManyExports,
} from "./export-jobs.ts";
import { openExportRunner, type ExportRunner } from "./export-runner.ts";
import { convertToParquet } from "../store/duckdb/parquet/convert-to-parquet.ts";
import { exportsFolder, parquetScratch } from "../store/files/layout.ts";

let dataDir: string;
let store: Store;
let runner: ExportRunner;
// All tests share one store. Each test exports events of its own days and leaves no export behind.
let start = Date.parse("2026-11-15T08:00:00Z");
let now = start;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "tocsin-exports-"));
  await open();
});
beforeEach(() => {
  start += 3 * DAY_MS;
  now = start;
});
afterEach(async () => {
  for (const { id } of await store.exports.list()) await runner.cancel(id);
  await vi.waitFor(async () => expect([await store.exports.list(), files()]).toEqual([[], []]), WAIT_OPTIONS);
});
afterAll(async () => {
  await close();
  await rm(dataDir, { recursive: true, force: true });
});

const WAIT_OPTIONS = { timeout: 100_000 };
const log = pino({ level: "silent" });

async function open(): Promise<void> {
  const registry = new Registry();
  store = await openStore({ dataDir, platform: "platform", indexPrefix: "tocsin", registry, log, now: () => now });
  runner = await runnerFor(store);
}

const folder = () => exportsFolder(dataDir);
const convert = (task: ParquetTask, signal: AbortSignal) => convertToParquet(task, parquetScratch(dataDir), signal);

function runnerFor(store: Parameters<typeof openExportRunner>[0]["store"]): Promise<ExportRunner> {
  return openExportRunner({
    store,
    folder: folder(),
    convertToParquet: convert,
    log,
    registry: new Registry(),
    now: () => now,
  });
}

async function close(): Promise<void> {
  await runner.close();
  await store.close();
}

const draft = (raw: JsonObject, secondsBefore = 0): EventDraft => ({
  type: "login_failure",
  source: "custom",
  severity: "low",
  class: "security",
  timestampMs: start - secondsBefore * 1000,
  raw,
  enrichment: {},
});

async function append(drafts: readonly EventDraft[]): Promise<Event[]> {
  const stored: Event[] = [];
  for (let at = 0; at < drafts.length; at += 1000) {
    const some = await store.events.append(drafts.slice(at, at + 1000).map((draft) => ({ draft })));
    for (const { text } of some) stored.push(JSON.parse(text) as Event);
  }
  return stored;
}

const many = (count: number) => append(Array.from({ length: count }, (_, n) => draft({ n }, count - n)));

let owners = 0;
function create(
  format: ExportFormat,
  question: Partial<ExportQuery> = {},
  owner = `key_${owners++}`,
): Promise<ExportJob> {
  const everything: ExportQuery = { condition: ALWAYS, fields: null, fromMs: start - DAY_MS };
  return runner.create({ format, question: { ...everything, ...question }, owner });
}

async function finished(id: string): Promise<ExportJob> {
  for (;;) {
    const job = runner.get(id)!;
    if (job.status === "completed" || job.status === "failed") return job;
    await sleep(5);
  }
}

async function fetched(id: string): Promise<string> {
  const job = await finished(id);
  expect(job.error).toBeNull();
  const download = (await runner.openDownload(id))!;
  const content = await text(download.stream);
  expect(Buffer.byteLength(content)).toBe(job.sizeBytes);
  expect(download.sizeBytes).toBe(job.sizeBytes);
  return content;
}

const files = () => readdirSync(folder()).sort();

async function readParquet(path: string): Promise<{ columns: string[]; rows: Record<string, unknown>[] }> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  try {
    const reader = await connection.runAndReadAll(`SELECT * FROM read_parquet('${path}') ORDER BY ALL`);
    return { columns: reader.columnNames(), rows: reader.getRowObjectsJson() };
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

const AWKWARD: JsonObject[] = [
  { user: "=cmd()", src_ip: "192.0.2.1", dst_port: -5 },
  { user: 'say "hi", then\r\ngo', host: ["a", "b"], nested: { deep: [{ x: 1 }, { x: "two" }] } },
  { user: "Zürich 東京 🚨", "dotted.key": 1, empty: {}, nothing: null },
  { host: "line\nbreak", dst_port: "text where a number is usual" },
];

describe("a completed export contains every matching event, oldest first,", () => {
  it("as csv", async () => {
    const events = await append(AWKWARD.map((raw, n) => draft(raw, 100 - n)));
    const [header, ...rows] = readCsv(await fetched((await create("csv")).id));
    expect(header).toEqual(DEFAULT_COLUMNS);
    const column = (name: string) => rows.map((row) => row[DEFAULT_COLUMNS.indexOf(name)]);
    expect(column("id")).toEqual(events.map(({ id }) => id));
    expect(column("timestamp")).toEqual(events.map(({ timestamp }) => timestamp));
    expect(column("raw.user")).toEqual(["'=cmd()", 'say "hi", then\r\ngo', "Zürich 東京 🚨", ""]);
    expect(column("raw.host")).toEqual(["", "a; b", "", "line\nbreak"]);
    expect(column("raw.dst_port")).toEqual(["-5", "", "", "text where a number is usual"]);
    expect(column("raw").map((cell) => JSON.parse(cell!) as unknown)).toEqual(events.map(({ raw }) => raw));
  });

  it("as json and ndjson", async () => {
    const events = await append(AWKWARD.map((raw, n) => draft(raw, 100 - n)));
    expect(JSON.parse(await fetched((await create("json")).id))).toEqual(events);
    const lines = (await fetched((await create("ndjson")).id)).trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(events);
  });

  it("as parquet", async () => {
    const events = await append(AWKWARD.map((raw, n) => draft(raw, 100 - n)));
    const job = await finished((await create("parquet")).id);
    expect(job).toMatchObject({ status: "completed", rowCount: events.length, error: null });
    const { columns, rows } = await readParquet(join(folder(), `${job.id}.parquet`));
    expect(columns).toEqual(DEFAULT_COLUMNS);
    expect(rows.map(({ id }) => id)).toEqual(events.map(({ id }) => id));
    expect(rows.map((row) => row["raw.user"])).toEqual(events.map(({ raw }) => raw.user ?? null));
    expect(rows.map((row) => row["raw.dst_port"])).toEqual([-5, null, null, null]);
    expect(rows.map((row) => row["raw.host"])).toEqual([null, "a; b", null, "line\nbreak"]);
    expect(rows.map(({ raw }) => JSON.parse(raw as string) as unknown)).toEqual(events.map(({ raw }) => raw));
  });

  it("with only the named fields", async () => {
    await append([draft({ a: { b: [1, 2] }, user: "ada" })]);
    const fields = ["raw.user", "raw.a.b", "severity"];
    expect(readCsv(await fetched((await create("csv", { fields })).id))).toEqual([fields, ["ada", "1; 2", "low"]]);
    const row = { "raw.user": "ada", "raw.a.b": [1, 2], severity: "low" };
    expect(JSON.parse(await fetched((await create("json", { fields })).id))).toEqual([row]);
    expect(JSON.parse(await fetched((await create("ndjson", { fields })).id))).toEqual(row);
    const job = await finished((await create("parquet", { fields })).id);
    const { columns, rows } = await readParquet(join(folder(), `${job.id}.parquet`));
    expect(columns).toEqual(fields);
    expect(rows[0]).toMatchObject({ "raw.user": "ada", severity: "low" });
  });

  it("within the requested time range and condition", async () => {
    const events = await many(500);
    const question: Partial<ExportQuery> = {
      fromMs: Date.parse(events[100]!.timestamp),
      toMs: Date.parse(events[400]!.timestamp),
      condition: { kind: "test", field: "raw.n", operator: "gte", value: 390, ignoreCase: false },
    };
    expect(JSON.parse(await fetched((await create("json", question)).id))).toEqual(events.slice(390, 400));
  });

  it("with events of the maximum size of a submission", async () => {
    const large = "=x\n".repeat(300_000);
    await append(Array.from({ length: 40 }, (_, n) => draft({ n, large }, 100 - n)));
    const rows = readCsv(await fetched((await create("csv", { fields: ["raw.n", "raw.large"] })).id));
    expect(rows).toHaveLength(41);
    expect(rows.at(-1)).toEqual(["39", `'${large}`]);
  });

  it("and is valid without any events", async () => {
    expect(readCsv(await fetched((await create("csv")).id))).toEqual([DEFAULT_COLUMNS]);
    expect(JSON.parse(await fetched((await create("json")).id))).toEqual([]);
    expect(await fetched((await create("ndjson")).id)).toBe("");
    const job = await finished((await create("parquet")).id);
    expect(job).toMatchObject({ status: "completed", rowCount: 0 });
    expect((await readParquet(join(folder(), `${job.id}.parquet`))).columns).toEqual(DEFAULT_COLUMNS);
  });
});

describe("the queue", () => {
  it("runs one export at a time and leaves one file for each", async () => {
    await many(3000);
    const jobs = await Promise.all((["csv", "json", "ndjson", "parquet"] as const).map((format) => create(format)));
    for (const { id } of jobs) expect(await finished(id)).toMatchObject({ status: "completed", rowCount: 3000 });
    expect(files()).toEqual(jobs.map(({ id, format }) => `${id}.${format}`).sort());
  });

  it("refuses exports past its limit", async () => {
    const created = Array.from({ length: EXPORTS_QUEUED_MAX }, () => create("csv"));
    await expect(create("csv")).rejects.toThrow(StoreUnavailable);
    await Promise.all(created);
  });

  it("limits the unfinished exports of one key and alternates between keys", async () => {
    await many(3000);
    const greedy = await Promise.all(
      Array.from({ length: EXPORTS_UNFINISHED_PER_KEY_MAX }, () => create("csv", {}, "key_greedy")),
    );
    await expect(create("csv", {}, "key_greedy")).rejects.toThrow(TooManyExports);
    const other = await create("csv", {}, "key_other");
    await finished(other.id);
    expect(runner.get(greedy.at(-1)!.id)!.status).toBe("pending");
    for (const { id } of greedy) await finished(id);
    expect((await create("csv", {}, "key_greedy")).status).toBe("pending");
  });

  it("limits the stored exports of one key until one is deleted", async () => {
    const question = { toMs: start - DAY_MS };
    const first = await finished((await create("csv", question, "key_collector")).id);
    // Every export starts a thread: all but the first and the last are stored as an earlier process would have left them.
    await runner.close();
    const nextId = idMaker("exp_", () => now, first.id);
    for (let n = 2; n < EXPORTS_KEPT_PER_KEY_MAX; n++)
      await store.exports.put({ ...first, id: nextId(), status: "failed" });
    runner = await runnerFor(store);
    await finished((await create("csv", question, "key_collector")).id);
    await expect(create("csv", {}, "key_collector")).rejects.toThrow(/delete one/);
    expect((await create("csv")).owner).toMatch(/^key_/);
    await runner.cancel(first.id);
    expect((await create("csv", {}, "key_collector")).status).toBe("pending");
  });

  it("offers no download before an export is completed", async () => {
    const { id } = await create("csv");
    expect(await runner.openDownload(id)).toBeUndefined();
    expect(await runner.openDownload("exp_unknown")).toBeUndefined();
  });
});

describe("cancelling", () => {
  it("aborts a running conversion to Parquet", async () => {
    const [from, to] = [join(dataDir, "rows.ndjson"), join(dataDir, "rows.parquet")];
    writeFileSync(from, `{"a":"${"x".repeat(100)}"}\n`.repeat(20_000));
    const stop = new AbortController();
    const task = { from, to, columns: ["a"], rowBytesMax: 1000 };
    const converted = convert(task, stop.signal);
    stop.abort(new Error("gone"));
    await expect(converted).rejects.toThrow("gone");
    await convert(task, new AbortController().signal);
    expect((await readParquet(to)).rows).toHaveLength(20_000);
  });

  it("removes the file of an export that is written but not yet marked completed", async () => {
    await many(10);
    await runner.close();
    let cancelled: Promise<boolean> | undefined;
    const parts = changed(store.exports, {
      update: (job) => {
        if (job.status === "completed") cancelled ??= runner.cancel(job.id);
        return store.exports.update(job);
      },
    });
    runner = await runnerFor(changed(store, { exports: parts }));
    const { id } = await create("json");
    await vi.waitFor(() => expect(cancelled).toBeDefined(), WAIT_OPTIONS);
    expect(await cancelled).toBe(true);
    await vi.waitFor(() => expect(files()).toEqual([]), WAIT_OPTIONS);
    expect([runner.get(id), await store.exports.list(), await runner.openDownload(id)]).toEqual([
      undefined,
      [],
      undefined,
    ]);
    await runner.close();
    runner = await runnerFor(store);
  });

  it("removes a pending, a running and a completed export with its file", async () => {
    await many(20_000);
    const [completed, running, waiting] = [await create("csv"), await create("csv"), await create("csv")];
    await finished(completed.id);
    while (runner.get(running.id)!.status !== "running") await sleep(1);
    for (const { id } of [waiting, running, completed]) {
      expect(await runner.cancel(id)).toBe(true);
      expect(runner.get(id)).toBeUndefined();
      expect(await store.exports.get(id)).toBeUndefined();
      expect(await runner.cancel(id)).toBe(false);
    }
    const last = await create("ndjson");
    await finished(last.id);
    await vi.waitFor(() => expect(files()).toEqual([`${last.id}.ndjson`]), WAIT_OPTIONS);
  });

  it("persists if the service stops before the running export has aborted", async () => {
    await many(20_000);
    const { id } = await create("csv");
    while (runner.get(id)!.status !== "running") await sleep(1);
    expect(await runner.cancel(id)).toBe(true);
    await close();
    await open();
    expect([runner.get(id), await store.exports.list(), files()]).toEqual([undefined, [], []]);
  });

  it("does not interrupt a download in flight", async () => {
    const events = await many(5000);
    const { id } = await create("json");
    await finished(id);
    const { stream } = (await runner.openDownload(id))!;
    await runner.cancel(id);
    await vi.waitFor(() => expect(files()).toEqual([]), WAIT_OPTIONS);
    expect(JSON.parse(await text(stream))).toEqual(events);
  });
});

describe("a restart", () => {
  it("runs an interrupted export again and keeps completed ones", async () => {
    await many(30_000);
    const done = await create("ndjson");
    const before = await fetched(done.id);
    const { id } = await create("csv");
    while (runner.get(id)!.status !== "running") await sleep(1);
    await close();
    await open();
    expect(await fetched(done.id)).toBe(before);
    expect(readCsv(await fetched(id))).toHaveLength(30_001);
  });

  it("marks a completed export as failed if its file is gone or has another size", async () => {
    await many(10);
    const [gone, cut, whole] = [await create("csv"), await create("json"), await create("ndjson")];
    for (const { id } of [gone, cut, whole]) await finished(id);
    await close();
    const folder = join(dataDir, "exports");
    await rm(join(folder, `${gone.id}.csv`));
    truncateSync(join(folder, `${cut.id}.json`), 10);
    await open();
    for (const { id } of [gone, cut])
      expect(runner.get(id)).toMatchObject({
        status: "failed",
        sizeBytes: null,
        error: expect.stringMatching(/gone/),
      });
    expect(runner.get(whole.id)).toMatchObject({ status: "completed" });
    expect(files()).toEqual([`${whole.id}.ndjson`]);
  });

  it("after a crash removes partial and unknown files", async () => {
    const events = await many(10);
    const { id } = await create("json");
    await finished(id);
    await store.exports.put({ ...runner.get(id)!, status: "running", rowCount: null, sizeBytes: null });
    writeFileSync(join(folder(), `${id}.part`), "half a f");
    writeFileSync(join(folder(), "exp_forgotten.csv"), "nobody knows this one");
    await close();
    await open();
    expect(JSON.parse(await fetched(id))).toEqual(events);
    expect(files()).toEqual([`${id}.json`]);
  });
});

describe("an export expires a day after its creation", () => {
  it("and is no longer returned at once, and its file is removed at the next start", async () => {
    const { id } = await create("csv");
    await finished(id);
    now += 24 * 3_600_000 - 1;
    expect(runner.get(id)).toBeDefined();
    now += 1;
    expect(runner.get(id)).toBeUndefined();
    expect(await runner.openDownload(id)).toBeUndefined();
    await close();
    await open();
    expect(files()).toEqual([]);
    expect(await store.exports.list()).toEqual([]);
  });

  it("and its file is removed within a minute while the service runs", async () => {
    await close();
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      await open();
      const { id } = await create("csv");
      await finished(id);
      now += 24 * 3_600_000;
      vi.advanceTimersByTime(60_000);
      await vi.waitFor(() => expect(files()).toEqual([]), WAIT_OPTIONS);
      expect(await store.exports.list()).toEqual([]);
    } finally {
      vi.useRealTimers();
      await close();
      await open();
    }
  });
});

describe("an export that cannot be written", () => {
  it.skipIf(!existsSync("/dev/full"))("reports a full disk and leaves no file behind", async () => {
    await many(10);
    const { id } = await create("csv");
    symlinkSync("/dev/full", join(folder(), `${id}.part`));
    expect(await finished(id)).toMatchObject({
      status: "failed",
      error: "the disk of the server is full",
      rowCount: null,
    });
    expect(files()).toEqual([]);
    expect(await fetched((await create("csv")).id)).toContain("login_failure");
  });

  it("does not disclose a path of the server", async () => {
    await rm(folder(), { recursive: true });
    const { error } = await finished((await create("csv")).id);
    expect(error).toMatch(/could not write/);
    expect(error).not.toContain(dataDir);
    mkdirSync(folder());
  });

  it("is still marked as failed after a restart", async () => {
    symlinkSync("/dev/full", join(folder(), `${(await create("csv")).id}.part`));
    const { id } = (await store.exports.list())[0]!;
    await finished(id);
    await close();
    await open();
    expect(runner.get(id)?.status).toBe("failed");
  });
});
