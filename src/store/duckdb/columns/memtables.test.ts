import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { openColumnEngine } from "./column-engine.ts";
import type { FullDiskOutcome } from "../../embedded/column-full-disk.fixture.ts";
import { openMemtables } from "./memtables.ts";
import { RowPacker } from "./packed-rows.ts";
import { Parameters } from "./sql.ts";

async function fillOnFullDisk(): Promise<FullDiskOutcome> {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-memtables-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const fixture = JSON.stringify(new URL("../../embedded/column-full-disk.fixture.ts", import.meta.url).href);
  // Threads inherit the flags of their process: one that sets the type of the script would end them.
  const script = `import(${fixture})
    .then(({ fillOnFullDisk }) => fillOnFullDisk(process.argv[1]))
    .then((outcome) => process.stdout.write(JSON.stringify(outcome)));`;
  const node = [process.execPath, "--eval", script, folder];
  const { stdout } = await promisify(execFile)("sh", ["-c", `trap '' XFSZ; exec "$@"`, "sh", ...node], {
    timeout: 200_000,
  });
  return JSON.parse(stdout) as FullDiskOutcome;
}

test("on a full disk rows are counted from memory, then queries are refused; with space again every row is there once", async (context) => {
  try {
    execFileSync("prlimit", ["--version"], { stdio: "ignore" });
  } catch {
    context.skip("the size of files cannot be limited here");
  }
  const { before, onFullDisk, after, reopened } = await fillOnFullDisk();
  expect(before.appended).toBeGreaterThanOrEqual(200);
  expect(before).toEqual({ appended: before.appended, rows: before.appended, isHealthy: true });
  const answered = onFullDisk.filter(({ rows }) => typeof rows === "number");
  expect(answered.length).toBeGreaterThan(4);
  for (const { appended, rows } of answered) expect(rows).toBe(appended);
  // The store accepts events and reports that it is unhealthy; the columns refuse to answer instead of undercounting.
  expect(onFullDisk.slice(answered.length).map(({ rows }) => rows)).toEqual(["StoreUnavailable", "StoreUnavailable"]);
  expect(onFullDisk.at(-1)!.isHealthy).toBe(false);
  const all = onFullDisk.at(-1)!.appended;
  for (const state of [after, reopened]) expect(state).toEqual({ appended: all, rows: all, isHealthy: true });
});

test("a query that was planned before a flush does not read the new segment too", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-segments-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const onDropped = (reason: string) => expect.unreachable(reason);
  const engine = await openColumnEngine(dataDir, { onDropped, readEvent: () => undefined });
  onTestFinished(() => engine.instance.closeSync());
  const writer = await engine.instance.connect();
  const onLost = () => expect.unreachable("rows are lost");
  const memtables = await openMemtables({ engine, writer, memtableRowsMax: 1000, amended: new Map(), onLost });
  const packer = new RowPacker();
  const event = { type: "t", source: "custom", severity: "info", class: "security", raw: {}, enrichment: {} } as const;
  const appendTen = async (after: number) => {
    for (let seq = after + 1; seq <= after + 10; seq++) packer.add(seq, seq, event);
    await memtables.append({ rows: packer.take(), day: 0, after, last: after + 10 });
    await memtables.publish();
  };
  await appendTen(0);
  await memtables.flush();
  await appendTen(10);
  const snapshot = memtables.snapshot();
  const parameters = new Parameters(undefined, snapshot.segments);
  const { sql, values } = parameters.finalise(`SELECT count(*) FROM ${snapshot.disk}`);
  const reader = await engine.instance.connect();
  const planned = await reader.prepare(sql);
  planned.bind(values);
  await memtables.flush();
  expect((await planned.runAndReadAll()).getRows()).toEqual([[10n]]);
  snapshot.release();
});
