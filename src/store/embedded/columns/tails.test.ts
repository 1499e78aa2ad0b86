import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import type { FullDiskOutcome } from "./full-disk.fixture.ts";

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
  expect(before).toEqual({ appended: 200, found: 200, isWell: true });
  const answered = meanwhile.filter(({ found }) => typeof found === "number");
  expect(answered.length).toBeGreaterThan(4);
  for (const { appended, found } of answered) expect(found).toBe(appended);
  // Events are taken and the store says that it is unwell; what the columns cannot tell is not made up.
  expect(meanwhile.slice(answered.length).map(({ found }) => found)).toEqual(["StoreUnavailable", "StoreUnavailable"]);
  expect(meanwhile.at(-1)!.isWell).toBe(false);
  const all = meanwhile.at(-1)!.appended;
  for (const look of [after, reopened]) expect(look).toEqual({ appended: all, found: all, isWell: true });
});
