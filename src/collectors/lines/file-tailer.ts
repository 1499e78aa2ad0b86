import { randomUUID } from "node:crypto";
import { open, stat, type FileHandle } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { BATCH_EVENTS_MAX, type LineBatch } from "./line-batches.ts";
import { hasHead, hashHead, splitLines, readBytes } from "./file-bytes.ts";
import { withoutLineEnd } from "./framing.ts";
import { readCheckpoint, writeCheckpoint, type TailerCheckpoint } from "./tailer-checkpoint.ts";
import { ReadTally, type LineReader } from "./line-reader.ts";
import { filesBeside, filesBetween } from "./rotated-files.ts";
import type { LineSender } from "./line-sender.ts";
import type { FileStatus } from "./line-status.ts";
import { decodeLine } from "./line-text.ts";

// Tails a file line by line as another program writes it: through rotation and truncation, and from the checkpoint after a
// stop or a crash.

const LINE_FEED = 0x0a;
const READ_BYTES = 256 * 1024;
const LINES_MAX = 1000;
const POLL_MS = 200;
/** A rotated file is left once its successor has content and it has not grown for this long. */
const LEAVE_AFTER_MS = 1000;
const RETRY_MS = 2000;
const HEAD_BYTES_MAX = 256;

export interface FileTailerOptions {
  readonly path: string;
  readonly checkpointPath: string;
  readonly lineBytesMax: number;
  readonly reader: LineReader;
  readonly sender: LineSender;
  /** Resolves once the batch is stored. */
  readonly submit: (batch: Omit<LineBatch, "id">) => Promise<void>;
  readonly now: () => number;
  /** Logs a warning for the operator. */
  readonly warn: (message: string) => void;
}

/** The open file and the position in it. */
interface TailedFile {
  readonly handle: FileHandle;
  readonly file: string;
  readonly device: number;
  readonly inode: number;
  head: TailerCheckpoint["head"];
  offset: number;
  size: number;
  /** The line that starts at the offset does not end before this position. */
  scanned: number;
  /** Monotonic time, as is the next. */
  grewAtMs: number;
  /** Time at which the successor was first seen with content. */
  succeededAtMs?: number;
}

/** Lines from the offset on. */
interface FilePortion {
  readonly to: number;
  readonly lines: readonly Buffer[];
  /** True for a single line that exceeds the limit; `lines` is then empty. */
  readonly isTooLong: boolean;
}

export class FileTailer {
  readonly #options: FileTailerOptions;
  readonly #stop = new AbortController();
  #tailed: TailedFile | undefined;
  #running: Promise<void> = Promise.resolve();
  #failure: string | undefined;
  #isMissing = false;

  constructor(options: FileTailerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Resolves once everything read is stored. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#tailed?.handle.close();
    this.#tailed = undefined;
  }

  status(): FileStatus {
    const { path } = this.#options;
    const { offset, size } = this.#tailed ?? { offset: 0, size: 0 };
    const state = this.#failure !== undefined ? "failing" : this.#isMissing ? "missing" : "reading";
    const lagBytes = Math.max(0, size - offset);
    const summary =
      this.#failure ??
      (this.#isMissing
        ? `the file does not exist${this.#tailed ? " any more" : " yet"}; it is read as soon as it appears at this path`
        : this.#tailed === undefined
          ? "reading starts shortly"
          : lagBytes === 0
            ? "everything in the file is stored"
            : `${lagBytes} bytes are not stored yet`);
    return { path, state, summary, offset, size, lagBytes };
  }

  async #run(): Promise<void> {
    let isResumed = false;
    while (!this.#stop.signal.aborted) {
      try {
        if (!isResumed) await this.#resume();
        isResumed = true;
        const hasMore = await this.#step();
        this.#failure = undefined;
        if (!hasMore) await this.#sleep(POLL_MS);
      } catch (error) {
        // A missing disk or permission may come back: retry.
        const { message } = error as Error;
        if (this.#failure !== message)
          this.#options.warn(`the file ${this.#options.path} cannot be read: ${message}; retrying`);
        this.#failure = message;
        await this.#sleep(RETRY_MS);
      }
    }
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  /** Resumes the file of the last run under its current name, and repeats the batch that was in flight. */
  async #resume(): Promise<void> {
    const { checkpointPath, path, warn } = this.#options;
    const checkpoint = await readCheckpoint(checkpointPath, path, warn);
    if (!checkpoint) return;
    const tailed = await this.#findAgain(checkpoint);
    if (!tailed) {
      const lost = checkpoint.pending ? ", and the batch in flight at the last stop cannot be read again" : "";
      if ((await isThere(path)) || checkpoint.pending)
        warn(`the file read before is gone: lines at its end may be missing${lost}`);
      return;
    }
    this.#tailed = tailed;
    if (!checkpoint.pending) return;
    const { to, atMs } = checkpoint.pending;
    // Only an overlong line makes a batch of this size.
    const isTooLong = to - checkpoint.offset > this.#options.lineBytesMax + READ_BYTES;
    const lines = isTooLong ? [] : splitLines(await readBytes(tailed.handle, checkpoint.offset, to));
    await this.#deliver(tailed, { to, lines, isTooLong }, atMs, true);
  }

  async #findAgain(checkpoint: TailerCheckpoint): Promise<TailedFile | undefined> {
    const { path } = this.#options;
    for (const candidate of await filesBeside(path)) {
      const found = await stat(candidate).catch(() => undefined);
      if (!found?.isFile() || found.ino !== checkpoint.inode || found.dev !== checkpoint.device) continue;
      const handle = await open(candidate, "r");
      const needed = checkpoint.pending?.to ?? checkpoint.offset;
      const isSame = found.size >= needed && (await closeOnFailure(handle, hasHead(handle, checkpoint.head)));
      if (isSame) {
        const { file, device, inode, head, offset } = checkpoint;
        const grewAtMs = performance.now();
        return { handle, file, device, inode, head, offset, size: found.size, scanned: offset, grewAtMs };
      }
      await handle.close();
    }
    return undefined;
  }

  /** Reads and delivers the next lines. Returns false if there is nothing to do for now. */
  async #step(): Promise<boolean> {
    const tailed = (this.#tailed ??= await this.#open());
    if (!tailed) {
      this.#isMissing = true;
      return false;
    }
    const { size } = await tailed.handle.stat();
    if (size > tailed.size) tailed.grewAtMs = performance.now();
    const isOther = size < tailed.offset || !(await hasHead(tailed.handle, tailed.head));
    tailed.size = size;
    if (isOther) {
      // Truncated, and perhaps rewritten: treated as a new file.
      this.#tailed = await this.#asNew(tailed.handle);
      return true;
    }
    const portion = await this.#read(tailed, size);
    if (portion) {
      this.#isMissing = false;
      await this.#deliver(tailed, portion, this.#options.now(), false);
      return true;
    }
    return this.#leaveIfReplaced(tailed);
  }

  async #open(): Promise<TailedFile | undefined> {
    try {
      // Opening anything else, such as a pipe, could block for ever.
      if (!(await stat(this.#options.path)).isFile()) throw new Error("it is not a file");
      const handle = await open(this.#options.path, "r");
      return await closeOnFailure(handle, this.#asNew(handle));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  async #asNew(handle: FileHandle): Promise<TailedFile> {
    const { dev, ino, size } = await handle.stat();
    const head = { bytes: 0, hash: "" };
    const grewAtMs = performance.now();
    return { handle, file: randomUUID(), device: dev, inode: ino, head, offset: 0, size, scanned: 0, grewAtMs };
  }

  /** Reads complete lines from the offset on; undefined if there is none. */
  async #read(tailed: TailedFile, size: number): Promise<FilePortion | undefined> {
    const { lineBytesMax } = this.#options;
    const { handle, offset } = tailed;
    if (size <= Math.max(offset, tailed.scanned)) return undefined;
    if (tailed.scanned - offset > lineBytesMax) return this.#readOverlong(tailed, size);
    const bytes = await readBytes(handle, offset, Math.min(size, offset + lineBytesMax + READ_BYTES));
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      const lines = splitLines(bytes.subarray(0, end));
      if (lines.length <= LINES_MAX) return { to: offset + end, lines, isTooLong: false };
      const some = lines.slice(0, LINES_MAX);
      return { to: offset + some.reduce((sum, line) => sum + line.length, 0), lines: some, isTooLong: false };
    }
    tailed.scanned = offset + bytes.length;
    return tailed.scanned - offset > lineBytesMax ? this.#readOverlong(tailed, size) : undefined;
  }

  /** Skips an overlong line: only looks for its end. */
  async #readOverlong(tailed: TailedFile, size: number): Promise<FilePortion | undefined> {
    while (tailed.scanned < size) {
      const bytes = await readBytes(tailed.handle, tailed.scanned, Math.min(size, tailed.scanned + READ_BYTES));
      if (bytes.length === 0) return undefined;
      const end = bytes.indexOf(LINE_FEED);
      if (end >= 0) return { to: tailed.scanned + end + 1, lines: [], isTooLong: true };
      tailed.scanned += bytes.length;
    }
    return undefined;
  }

  /** Moves on to the successor of a rotated file once nothing more is written to it. */
  async #leaveIfReplaced(tailed: TailedFile): Promise<boolean> {
    const { path, now } = this.#options;
    const found = await stat(path).catch(() => undefined);
    this.#isMissing = !found;
    if (!found || (found.ino === tailed.inode && found.dev === tailed.device)) return false;
    // The writer keeps writing to the rotated file until it reopens the path.
    if (found.size === 0) return false;
    tailed.succeededAtMs ??= performance.now();
    if (performance.now() - Math.max(tailed.grewAtMs, tailed.succeededAtMs) < LEAVE_AFTER_MS) return false;
    const { handle, offset, size } = tailed;
    if (size > offset && size - offset <= this.#options.lineBytesMax) {
      // The last line only lacks its line end.
      const rest = await readBytes(handle, offset, size);
      await this.#deliver(tailed, { to: size, lines: [rest], isTooLong: false }, now(), false);
    } else if (size > offset) this.#refuseLong(await readBytes(handle, offset, offset + HEAD_BYTES_MAX));
    this.#tailed = await this.#open();
    if (this.#tailed) await this.#reportMissed(handle, this.#tailed.handle);
    await handle.close();
    return true;
  }

  async #reportMissed(older: FileHandle, newer: FileHandle): Promise<void> {
    const { path, sender, warn, now } = this.#options;
    for (const name of await filesBetween(path, older, newer)) {
      const message = `the file ${name} was rotated again before it could be read`;
      sender.lines++;
      sender.refuse("cut_off", message, name, now());
      warn(message);
    }
  }

  async #deliver(tailed: TailedFile, portion: FilePortion, atMs: number, isRepeated: boolean): Promise<void> {
    const { reader, sender, submit, checkpointPath } = this.#options;
    const { offset } = tailed;
    if (tailed.head.bytes < HEAD_BYTES_MAX) {
      const bytes = Math.min(HEAD_BYTES_MAX, portion.to);
      tailed.head = { bytes, hash: await hashHead(tailed.handle, bytes) };
    }
    if (!isRepeated) await writeCheckpoint(checkpointPath, this.#checkpointOf(tailed, { to: portion.to, atMs }));
    const tally = new ReadTally();
    if (portion.isTooLong) this.#refuseLong(await readBytes(tailed.handle, offset, offset + HEAD_BYTES_MAX));
    for (const line of portion.lines) this.#readLine(withoutLineEnd(line), atMs, reader, sender, tally);
    const token = `file ${tailed.file} ${offset}-${portion.to}`;
    const slices: Promise<void>[] = [];
    // Flow records are not repeated after a crash, as adding them twice is worse than losing them.
    if (tally.flows.length > 0 && !isRepeated)
      slices.push(submit({ token: null, atMs, drafts: [], flows: tally.flows }));
    for (let from = 0; from < tally.drafts.length; from += BATCH_EVENTS_MAX) {
      const drafts = tally.drafts.slice(from, from + BATCH_EVENTS_MAX);
      slices.push(submit({ token: `${token} ${from}`, atMs, drafts, flows: [] }));
    }
    await Promise.all(slices);
    tailed.offset = portion.to;
    tailed.scanned = portion.to;
    // The checkpoint of the next batch would confirm this one; if there is none for now, confirm it here.
    if (tailed.offset >= tailed.size || this.#stop.signal.aborted)
      await writeCheckpoint(checkpointPath, this.#checkpointOf(tailed, null));
  }

  #checkpointOf(tailed: TailedFile, pending: TailerCheckpoint["pending"]): TailerCheckpoint {
    const { file, device, inode, head, offset } = tailed;
    return { path: this.#options.path, file, device, inode, head, offset, pending };
  }

  #readLine(bytes: Buffer, atMs: number, reader: LineReader, sender: LineSender, tally: ReadTally): void {
    if (bytes.length === 0) return;
    if (bytes.length > this.#options.lineBytesMax) {
      this.#refuseLong(bytes);
      return;
    }
    sender.countLine(atMs);
    sender.lastSeenMs = atMs;
    const text = decodeLine(bytes);
    if (text) reader.read({ ...text, atMs, from: sender.address }, sender, tally);
    else sender.refuse("not_text", "a line is not text", bytes, atMs);
  }

  #refuseLong(head: Buffer): void {
    const { sender, lineBytesMax, now } = this.#options;
    sender.countLine(now());
    sender.lastSeenMs = now();
    sender.refuse("too_long", `a line is longer than ${lineBytesMax} bytes`, head, now());
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
