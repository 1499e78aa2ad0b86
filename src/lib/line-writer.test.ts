import { execFile } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LineWriter } from "./line-writer.ts";

let folder: string;
let path: string;
let fd: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tocsin-lines-"));
  path = join(folder, "lines");
  fd = openSync(path, "w");
});
afterEach(() => {
  closeSync(fd);
  rmSync(folder, { recursive: true });
});

const flushed = (writer: LineWriter) => new Promise<void>((resolve) => writer.flush(resolve));
const lines = (from: number, count: number) => Array.from({ length: count }, (_, n) => `line ${from + n}\n`);

test("every line arrives, in order, whether flushed or not", async () => {
  const writer = new LineWriter(fd);
  for (const line of lines(0, 5000)) writer.write(line);
  await flushed(writer);
  for (const line of lines(5000, 10)) writer.write(line);
  await expect.poll(() => readFileSync(path, "utf8")).toBe(lines(0, 5010).join(""));
  expect(writer.lost).toBe(0);
});

test("a last line can be written at once", () => {
  const writer = new LineWriter(fd);
  for (const line of lines(0, 3000)) writer.write(line);
  writer.flushSync();
  expect(readFileSync(path, "utf8")).toBe(lines(0, 3000).join(""));
});

test("lines dropped on a full disk are counted", async () => {
  const full = openSync("/dev/full", "w");
  const writer = new LineWriter(full);
  for (const line of lines(0, 10)) writer.write(line);
  await flushed(writer);
  expect(writer.lost).toBe(10);
  for (const line of lines(0, 5)) writer.write(line);
  writer.flushSync();
  expect(writer.lost).toBe(15);
  closeSync(full);
});

test("the buffer is bounded", async () => {
  const writer = new LineWriter(fd);
  const line = `${"x".repeat(1023)}\n`;
  for (let n = 0; n < 2000; n++) writer.write(line);
  expect(writer.lost).toBe(2000 - 1024);
  await flushed(writer);
  expect(readFileSync(path).length).toBe(1024 * 1024);
});

test("buffered lines are written when the process exits", async () => {
  const program = `
    import { LineWriter } from ${JSON.stringify(new URL("./line-writer.ts", import.meta.url).href)};
    const writer = new LineWriter(1);
    for (let n = 0; n < 1000; n++) writer.write("line " + n + "\\n");
    process.exit(0);`;
  const stdout = await new Promise((resolve, reject) =>
    execFile(process.execPath, ["--input-type=module", "-e", program], (error, stdout) =>
      error ? reject(error) : resolve(stdout),
    ),
  );
  expect(stdout).toBe(lines(0, 1000).join(""));
});
