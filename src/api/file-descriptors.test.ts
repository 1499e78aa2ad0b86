import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const FILES = 512;

test("a process without file descriptors reports it in its log, readiness and metrics until some are available again", async () => {
  const script = fileURLToPath(new URL("../../test/exhausted-process.ts", import.meta.url));
  const command = `ulimit -n ${FILES}; exec "$0" "$1"`;
  const { stdout } = await promisify(execFile)("sh", ["-c", command, process.execPath, script]);
  const { unready, metrics, lines } = JSON.parse(stdout);
  expect(JSON.parse(unready).error).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("no file descriptors"),
  });
  expect(metrics).toMatch(/^tocsin_open_files_exhausted_seconds_total [1-9]/m);
  expect(metrics).toMatch(new RegExp(`^tocsin_open_files_max ${FILES}$`, "m"));
  expect(lines.map(({ level, msg }: { level: string; msg: string }) => [level, msg])).toEqual([
    ["warn", expect.stringContaining(`${FILES / 2} connections`)],
    ["error", expect.stringContaining("file descriptors exhausted")],
    ["warn", expect.stringContaining("available again")],
  ]);
});
