import { appendFileSync, copyFileSync, renameSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { unpackDraft } from "../draft.ts";
import type { Batch } from "./batches.ts";
import { FollowedFile } from "./followed-file.ts";
import type { FileNote } from "./note.ts";
import { LineReader } from "./reader.ts";
import { Senders } from "./sender.ts";

// Real files that grow, are renamed and truncated; instead of the store, one that knows tokens as it does.

let folder: string;
let path: string;
let store: Map<string, string[]>;
const open: FollowedFile[] = [];
/** Those that are as good as dead; what they hold is theirs until the end. */
const dead: FollowedFile[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-follow-"));
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

type Give = (batch: Omit<Batch, "id">, storeNow: () => void) => Promise<void>;

/** `give` decides when what is given is stored, and when that is said. */
function follow(give: Give = async (_, storeNow) => storeNow(), lineBytesMax = 65_536, now = Date.now) {
  const sender = new Senders({ allowed: [], linesPerSecondMax: 1e6, now: Date.now }).find("eve", "file", "127.0.0.1");
  const told: string[] = [];
  const file = new FollowedFile({
    path,
    notePath: join(folder, "note", "eve-file.json"),
    lineBytesMax,
    reader: new LineReader({ platform: "platform", timezone: "UTC", keepsUnparsed: true }),
    sender,
    give: (batch) =>
      give(batch, () => {
        if (!store.has(batch.token!)) {
          store.set(
            batch.token!,
            batch.drafts.map((draft) => String(unpackDraft(draft).raw.signature_id)),
          );
        }
      }),
    now,
    tell: (message) => void told.push(message),
  });
  file.start();
  return { file, sender, told };
}

function following(...args: Parameters<typeof follow>) {
  const followed = follow(...args);
  open.push(followed.file);
  return followed;
}

const stored = () => [...store.values()].flat().map(Number);
const storedWhen = (wanted: readonly number[]) => expect.poll(() => stored().sort((a, b) => a - b)).toEqual(wanted);
const note = async () => JSON.parse(await readFile(join(folder, "note", "eve-file.json"), "utf8")) as FileNote;

test("a file that is not there yet is read from its beginning as it grows, line by line", async () => {
  const { file } = following();
  expect(file.status().summary).toBe("it is about to be read");
  await expect.poll(() => file.status().state).toBe("missing");
  expect(file.status().summary).toContain("the file is not there yet");
  writeFileSync(path, linesOf(0, 3));
  await storedWhen(numbers(0, 3));
  appendFileSync(path, `${linesOf(3, 5)}${lineOf(5).slice(0, 30)}`);
  await storedWhen(numbers(0, 5));
  expect(file.status()).toMatchObject({ state: "reading", lagBytes: 30 });
  appendFileSync(path, `${lineOf(5).slice(30)}\n`);
  await storedWhen(numbers(0, 6));
  expect(file.status()).toMatchObject({ lagBytes: 0, summary: "all that is in it is stored" });
});

test("a file that was renamed is read to its very end, with what is still written to it, and then the new one", async () => {
  writeFileSync(path, linesOf(0, 10));
  following();
  await storedWhen(numbers(0, 10));
  renameSync(path, `${path}.1`);
  appendFileSync(`${path}.1`, linesOf(10, 12));
  writeFileSync(path, linesOf(20, 25));
  appendFileSync(`${path}.1`, lineOf(12));
  await storedWhen([...numbers(0, 13), ...numbers(20, 25)]);
});

test("a renamed file is left for the new one although the clock is set back by a day", async () => {
  writeFileSync(path, linesOf(0, 10));
  let setBackMs = 0;
  following(undefined, undefined, () => Date.now() - setBackMs);
  await storedWhen(numbers(0, 10));
  setBackMs = 86_400_000;
  renameSync(path, `${path}.1`);
  writeFileSync(path, linesOf(20, 25));
  await storedWhen([...numbers(0, 10), ...numbers(20, 25)]);
});

test.each([
  ["nothing", ""],
  ["half of it", '{"path":"/var/log/eve.json","fi'],
  ["bytes of anything", "\u0000\u0001\ufffdx"],
  ["JSON of something else", "null"],
  ["a number that is none", '{"path":"p","file":"f","device":1,"inode":2,"head":{"bytes":1,"hash":"h"},"offset":"x"}'],
])("a note with %s in it is told by its path, and the file is read from its beginning", async (_, content) => {
  writeFileSync(path, linesOf(0, 3));
  const { file } = follow();
  await storedWhen(numbers(0, 3));
  await file.close();
  writeFileSync(join(folder, "note", "eve-file.json"), content);
  store.clear();
  const { file: again, told } = following();
  await storedWhen(numbers(0, 3));
  expect(told).toEqual([expect.stringMatching(/note.eve-file\.json is damaged.*read from its beginning/)]);
  // The note is written after the lines are stored.
  await expect.poll(note).toMatchObject({ path, offset: linesOf(0, 3).length });
  expect(again.status()).toMatchObject({ state: "reading", lagBytes: 0 });
});

test("a renamed file is read until its writer goes on with the new one, however long he takes", async () => {
  writeFileSync(path, linesOf(0, 3));
  following();
  await storedWhen(numbers(0, 3));
  // It is quiet for longer than a file that was left is waited for.
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

test("a file that was renamed again before anyone saw it is told of and counted", async () => {
  writeFileSync(path, linesOf(0, 3));
  const { told, sender } = following();
  await storedWhen(numbers(0, 3));
  renameSync(path, `${path}.2`);
  writeFileSync(path, linesOf(3, 5));
  renameSync(path, `${path}.1`);
  await sleep(20);
  writeFileSync(path, linesOf(10, 12));
  writeFileSync(`${path}.2.gz`, "compressed");
  await storedWhen([...numbers(0, 3), ...numbers(10, 12)]);
  expect(told).toEqual(["the file eve.json.1 was renamed again before it could be read"]);
  expect(sender.refused.cut_off).toBe(1);
});

test("a file that is taken away is said to be missing, until there is one again", async () => {
  writeFileSync(path, linesOf(0, 3));
  const { file } = following();
  await storedWhen(numbers(0, 3));
  renameSync(path, `${path}.1`);
  await expect.poll(() => file.status().state).toBe("missing");
  expect(file.status().summary).toContain("the file is not there any more");
  writeFileSync(path, linesOf(3, 5));
  await storedWhen(numbers(0, 5));
  await expect.poll(() => file.status().state).toBe("reading");
});

test("a file that was copied and truncated is read from its beginning again", async () => {
  writeFileSync(path, linesOf(0, 10));
  following();
  await storedWhen(numbers(0, 10));
  copyFileSync(path, `${path}.1`);
  truncateSync(path);
  appendFileSync(path, linesOf(20, 25));
  await storedWhen([...numbers(0, 10), ...numbers(20, 25)]);
  // Truncated, and grown beyond where it was before anyone looked.
  writeFileSync(path, linesOf(100, 130));
  await storedWhen([...numbers(0, 10), ...numbers(20, 25), ...numbers(100, 130)]);
});

test("after a stop it goes on where it was, with nothing lost and nothing twice", async () => {
  writeFileSync(path, linesOf(0, 2500));
  const first = follow();
  await expect.poll(() => stored().length).toBeGreaterThan(0);
  await first.file.close();
  appendFileSync(path, linesOf(2500, 2510));
  following();
  await storedWhen(numbers(0, 2510));
  await expect.poll(async () => (await note()).pending).toBeNull();
});

test("a file that was renamed while nobody looked is found again and finished first", async () => {
  writeFileSync(path, linesOf(0, 10));
  const first = follow();
  await storedWhen(numbers(0, 10));
  await first.file.close();
  appendFileSync(path, linesOf(10, 15));
  renameSync(path, `${path}.1`);
  writeFileSync(path, linesOf(20, 25));
  following();
  await storedWhen([...numbers(0, 15), ...numbers(20, 25)]);
});

test.each([
  ["before it is stored", false],
  ["after it is stored and before that is known", true],
])("a crash in the middle of a batch, %s: the same batch is given again", async (_, isStored) => {
  writeFileSync(path, linesOf(0, 700));
  // It never hears of the end of what it gave: as good as dead.
  const given: string[] = [];
  const { file } = follow(async ({ token }, storeNow) => {
    given.push(token!);
    if (isStored && given.length <= 2) storeNow();
    await new Promise(() => undefined);
  });
  dead.push(file);
  await expect.poll(() => given.length).toBe(4);
  appendFileSync(path, linesOf(700, 710));
  const again: string[] = [];
  following(async ({ token }, storeNow) => {
    again.push(token!);
    storeNow();
  });
  await storedWhen(numbers(0, 710));
  expect(again.slice(0, 4)).toEqual(given);
});

test("a file that is gone with a batch under way is told of, and the new one is read", async () => {
  writeFileSync(path, linesOf(0, 10));
  const given: unknown[] = [];
  const { file } = follow(async (batch) => {
    given.push(batch);
    await new Promise(() => undefined);
  });
  dead.push(file);
  await expect.poll(() => given.length).toBe(1);
  await rm(path);
  writeFileSync(path, linesOf(20, 25));
  const { told } = following();
  await storedWhen(numbers(20, 25));
  expect(told.join()).toContain("cannot be read again");
});

test("what is no file is told of and not read, until there is one", async () => {
  symlinkSync("/dev/zero", path);
  const { told } = following();
  await expect.poll(() => told.join()).toContain("cannot be read: it is not a file");
  await rm(path);
  writeFileSync(path, linesOf(0, 3));
  await storedWhen(numbers(0, 3));
});

test("a line that is too long is refused with its beginning, and the next is read", async () => {
  writeFileSync(
    path,
    `${linesOf(0, 2)}{"x":"${"y".repeat(600_000)}"}\n${linesOf(2, 4)}{"z":"${"y".repeat(2000)}"}\n${linesOf(4, 5)}`,
  );
  const { sender } = following(undefined, 1024);
  await storedWhen(numbers(0, 5));
  expect(sender.refused.too_long).toBe(2);
  expect(sender.lines).toBe(7);
});
