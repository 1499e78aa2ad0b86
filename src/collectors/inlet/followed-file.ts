import { randomUUID } from "node:crypto";
import { open, stat, type FileHandle } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { BATCH_EVENTS_MAX, type Batch } from "./batches.ts";
import { beginsAs, hashOf, linesOf, readBytes } from "./file-bytes.ts";
import { withoutEnd } from "./framing.ts";
import { readNote, writeNote, type FileNote } from "./note.ts";
import { Harvest, type LineReader } from "./reader.ts";
import { filesBeside, filesBetween } from "./rotated.ts";
import type { Sender } from "./sender.ts";
import type { FileStatus } from "./status.ts";
import { textOf } from "./text.ts";

// A file that somebody else writes, read line by line as it grows: through renaming and truncation, and from where it was
// left after a stop or a crash.

const LINE_FEED = 0x0a;
const READ_BYTES = 256 * 1024;
const LINES_MAX = 1000;
const POLL_MS = 200;
/** Once something stands in the file that has taken its name, a file is read for so long without anything new before it is left. */
const LEAVE_AFTER_MS = 1000;
const RETRY_MS = 2000;
const HEAD_BYTES_MAX = 256;

export interface FollowOptions {
  readonly path: string;
  readonly notePath: string;
  readonly lineBytesMax: number;
  readonly reader: LineReader;
  readonly sender: Sender;
  /** Resolves once the batch is stored. */
  readonly give: (batch: Omit<Batch, "id">) => Promise<void>;
  readonly now: () => number;
  /** Something that a person should know of. */
  readonly tell: (message: string) => void;
}

/** A file that is open, and how far it is read. */
interface Followed {
  readonly handle: FileHandle;
  readonly file: string;
  readonly device: number;
  readonly inode: number;
  head: FileNote["head"];
  offset: number;
  size: number;
  /** Up to here there is no end of the line that begins at the offset. */
  scanned: number;
  /** By a clock that nobody sets, and so is the next. */
  grewAtMs: number;
  /** When something was first seen in the file that has its name now. */
  succeededAtMs?: number;
}

/** Lines of the file from the offset on. */
interface Portion {
  readonly to: number;
  readonly lines: readonly Buffer[];
  /** A line too long to be held. */
  readonly isTooLong: boolean;
}

export class FollowedFile {
  readonly #options: FollowOptions;
  readonly #stop = new AbortController();
  #followed: Followed | undefined;
  #running: Promise<void> = Promise.resolve();
  #trouble: string | undefined;
  #isMissing = false;

  constructor(options: FollowOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Ends once what was read is stored. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#followed?.handle.close();
    this.#followed = undefined;
  }

  status(): FileStatus {
    const { path } = this.#options;
    const { offset, size } = this.#followed ?? { offset: 0, size: 0 };
    const state = this.#trouble !== undefined ? "failing" : this.#isMissing ? "missing" : "reading";
    const lagBytes = Math.max(0, size - offset);
    const summary =
      this.#trouble ??
      (this.#isMissing
        ? `the file is not there${this.#followed ? " any more" : " yet"}: it is read as soon as there is one at this path`
        : this.#followed === undefined
          ? "it is about to be read"
          : lagBytes === 0
            ? "all that is in it is stored"
            : `${lagBytes} bytes are in it and not stored yet`);
    return { path, state, summary, offset, size, lagBytes };
  }

  async #run(): Promise<void> {
    let isResumed = false;
    while (!this.#stop.signal.aborted) {
      try {
        if (!isResumed) await this.#resume();
        isResumed = true;
        const hasMore = await this.#step();
        this.#trouble = undefined;
        if (!hasMore) await this.#sleep(POLL_MS);
      } catch (error) {
        // A disk or a right that is missing now may be there later; the file waits.
        const { message } = error as Error;
        if (this.#trouble !== message) this.#options.tell(`the file ${this.#options.path} cannot be read: ${message}`);
        this.#trouble = message;
        await this.#sleep(RETRY_MS);
      }
    }
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  /** Takes up the file of the last run, under whichever name it has now, and repeats the batch that was under way. */
  async #resume(): Promise<void> {
    const { notePath, path, tell } = this.#options;
    const note = await readNote(notePath, path, tell);
    if (!note) return;
    const followed = await this.#findAgain(note);
    if (!followed) {
      const lost = note.pending ? ", and what was under way when it stopped cannot be read again" : "";
      if ((await isThere(path)) || note.pending)
        tell(`the file that was read before is gone: its rest is not known${lost}`);
      return;
    }
    this.#followed = followed;
    if (!note.pending) return;
    const { to, atMs } = note.pending;
    // Only a line that is too long is not read as a whole.
    const isTooLong = to - note.offset > this.#options.lineBytesMax + READ_BYTES;
    const lines = isTooLong ? [] : linesOf(await readBytes(followed.handle, note.offset, to));
    await this.#deliver(followed, { to, lines, isTooLong }, atMs, true);
  }

  async #findAgain(note: FileNote): Promise<Followed | undefined> {
    const { path } = this.#options;
    for (const candidate of await filesBeside(path)) {
      const found = await stat(candidate).catch(() => undefined);
      if (!found?.isFile() || found.ino !== note.inode || found.dev !== note.device) continue;
      const handle = await open(candidate, "r");
      const needed = note.pending?.to ?? note.offset;
      const beginsAlike = found.size >= needed && (await closeOnFailure(handle, beginsAs(handle, note.head)));
      if (beginsAlike) {
        const { file, device, inode, head, offset } = note;
        const grewAtMs = performance.now();
        return { handle, file, device, inode, head, offset, size: found.size, scanned: offset, grewAtMs };
      }
      await handle.close();
    }
    return undefined;
  }

  /** Reads and hands on what there is. False where nothing is to be done for now. */
  async #step(): Promise<boolean> {
    const followed = (this.#followed ??= await this.#open());
    if (!followed) {
      this.#isMissing = true;
      return false;
    }
    const { size } = await followed.handle.stat();
    if (size > followed.size) followed.grewAtMs = performance.now();
    const isOther = size < followed.offset || !(await beginsAs(followed.handle, followed.head));
    followed.size = size;
    if (isOther) {
      // Truncated, and perhaps written anew: what it holds now is another file to us.
      this.#followed = await this.#asNew(followed.handle);
      return true;
    }
    const portion = await this.#read(followed, size);
    if (portion) {
      this.#isMissing = false;
      await this.#deliver(followed, portion, this.#options.now(), false);
      return true;
    }
    return this.#leaveIfReplaced(followed);
  }

  async #open(): Promise<Followed | undefined> {
    try {
      // What is no file may keep whoever opens it waiting for ever.
      if (!(await stat(this.#options.path)).isFile()) throw new Error("it is not a file");
      const handle = await open(this.#options.path, "r");
      return await closeOnFailure(handle, this.#asNew(handle));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  async #asNew(handle: FileHandle): Promise<Followed> {
    const { dev, ino, size } = await handle.stat();
    const head = { bytes: 0, hash: "" };
    const grewAtMs = performance.now();
    return { handle, file: randomUUID(), device: dev, inode: ino, head, offset: 0, size, scanned: 0, grewAtMs };
  }

  /** Whole lines from the offset on; undefined where there is none. */
  async #read(followed: Followed, size: number): Promise<Portion | undefined> {
    const { lineBytesMax } = this.#options;
    const { handle, offset } = followed;
    if (size <= Math.max(offset, followed.scanned)) return undefined;
    if (followed.scanned - offset > lineBytesMax) return this.#readOverlong(followed, size);
    const bytes = await readBytes(handle, offset, Math.min(size, offset + lineBytesMax + READ_BYTES));
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      const lines = linesOf(bytes.subarray(0, end));
      if (lines.length <= LINES_MAX) return { to: offset + end, lines, isTooLong: false };
      const some = lines.slice(0, LINES_MAX);
      return { to: offset + some.reduce((sum, line) => sum + line.length, 0), lines: some, isTooLong: false };
    }
    followed.scanned = offset + bytes.length;
    return followed.scanned - offset > lineBytesMax ? this.#readOverlong(followed, size) : undefined;
  }

  /** A line that is longer than it may be: only its end is looked for. */
  async #readOverlong(followed: Followed, size: number): Promise<Portion | undefined> {
    while (followed.scanned < size) {
      const bytes = await readBytes(followed.handle, followed.scanned, Math.min(size, followed.scanned + READ_BYTES));
      if (bytes.length === 0) return undefined;
      const end = bytes.indexOf(LINE_FEED);
      if (end >= 0) return { to: followed.scanned + end + 1, lines: [], isTooLong: true };
      followed.scanned += bytes.length;
    }
    return undefined;
  }

  /** The file has another name now, and somebody has made a new one: once nothing more comes, the new one is next. */
  async #leaveIfReplaced(followed: Followed): Promise<boolean> {
    const { path, now } = this.#options;
    const found = await stat(path).catch(() => undefined);
    this.#isMissing = !found;
    if (!found || (found.ino === followed.inode && found.dev === followed.device)) return false;
    // Until its writer is told of the new one, however late that is, he goes on writing here.
    if (found.size === 0) return false;
    followed.succeededAtMs ??= performance.now();
    if (performance.now() - Math.max(followed.grewAtMs, followed.succeededAtMs) < LEAVE_AFTER_MS) return false;
    const { handle, offset, size } = followed;
    if (size > offset && size - offset <= this.#options.lineBytesMax) {
      // What it ends with lacks nothing but the end of the line.
      const rest = await readBytes(handle, offset, size);
      await this.#deliver(followed, { to: size, lines: [rest], isTooLong: false }, now(), false);
    } else if (size > offset) this.#refuseLong(await readBytes(handle, offset, offset + HEAD_BYTES_MAX));
    this.#followed = await this.#open();
    if (this.#followed) await this.#tellOfMissed(handle, this.#followed.handle);
    await handle.close();
    return true;
  }

  async #tellOfMissed(older: FileHandle, newer: FileHandle): Promise<void> {
    const { path, sender, tell, now } = this.#options;
    for (const name of await filesBetween(path, older, newer)) {
      const message = `the file ${name} was renamed again before it could be read`;
      sender.lines++;
      sender.refuse("cut_off", message, name, now());
      tell(message);
    }
  }

  async #deliver(followed: Followed, portion: Portion, atMs: number, isRepeated: boolean): Promise<void> {
    const { reader, sender, give, notePath } = this.#options;
    const { offset } = followed;
    if (followed.head.bytes < HEAD_BYTES_MAX) {
      const bytes = Math.min(HEAD_BYTES_MAX, portion.to);
      followed.head = { bytes, hash: await hashOf(followed.handle, bytes) };
    }
    if (!isRepeated) await writeNote(notePath, this.#noteOf(followed, { to: portion.to, atMs }));
    const harvest = new Harvest();
    if (portion.isTooLong) this.#refuseLong(await readBytes(followed.handle, offset, offset + HEAD_BYTES_MAX));
    for (const line of portion.lines) this.#readLine(withoutEnd(line), atMs, reader, sender, harvest);
    const token = `file ${followed.file} ${offset}-${portion.to}`;
    const slices: Promise<void>[] = [];
    // A crash may lose flow records, as it may those of exporters; to add them again might count them twice.
    if (harvest.flows.length > 0 && !isRepeated)
      slices.push(give({ token: null, atMs, drafts: [], flows: harvest.flows }));
    for (let from = 0; from < harvest.drafts.length; from += BATCH_EVENTS_MAX) {
      const drafts = harvest.drafts.slice(from, from + BATCH_EVENTS_MAX);
      slices.push(give({ token: `${token} ${from}`, atMs, drafts, flows: [] }));
    }
    await Promise.all(slices);
    followed.offset = portion.to;
    followed.scanned = portion.to;
    // The next batch's note says so too; where there is none for now, this one does.
    if (followed.offset >= followed.size || this.#stop.signal.aborted)
      await writeNote(notePath, this.#noteOf(followed, null));
  }

  #noteOf(followed: Followed, pending: FileNote["pending"]): FileNote {
    const { file, device, inode, head, offset } = followed;
    return { path: this.#options.path, file, device, inode, head, offset, pending };
  }

  #readLine(bytes: Buffer, atMs: number, reader: LineReader, sender: Sender, harvest: Harvest): void {
    if (bytes.length === 0) return;
    sender.lines++;
    sender.lastSeenMs = atMs;
    if (bytes.length > this.#options.lineBytesMax) {
      sender.lines--;
      this.#refuseLong(bytes);
      return;
    }
    const text = textOf(bytes);
    if (text) reader.read({ ...text, atMs, from: sender.address }, sender, harvest);
    else sender.refuse("not_text", "a line is not text", bytes, atMs);
  }

  #refuseLong(beginning: Buffer): void {
    const { sender, lineBytesMax, now } = this.#options;
    sender.lines++;
    sender.lastSeenMs = now();
    sender.refuse("too_long", `a line is longer than ${lineBytesMax} bytes`, beginning, now());
  }
}

async function closeOnFailure<Value>(handle: FileHandle, work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
