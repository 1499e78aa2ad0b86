import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { openEngine } from "./engine.ts";
import type { FullDiskOutcome } from "./full-disk.fixture.ts";
import { RowsPacker } from "./rows.ts";
import { Parameters } from "./sql.ts";
import { Tails } from "./tails.ts";

async function fillOnFullDisk(): Promise<FullDiskOutcome> {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-tails-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const fixture = JSON.stringify(new URL("./full-disk.fixture.ts", import.meta.url).href);
  // Threads take over the flags of their process: one that says how to read the script would end them.
  const script = `import(${fixture})
    .then(({ fillOnFullDisk }) => fillOnFullDisk(process.argv[1]))
    .then((outcome) => process.stdout.write(JSON.stringify(outcome)));`;
  const node = [process.execPath, "--eval", script, folder];
  const { stdout } = await promisify(execFile)("sh", ["-c", `trap '' XFSZ; exec "$@"`, "sh", ...node], {
    timeout: 200_000,
  });
  return JSON.parse(stdout) as FullDiskOutcome;
}

test("what finds no room on the disk is counted from memory, then refused; with room again all of it is there, once", async (context) => {
  try {
    execFileSync("prlimit", ["--version"], { stdio: "ignore" });
  } catch {
    context.skip("the size of files cannot be limited here");
  }
  const { before, meanwhile, after, reopened } = await fillOnFullDisk();
  expect(before.appended).toBeGreaterThanOrEqual(200);
  expect(before).toEqual({ appended: before.appended, found: before.appended, isWell: true });
  const answered = meanwhile.filter(({ found }) => typeof found === "number");
  expect(answered.length).toBeGreaterThan(4);
  for (const { appended, found } of answered) expect(found).toBe(appended);
  // Events are taken and the store says that it is unwell; what the columns cannot tell is not made up.
  expect(meanwhile.slice(answered.length).map(({ found }) => found)).toEqual(["StoreUnavailable", "StoreUnavailable"]);
  expect(meanwhile.at(-1)!.isWell).toBe(false);
  const all = meanwhile.at(-1)!.appended;
  for (const look of [after, reopened]) expect(look).toEqual({ appended: all, found: all, isWell: true });
});

test("a question that was planned before a lot came to disk does not see it there as well", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-lots-"));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const onDropped = (reason: string) => expect.unreachable(reason);
  const engine = await openEngine(dataDir, { onDropped, readEvent: () => undefined });
  onTestFinished(() => engine.instance.closeSync());
  const mover = await engine.instance.connect();
  const onLost = () => expect.unreachable("rows are lost");
  const tails = await Tails.open({ engine, mover, tailRowsMax: 1000, onLost }, new Map());
  const packer = new RowsPacker();
  const event = { type: "t", source: "custom", severity: "info", class: "security", raw: {}, enrichment: {} } as const;
  const addTen = async (after: number) => {
    for (let seq = after + 1; seq <= after + 10; seq++) packer.add(seq, seq, event);
    await tails.add({ rows: packer.take(), day: 0, after, last: after + 10 });
    await tails.show();
  };
  await addTen(0);
  await tails.flush();
  await addTen(10);
  const snapshot = tails.snapshot();
  const parameters = new Parameters(undefined, snapshot.lots);
  const { sql, values } = parameters.settle(`SELECT count(*) FROM ${snapshot.disk}`);
  const reader = await engine.instance.connect();
  const planned = await reader.prepare(sql);
  planned.bind(values);
  await tails.flush();
  expect((await planned.runAndReadAll()).getRows()).toEqual([[10n]]);
  snapshot.release();
});
