import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { DuckDBInstance } from "@duckdb/node-api";
import pino from "pino";
import { afterEach, expect, test } from "vitest";
import { DAY_MS } from "../../../lib/time.ts";
import { flowRowsOf, type FlowRow } from "../../../model/flow-rows.ts";
import { FLOW_WINDOW_MS } from "../../../model/flow.ts";
import { openFlowDatabase, type FlowDatabase } from "./flow-database.ts";

const DAY = Date.UTC(2026, 5, 15);
const folders: string[] = [];
const opened: FlowDatabase[] = [];
afterEach(async () => {
  for (const flows of opened.splice(0)) await flows.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const newFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-flows-"));
  folders.push(folder);
  return folder;
};
const logged: Record<string, unknown>[] = [];
const log = pino({ level: "warn" }, { write: (line: string) => void logged.push(JSON.parse(line)) });
const open = async (dataDir: string) => {
  const flows = await openFlowDatabase({ dataDir, indexPrefix: "site", log, now: () => DAY });
  opened.push(flows);
  await flows.start();
  return flows;
};
const close = async (flows: FlowDatabase) => {
  opened.splice(opened.indexOf(flows), 1);
  await flows.close();
};
const filesOf = (dataDir: string) =>
  readdirSync(join(dataDir, "flows"))
    .filter((name) => name !== "scratch")
    .sort();
const rowAt = (windowStartMs: number, srcPort = 1): FlowRow => ({
  windowStartMs,
  src: "10.0.0.1",
  dst: "192.0.2.9",
  srcPort,
  dstPort: 443,
  protocol: 6,
  tcpFlags: 27,
  bytes: 1000n,
  packets: 10n,
  firstSeenMs: windowStartMs,
  lastSeenMs: windowStartMs + 5,
  exporter: "192.0.2.1",
  version: 9,
});
const rowsAt = (start: number, count: number) =>
  flowRowsOf(Array.from({ length: count }, (_, nth) => rowAt(start, nth & 0xffff)));

test("a query during close is answered or refused, also while cached blocks are being released", async () => {
  const dataDir = newFolder();
  const talkers = { filter: { fromMs: DAY, toMs: DAY + DAY_MS }, dimension: "src", by: "bytes", limit: 5 } as const;
  for (let round = 0; round < 8; round++) {
    const flows = await openFlowDatabase({ dataDir, indexPrefix: "site", idleMs: 4, log, now: () => DAY });
    await flows.start();
    if (round === 0) await flows.append(rowsAt(DAY, 50_000), "batch");
    await flows.topTalkers(talkers);
    await sleep(4 + round);
    const [outcome] = await Promise.allSettled([flows.topTalkers(talkers), flows.close()]);
    if (outcome.status === "fulfilled") expect(outcome.value).toHaveLength(1);
    else expect(outcome.reason).toMatchObject({ name: "StoreUnavailable", reason: "closed" });
  }
});

test("queries of a client that has gone are cancelled, running or queued, and the next one is answered", async () => {
  const flows = await open(newFolder());
  await flows.append(rowsAt(DAY, 50_000), "batch");
  const filter = { fromMs: DAY, toMs: DAY + DAY_MS };
  const stop = new AbortController();
  const context = { client: "key", signal: stop.signal };
  const order = { sort: "timestamp", descending: true } as const;
  const queries = [
    flows.list(filter, order, 0, 10, context),
    flows.topTalkers({ filter, dimension: "pair", by: "bytes", limit: 5 }, context),
    flows.protocols(filter, context),
    flows.timeseries({ filter, intervalMs: 60_000, by: "bytes", limit: 5 }, context),
  ];
  stop.abort(new Error("gone"));
  for (const outcome of await Promise.allSettled<unknown>(queries)) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { message: "gone" } });
  }
  expect((await flows.list(filter, order, 0, 10, { client: "key" })).total).toBe(50_000);
});

test("the queries in flight of one client are limited; refusals are counted, and other clients are answered", async () => {
  const flows = await open(newFolder());
  await flows.append(rowsAt(DAY, 50_000), "batch");
  const talkers = { filter: {}, dimension: "pair", by: "bytes", limit: 5 } as const;
  const queries = Promise.allSettled(Array.from({ length: 60 }, () => flows.topTalkers(talkers, { client: "key" })));
  expect(await flows.topTalkers(talkers, { client: "other" })).toHaveLength(1);
  const refused = (await queries).filter((outcome) => outcome.status === "rejected");
  for (const { reason } of refused) expect(reason).toMatchObject({ name: "StoreUnavailable", reason: "queue_full" });
  expect(refused.length).toBeGreaterThan(0);
  expect(flows.refused).toBe(refused.length);
});

test("the file of the current day is created at the start, others with their first row, each named after its day", async () => {
  const folder = newFolder();
  const flows = await open(folder);
  expect(filesOf(folder)).toContain("site-flows-2026.06.15.duckdb");
  await flows.append(rowsAt(DAY + DAY_MS - FLOW_WINDOW_MS, 2), "a");
  await close(flows);
  // After the checkpoint no log is left.
  expect(filesOf(folder)).toEqual(["site-flows-2026.06.15.duckdb", "site-flows-2026.06.16.duckdb"]);
});

test("removing a day frees its disk space at once", async () => {
  const folder = newFolder();
  const flows = await open(folder);
  await flows.append(rowsAt(DAY - 3 * DAY_MS, 50_000), "a");
  await close(flows);
  const again = await open(folder);
  const sizeOf = (name: string) => statSync(join(folder, "flows", name)).size;
  const sizes = () => filesOf(folder).reduce((sum, name) => sum + sizeOf(name), 0);
  const before = sizes();
  const removed = sizeOf("site-flows-2026.06.12.duckdb");
  expect(await again.removeBefore(DAY)).toEqual({ days: 1, flows: 50_000 });
  expect(sizes()).toBe(before - removed);
  expect(filesOf(folder)).toEqual(["site-flows-2026.06.15.duckdb"]);
});

test("a file that cannot be read is renamed and logged, and does not affect the others", async () => {
  for (const damage of [
    (file: string) => writeFileSync(file, Buffer.alloc(20_000, 0x5a)),
    (file: string) => truncateSync(file, 5000),
  ]) {
    const folder = newFolder();
    const flows = await open(folder);
    await flows.append(rowsAt(DAY, 10), "a");
    await flows.append(rowsAt(DAY + DAY_MS, 10), "b");
    await close(flows);
    damage(join(folder, "flows", "site-flows-2026.06.15.duckdb"));
    logged.length = 0;
    const again = await open(folder);
    expect(logged).toHaveLength(1);
    expect(JSON.stringify(logged)).toContain("site-flows-2026.06.15.duckdb");
    expect(await again.count()).toBe(10);
    expect(filesOf(folder).filter((name) => name.endsWith(".damaged"))).toHaveLength(1);
    await again.append(rowsAt(DAY, 5), "c");
    expect(await again.count()).toBe(15);
  }
});

test("a file or log that is removed or replaced while it is open accepts no more rows", async () => {
  const tamperings: [string, (file: string) => void][] = [
    [".duckdb", (file) => rmSync(file)],
    [".duckdb", (file) => renameSync(file, `${file}.away`)],
    [".duckdb", (file) => (copyFileSync(file, `${file}.copy`), renameSync(`${file}.copy`, file))],
    [".duckdb.wal", (file) => rmSync(file)],
  ];
  for (const [suffix, tamper] of tamperings) {
    const folder = newFolder();
    const flows = await open(folder);
    await flows.append(rowsAt(DAY, 10), "a");
    const path = join(folder, "flows", `site-flows-2026.06.15${suffix}`);
    tamper(path);
    for (const batch of ["b", "b", "c"])
      await expect(flows.append(rowsAt(DAY, 10), batch)).rejects.toMatchObject({ reason: "file_gone" });
    expect(await flows.goneFiles()).toMatchObject([{ path }]);
    // Another day is not affected.
    await flows.append(rowsAt(DAY + DAY_MS, 10), "d");
  }
});

test("a day that was not queried yet is not created again when its file vanishes", async () => {
  const folder = newFolder();
  const flows = await open(folder);
  await flows.append(rowsAt(DAY - DAY_MS, 10), "a");
  await close(flows);
  const again = await open(folder);
  rmSync(join(folder, "flows", "site-flows-2026.06.14.duckdb"));
  await expect(again.append(rowsAt(DAY - DAY_MS, 10), "b")).rejects.toMatchObject({ reason: "file_gone" });
});

/** Writes a day's file as the version before NAT columns did, with one row in each of its tables. */
async function writeOldDay(folder: string): Promise<void> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  mkdirSync(join(folder, "flows"), { recursive: true });
  await connection.run(`ATTACH '${join(folder, "flows", "site-flows-2026.06.14.duckdb")}' AS old (BLOCK_SIZE 65536)`);
  const shared = (
    counter: string,
  ) => `exporter_high UBIGINT, exporter_low UBIGINT, src_port USMALLINT, dst_port USMALLINT,
    protocol UTINYINT, tcp_flags USMALLINT, bytes ${counter}, packets ${counter}, first_seen BIGINT, duration BIGINT, version UTINYINT`;
  const ts = DAY - DAY_MS + FLOW_WINDOW_MS;
  for (const sql of [
    `CREATE TABLE old.four(ts BIGINT, seq BIGINT, src UINTEGER, dst UINTEGER, ${shared("BIGINT")})`,
    `CREATE TABLE old.six(ts BIGINT, seq BIGINT, src_high UBIGINT, src_low UBIGINT, dst_high UBIGINT, dst_low UBIGINT, ${shared("UBIGINT")})`,
    "CREATE TABLE old.batches(id VARCHAR)",
    "CREATE TABLE old.schema_version AS SELECT 1::INTEGER AS version",
    `INSERT INTO old.four VALUES (${ts}, 1, 167772161, 167772162, 0, 281473902968833, 1, 443, 6, 27, 1000, 10, 5, 5, 9)`,
    `INSERT INTO old.six VALUES (${ts}, 2, 1, 2, 3, 4, 0, 281473902968833, 1, 443, 6, 27, 1000, 10, 5, 5, 9)`,
    "INSERT INTO old.batches VALUES ('known')",
    "DETACH old",
  ])
    await connection.run(sql);
  connection.closeSync();
  instance.closeSync();
}

test("a day from before NAT columns is read without translations and accepts rows that have them", async () => {
  const folder = newFolder();
  await writeOldDay(folder);
  const order = { sort: "timestamp", descending: false } as const;
  const none = { natSrc: null, natDst: null, natSrcPort: null, natDstPort: null };
  const flows = await open(folder);
  expect((await flows.list({}, order, 0, 10)).flows).toMatchObject([
    { src: "10.0.0.1", dst: "10.0.0.2", bytes: 1000n, ...none },
    { src: "::1:0:0:0:2", bytes: 1000n, ...none },
  ]);
  const translated = { ...rowAt(DAY - DAY_MS), natSrc: "203.0.113.1", natSrcPort: 61_000 };
  await flows.append(flowRowsOf([translated, { ...translated, src: "2001:db8::1" }]), "new");
  await flows.append(flowRowsOf([translated]), "known");
  await close(flows);
  const again = await open(folder);
  const nat = { from: 0xffff_cb00_7101n, to: 0xffff_cb00_7101n };
  expect((await again.list({ nat, natPort: 61_000 }, order, 0, 10)).flows.map(({ src }) => src)).toEqual([
    "10.0.0.1",
    "2001:db8::1",
  ]);
  expect(await again.count()).toBe(4);
});

test("batches beyond the limit are refused, and those in flight are stored", async () => {
  const flows = await open(newFolder());
  const outcomes = await Promise.allSettled(
    Array.from({ length: 40 }, (_, nth) => flows.append(rowsAt(DAY, 10), `batch-${nth}`)),
  );
  const stored = outcomes.filter(({ status }) => status === "fulfilled").length;
  const refused = outcomes.filter((outcome) => outcome.status === "rejected");
  expect(stored).toBeGreaterThan(0);
  expect(refused.length).toBeGreaterThan(0);
  for (const { reason } of refused) expect(reason).toMatchObject({ name: "StoreUnavailable", reason: "queue_full" });
  expect(await flows.count()).toBe(10 * stored);
});

test("acknowledged batches survive a kill, and batches that are sent again are not stored twice", async () => {
  const folder = newFolder();
  const modules = ["./flow-database.ts", "../../../model/flow-rows.ts"].map((path) =>
    pathToFileURL(join(import.meta.dirname, path)),
  );
  const code = `
    const { openFlowDatabase } = await import("${modules[0]}");
    const { flowRowsOf } = await import("${modules[1]}");
    const flows = await openFlowDatabase({ dataDir: ${JSON.stringify(folder)}, indexPrefix: "site", log: { warn() {}, error() {} }, now: () => ${DAY} });
    await flows.start();
    const row = ${JSON.stringify(rowAt(0), (_, value) => (typeof value === "bigint" ? Number(value) : value))};
    const rows = Array.from({ length: 3000 }, (_, nth) => ({ ...row, srcPort: nth, bytes: 1000n, packets: 10n, windowStartMs: ${DAY} }));
    for (let batch = 0; ; batch++) {
      await flows.append(flowRowsOf(rows), "batch-" + batch);
      console.log(batch);
    }`;
  const program = join(folder, "writer.mjs");
  writeFileSync(program, code);
  const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
  let last = -1;
  for await (const line of createInterface(child.stdout)) {
    last = Number(line);
    if (last >= 3) child.kill("SIGKILL");
  }
  expect(last).toBeGreaterThanOrEqual(3);
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  const flows = await open(folder);
  const count = await flows.count();
  // The batch in flight is there as a whole or not at all.
  expect([last + 1, last + 2]).toContain(count / 3000);
  for (let batch = 0; batch <= last + 1; batch++) await flows.append(rowsAt(DAY, 3000), `batch-${batch}`);
  expect(await flows.count()).toBe(3000 * (last + 2));
});
