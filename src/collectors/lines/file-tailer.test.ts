import { appendFileSync, copyFileSync, renameSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { knownFormats } from "../formats/known-formats.ts";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { unpackDraft } from "../formats/event-draft.ts";
import type { LineBatch } from "./line-batches.ts";
import { FileTailer } from "./file-tailer.ts";
import type { TailerCheckpoint } from "./tailer-checkpoint.ts";
import { LineReader } from "./line-reader.ts";
import { LineSenders } from "./line-sender.ts";

// Real files that grow, are rotated and truncated; in place of the store, a map that deduplicates by token.

let folder: string;
let path: string;
let store: Map<string, string[]>;
const open: FileTailer[] = [];
/** Tailers whose batches are never confirmed, as after a crash; they cannot be closed. */
const crashed: FileTailer[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-tailer-"));
  path = join(folder, "eve.json");
  store = new Map();
});
afterEach(async () => {
  for (const file of open.splice(0)) await file.close();
  await rm(folder, { recursive: true, force: true });
});

const lineOf = (n: number) =>
  JSON.stringify({
    timestamp: "2026-11-15T08:30:00.000000+0000",
    event_type: "alert",
    src_ip: "192.0.2.1",
    dest_ip: "198.51.100.2",
    alert: { signature: `signature ${n}`, signature_id: n, severity: 2, action: "allowed", category: "x" },
  });
const linesOf = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, n) => `${lineOf(from + n)}\n`).join("");
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);

type Submit = (batch: Omit<LineBatch, "id">, storeNow: () => void) => Promise<void>;

/** `submit` decides when a batch is stored, and when that is confirmed. */
function startTailer(submit: Submit = async (_, storeNow) => storeNow(), lineBytesMax = 65_536, now = Date.now) {
  const sender = new LineSenders({ allowed: [], linesPerSecondMax: 1e6, now: Date.now }).find(
    "eve",
    "file",
    "127.0.0.1",
  );
  const warnings: string[] = [];
  const file = new FileTailer({
    path,
    checkpointPath: join(folder, "collectors", "eve-file.json"),
    lineBytesMax,
    reader: new LineReader({ platform: "platform", timezone: "UTC", keepsUnparsed: true }, knownFormats()),
    sender,
    submit: (batch) =>
      submit(batch, () => {
        if (!store.has(batch.token!)) {
          store.set(
            batch.token!,
            batch.drafts.map((draft) => String(unpackDraft(draft).raw.signature_id)),
          );
        }
      }),
    now,
    warn: (message) => void warnings.push(message),
  });
  file.start();
  return { file, sender, warnings };
}

function openTailer(...args: Parameters<typeof startTailer>) {
  const tailer = startTailer(...args);
  open.push(tailer.file);
  return tailer;
}

const stored = () => [...store.values()].flat().map(Number);
const storedWhen = (expected: readonly number[]) => expect.poll(() => stored().sort((a, b) => a - b)).toEqual(expected);
const checkpoint = async () =>
  JSON.parse(await readFile(join(folder, "collectors", "eve-file.json"), "utf8")) as TailerCheckpoint;

test("a file that does not exist yet is read from its start as it grows, line by line", async () => {
  const { file } = openTailer();
  expect(file.status().summary).toBe("reading starts shortly");
  await expect.poll(() => file.status().state).toBe("missing");
  expect(file.status().summary).toContain("the file does not exist yet");
  writeFileSync(path, linesOf(0, 3));
  await storedWhen(numbers(0, 3));
  appendFileSync(path, `${linesOf(3, 5)}${lineOf(5).slice(0, 30)}`);
  await storedWhen(numbers(0, 5));
  expect(file.status()).toMatchObject({ state: "reading", lagBytes: 30 });
  appendFileSync(path, `${lineOf(5).slice(30)}\n`);
  await storedWhen(numbers(0, 6));
  expect(file.status()).toMatchObject({ lagBytes: 0, summary: "everything in the file is stored" });
});

test("a rotated file is read to its end, including late writes, and then its successor", async () => {
  writeFileSync(path, linesOf(0, 10));
  openTailer();
  await storedWhen(numbers(0, 10));
  renameSync(path, `${path}.1`);
  appendFileSync(`${path}.1`, linesOf(10, 12));
  writeFileSync(path, linesOf(20, 25));
  appendFileSync(`${path}.1`, lineOf(12));
  await storedWhen([...numbers(0, 13), ...numbers(20, 25)]);
});

test("a rotated file is left for its successor although the clock is set back by a day", async () => {
  writeFileSync(path, linesOf(0, 10));
  let setBackMs = 0;
  openTailer(undefined, undefined, () => Date.now() - setBackMs);
  await storedWhen(numbers(0, 10));
  setBackMs = 86_400_000;
  renameSync(path, `${path}.1`);
  writeFileSync(path, linesOf(20, 25));
  await storedWhen([...numbers(0, 10), ...numbers(20, 25)]);
});

test.each([
  ["no content", ""],
  ["half of its content", '{"path":"/var/log/eve.json","fi'],
  ["random bytes", "\u0000\u0001\ufffdx"],
  ["unrelated JSON", "null"],
  [
    "an offset that is not a number",
    '{"path":"p","file":"f","device":1,"inode":2,"head":{"bytes":1,"hash":"h"},"offset":"x"}',
  ],
])("a checkpoint with %s is reported by its path, and the file is read from its start", async (_, content) => {
  writeFileSync(path, linesOf(0, 3));
  const { file } = startTailer();
  await storedWhen(numbers(0, 3));
  await file.close();
  writeFileSync(join(folder, "collectors", "eve-file.json"), content);
  store.clear();
  const { file: again, warnings } = openTailer();
  await storedWhen(numbers(0, 3));
  expect(warnings).toEqual([expect.stringMatching(/collectors.eve-file\.json is damaged.*read again from its start/)]);
  // The checkpoint is written after the lines are stored.
  await expect.poll(checkpoint).toMatchObject({ path, offset: linesOf(0, 3).length });
  expect(again.status()).toMatchObject({ state: "reading", lagBytes: 0 });
});

test("a rotated file is read until its writer reopens the path, however long that takes", async () => {
  writeFileSync(path, linesOf(0, 3));
  openTailer();
  await storedWhen(numbers(0, 3));
  // Longer than the wait before a rotated file is left.
  await sleep(1500);
  renameSync(path, `${path}.1`);
  writeFileSync(path, "");
  await sleep(400);
  appendFileSync(`${path}.1`, linesOf(3, 4));
  await sleep(1500);
  appendFileSync(`${path}.1`, linesOf(4, 5));
  await sleep(300);
  appendFileSync(path, linesOf(10, 12));
  await storedWhen([...numbers(0, 5), ...numbers(10, 12)]);
});

test("a file that is rotated again before it was seen is reported and counted", async () => {
  writeFileSync(path, linesOf(0, 3));
  const { warnings, sender } = openTailer();
  await storedWhen(numbers(0, 3));
  renameSync(path, `${path}.2`);
  writeFileSync(path, linesOf(3, 5));
  renameSync(path, `${path}.1`);
  await sleep(20);
  writeFileSync(path, linesOf(10, 12));
  writeFileSync(`${path}.2.gz`, "compressed");
  await storedWhen([...numbers(0, 3), ...numbers(10, 12)]);
  expect(warnings).toEqual(["the file eve.json.1 was rotated again before it could be read"]);
  expect(sender.refused.cut_off).toBe(1);
});

test("a removed file is reported as missing until it is back", async () => {
  writeFileSync(path, linesOf(0, 3));
  const { file } = openTailer();
  await storedWhen(numbers(0, 3));
  renameSync(path, `${path}.1`);
  await expect.poll(() => file.status().state).toBe("missing");
  expect(file.status().summary).toContain("the file does not exist any more");
  writeFileSync(path, linesOf(3, 5));
  await storedWhen(numbers(0, 5));
  await expect.poll(() => file.status().state).toBe("reading");
});

test("a file that was copied and truncated is read from its start again", async () => {
  writeFileSync(path, linesOf(0, 10));
  openTailer();
  await storedWhen(numbers(0, 10));
  copyFileSync(path, `${path}.1`);
  truncateSync(path);
  appendFileSync(path, linesOf(20, 25));
  await storedWhen([...numbers(0, 10), ...numbers(20, 25)]);
  // Truncated, and grown past the old offset before the next poll.
  writeFileSync(path, linesOf(100, 130));
  await storedWhen([...numbers(0, 10), ...numbers(20, 25), ...numbers(100, 130)]);
});

test("after a stop it resumes at the checkpoint: nothing is lost or stored twice", async () => {
  writeFileSync(path, linesOf(0, 2500));
  const first = startTailer();
  await expect.poll(() => stored().length).toBeGreaterThan(0);
  await first.file.close();
  appendFileSync(path, linesOf(2500, 2510));
  openTailer();
  await storedWhen(numbers(0, 2510));
  await expect.poll(async () => (await checkpoint()).pending).toBeNull();
});

test("a file that was rotated while the tailer was stopped is found and finished first", async () => {
  writeFileSync(path, linesOf(0, 10));
  const first = startTailer();
  await storedWhen(numbers(0, 10));
  await first.file.close();
  appendFileSync(path, linesOf(10, 15));
  renameSync(path, `${path}.1`);
  writeFileSync(path, linesOf(20, 25));
  openTailer();
  await storedWhen([...numbers(0, 15), ...numbers(20, 25)]);
});

test.each([
  ["before it is stored", false],
  ["after it is stored and before that is confirmed", true],
])("after a crash with a batch in flight, %s, the same batch is submitted again", async (_, isStored) => {
  writeFileSync(path, linesOf(0, 700));
  // Its batches are never confirmed, as after a crash.
  const given: string[] = [];
  const { file } = startTailer(async ({ token }, storeNow) => {
    given.push(token!);
    if (isStored && given.length <= 2) storeNow();
    await new Promise(() => undefined);
  });
  crashed.push(file);
  await expect.poll(() => given.length).toBe(4);
  appendFileSync(path, linesOf(700, 710));
  const again: string[] = [];
  openTailer(async ({ token }, storeNow) => {
    again.push(token!);
    storeNow();
  });
  await storedWhen(numbers(0, 710));
  expect(again.slice(0, 4)).toEqual(given);
});

test("a file that is gone with a batch in flight is reported, and its successor is read", async () => {
  writeFileSync(path, linesOf(0, 10));
  const given: unknown[] = [];
  const { file } = startTailer(async (batch) => {
    given.push(batch);
    await new Promise(() => undefined);
  });
  crashed.push(file);
  await expect.poll(() => given.length).toBe(1);
  await rm(path);
  writeFileSync(path, linesOf(20, 25));
  const { warnings } = openTailer();
  await storedWhen(numbers(20, 25));
  expect(warnings.join()).toContain("cannot be read again");
});

test("a path that is not a regular file is reported, and read once it is one", async () => {
  symlinkSync("/dev/zero", path);
  const { warnings } = openTailer();
  await expect.poll(() => warnings.join()).toContain("cannot be read: it is not a file");
  await rm(path);
  writeFileSync(path, linesOf(0, 3));
  await storedWhen(numbers(0, 3));
});

test("an overlong line is refused, and the next one is read", async () => {
  writeFileSync(
    path,
    `${linesOf(0, 2)}{"x":"${"y".repeat(600_000)}"}\n${linesOf(2, 4)}{"z":"${"y".repeat(2000)}"}\n${linesOf(4, 5)}`,
  );
  const { sender } = openTailer(undefined, 1024);
  await storedWhen(numbers(0, 5));
  expect(sender.refused.too_long).toBe(2);
  expect(sender.lines).toBe(7);
});
