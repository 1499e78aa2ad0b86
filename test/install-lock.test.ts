import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeFolder } from "./tocsin.ts";

let folder: string;
beforeEach(() => void (folder = makeFolder()));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const MODULE = new URL("../bin/install-lock.mjs", import.meta.url).href;
/** Each process records when it begins and ends the work that the lock protects. */
const HOLDER = `
  import { appendFileSync } from "node:fs";
  import { setTimeout as sleep } from "node:timers/promises";
  import { withInstallLock } from ${JSON.stringify(MODULE)};
  const [lock, log] = process.argv.slice(-2);
  await withInstallLock(lock, async () => {
    appendFileSync(log, "begin\\n");
    await sleep(50);
    appendFileSync(log, "end\\n");
  });
`;

function hold() {
  const args = ["--input-type=module", "--eval", HOLDER, "--", join(folder, "lock"), join(folder, "log")];
  return spawn(process.execPath, args, { stdio: ["ignore", "ignore", "ignore"] });
}
const log = () => readFileSync(join(folder, "log"), "utf8").trim().split("\n");

test("processes that install at the same time take turns and leave no lock behind", async () => {
  const codes = await Promise.all(Array.from({ length: 5 }, async () => (await once(hold(), "exit"))[0]));
  expect(codes).toEqual([0, 0, 0, 0, 0]);
  expect(log()).toEqual(Array.from({ length: 5 }, () => ["begin", "end"]).flat());
  expect(existsSync(join(folder, "lock"))).toBe(false);
});

test("one process at a time takes over the lock of a process that is gone", async () => {
  const gone = spawn(process.execPath, ["--version"], { stdio: "ignore" });
  await once(gone, "exit");
  writeFileSync(join(folder, "lock"), JSON.stringify({ pid: gone.pid, host: hostname(), token: "old" }));
  const codes = await Promise.all(Array.from({ length: 3 }, async () => (await once(hold(), "exit"))[0]));
  expect(codes).toEqual([0, 0, 0]);
  expect(log()).toEqual(["begin", "end", "begin", "end", "begin", "end"]);
});
