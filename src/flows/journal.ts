import { open, readdir, readFile, rename, rm, type FileHandle } from "node:fs/promises";
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { NAT_WORDS } from "../collectors/records.ts";
import { NewerFile } from "../lib/newer-file.ts";
import { ADDRESS_BYTES } from "../model/flow.ts";
import { COUNTER_WORDS, FlowTable, KEY_WORDS } from "./table.ts";

// Windows that the store does not have yet, on disk: a file each, written every few seconds with the rows that changed, as
// they stand, and once the store has them all removed, or kept for as long as summaries look back. A crash loses the seconds since the last writing. Rows keep their
// places, so what is read back goes to the store under the same batch ids as before, and the store knows what it has.

// The first four bytes: a word for the kind of file, and the version of its form as a digit.
const MAGIC = "TFJ";
/** 2 has translations. Files of version 1 are read as they are: they have none. */
const VERSION = 2;
const HEADER = [...Buffer.from(`${MAGIC}${VERSION}`)] as const;
const MAGIC_BYTES = 4;
/** The magic and the minute. */
const HEADER_BYTES = 8;
const BLOCK_EXPORTERS = 1;
const BLOCK_ROWS = 2;
const BLOCK_CLOSED = 3;
const BLOCK_TRANSLATIONS = 4;
/** Kind, length and checksum before each block. */
const BLOCK_HEADER_BYTES = 16;
const EXPORTER_BYTES = 4 + ADDRESS_BYTES;
/** Place, flags with the first end, key, counters, first and last seen. */
const ROW_WORDS = 2 + KEY_WORDS + COUNTER_WORDS + 4;
/** The row's place, then its translation. */
const TRANSLATION_WORDS = 1 + NAT_WORDS;
const BLOCK_ROWS_MAX = 65_536;
/** A file that has grown so large is a window that had better be written. */
export const JOURNAL_FILE_BYTES_MAX = 512 * 1024 * 1024;
const SUFFIX = ".window";
/** Windows that are stored, kept so that summaries can go on after a restart. */
const STORED_SUFFIX = ".stored";
/** Beyond this the oldest stored windows are removed early: after a restart, summaries go without them. */
const STORED_BYTES_MAX = 256 * 1024 * 1024;

interface OpenFile {
  readonly handle: FileHandle;
  exporters: number;
  /** Up to here it is whole. */
  bytes: number;
  /** Something may stand behind that. */
  isTorn: boolean;
}

interface StoredFile {
  readonly path: string;
  readonly minute: number;
  readonly bytes: number;
}

interface JournalOptions {
  readonly onTrouble?: (trouble: string) => void;
  readonly storedBytesMax?: number;
}

export interface Recovered {
  readonly table: FlowTable;
  /** Whether it had been closed, so that parts of it may be in the store. */
  readonly closed: boolean;
}

/** Whether the last run has left anything. A folder that cannot be made shows itself here. */
export function hasWindows(folder: string): boolean {
  mkdirSync(folder, { recursive: true });
  return readdirSync(folder).some((name) => name.endsWith(SUFFIX));
}

/** The version of a window's form; undefined where the bytes are not the beginning of such a file. */
function versionOf(start: Uint8Array): number | undefined {
  const [, digit] =
    new RegExp(`^${MAGIC}([1-9])`).exec(Buffer.from(start.subarray(0, MAGIC_BYTES)).toString("latin1")) ?? [];
  return digit === undefined ? undefined : Number(digit);
}

/** Throws NewerFile where a newer version has left windows, before anything in the folder is touched. */
export function refuseNewerWindows(folder: string): void {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder).filter((name) => name.endsWith(SUFFIX) || name.endsWith(STORED_SUFFIX))) {
    const path = join(folder, name);
    const start = new Uint8Array(MAGIC_BYTES);
    const file = openSync(path, "r");
    try {
      readSync(file, start, 0, MAGIC_BYTES, 0);
    } finally {
      closeSync(file);
    }
    refuseNewer(path, start);
  }
}

function refuseNewer(path: string, start: Uint8Array): void {
  const version = versionOf(start);
  if (version !== undefined && version > VERSION) throw new NewerFile(path, version, VERSION);
}

export class WindowJournal {
  readonly #folder: string;
  readonly #onTrouble: (trouble: string) => void;
  readonly #files = new Map<FlowTable, OpenFile>();
  /** Oldest minute first. */
  readonly #stored: StoredFile[] = [];

  readonly #storedBytesMax: number;

  /** `onTrouble` hears of files that were lost or cannot be read. */
  constructor(folder: string, { onTrouble, storedBytesMax }: JournalOptions = {}) {
    this.#folder = folder;
    this.#onTrouble = onTrouble ?? (() => undefined);
    this.#storedBytesMax = storedBytesMax ?? STORED_BYTES_MAX;
    mkdirSync(folder, { recursive: true });
  }

  /** Makes what has changed in the table durable. What rejects is written with what changes next. */
  async write(table: FlowTable, closed: boolean): Promise<void> {
    if (!this.#hasFile(table)) await this.#begin(table);
    const file = this.#files.get(table)!;
    const blocks: Uint8Array[] = [];
    const exporters = table.exporters.size;
    if (exporters > file.exporters) blocks.push(...block(BLOCK_EXPORTERS, encodeExporters(table)));
    const changed = table.takeChanged();
    for (let from = 0; from < changed.length; from += BLOCK_ROWS_MAX) {
      const rows = changed.subarray(from, from + BLOCK_ROWS_MAX);
      blocks.push(...block(BLOCK_ROWS, encodeRows(table, rows)));
      const translated = table.translations.among(rows);
      if (translated.length > 0) blocks.push(...block(BLOCK_TRANSLATIONS, encodeTranslations(table, translated)));
    }
    if (closed) blocks.push(...block(BLOCK_CLOSED, new Uint8Array(new Uint32Array([table.count]).buffer)));
    if (blocks.length === 0) return;
    if (file.bytes === 0) blocks.unshift(headerOf(table));
    try {
      await append(file, blocks);
      file.exporters = exporters;
    } catch (error) {
      table.giveBack(changed);
      throw error;
    }
  }

  sizeOf(table: FlowTable): number {
    return this.#files.get(table)?.bytes ?? 0;
  }

  /** The store has all of it. */
  async remove(table: FlowTable): Promise<void> {
    await this.#files.get(table)?.handle.close();
    this.#files.delete(table);
    await rm(this.#pathOf(table.id), { force: true });
  }

  /** The store has all of it, and summaries may still need it. */
  async keep(table: FlowTable): Promise<void> {
    const file = this.#files.get(table);
    // One that could not be written is not there to be kept.
    if (!file || file.bytes === 0) return this.remove(table);
    this.#files.delete(table);
    await file.handle.close();
    const path = this.#pathOf(table.id, STORED_SUFFIX);
    await rename(this.#pathOf(table.id), path);
    this.#addStored({ path, minute: table.minute, bytes: file.bytes });
  }

  /** Removes the stored windows that are from before this minute, or more than may be kept. */
  async removeStored(beforeMinute: number): Promise<void> {
    let bytes = this.#stored.reduce((sum, file) => sum + file.bytes, 0);
    for (let file = this.#stored[0]; file; file = this.#stored[0]) {
      if (file.minute >= beforeMinute && bytes <= this.#storedBytesMax) return;
      await rm(file.path, { force: true });
      this.#stored.shift();
      bytes -= file.bytes;
    }
  }

  /** Stored windows of the last run, oldest first. */
  async *recoverStored(): AsyncGenerator<FlowTable> {
    for (const name of await this.#names(STORED_SUFFIX)) {
      const path = join(this.#folder, name);
      const read = readTable(name.slice(0, -STORED_SUFFIX.length), await readFile(path));
      if (read) {
        this.#addStored({ path, minute: read.table.minute, bytes: read.bytes });
        yield read.table;
      } else await rm(path, { force: true });
    }
  }

  #addStored(file: StoredFile): void {
    this.#stored.push(file);
    this.#stored.sort((left, right) => left.minute - right.minute);
  }

  /** Closes the files without removing them: the next start reads them. */
  async close(): Promise<void> {
    for (const { handle } of this.#files.values()) await handle.close();
    this.#files.clear();
  }

  /**
   * What was not stored when the service last stopped, oldest first. A file that was begun and holds no row yet is removed;
   * one that is something else is kept under another name.
   */
  async *recover(): AsyncGenerator<Recovered> {
    for (const name of await this.#names(SUFFIX)) {
      const path = join(this.#folder, name);
      const content = await readFile(path);
      refuseNewer(path, content);
      const read = readTable(name.slice(0, -SUFFIX.length), content);
      if (!read && content.length >= HEADER_BYTES) {
        await rename(path, `${path}.${Date.now()}.damaged`);
        this.#onTrouble(`${path} cannot be read and was kept under another name: the flows of its minute are missing`);
        continue;
      }
      if (read && read.table.count > 0) {
        const handle = await open(path, "a");
        const exporters = read.table.exporters.size;
        this.#files.set(read.table, { handle, exporters, bytes: read.bytes, isTorn: false });
        // What stands behind a torn end would never be read: the file goes on where it makes sense.
        await handle.truncate(read.bytes);
        yield read;
      } else await rm(path, { force: true });
    }
  }

  /** Whether the table's file is open and still where the next start looks for it. */
  #hasFile(table: FlowTable): boolean {
    const file = this.#files.get(table);
    if (!file) return false;
    const opened = fstatSync(file.handle.fd);
    const there = statSync(this.#pathOf(table.id), { throwIfNoEntry: false });
    return there?.ino === opened.ino && there.dev === opened.dev;
  }

  /** Makes the table's file. Where it had one that was removed or replaced, every row is written again. */
  async #begin(table: FlowTable): Promise<void> {
    const path = this.#pathOf(table.id);
    const file = this.#files.get(table);
    if (file) {
      await file.handle.close();
      this.#onTrouble(`${path} was removed or replaced while the service was running; its rows are written again`);
      table.giveBack(Int32Array.from({ length: table.count }, (_, row) => row));
    }
    this.#files.set(table, await create(path));
  }

  async #names(suffix: string): Promise<string[]> {
    return (await readdir(this.#folder)).filter((name) => name.endsWith(suffix)).sort();
  }

  #pathOf(id: string, suffix = SUFFIX): string {
    return join(this.#folder, id + suffix);
  }
}

async function create(path: string): Promise<OpenFile> {
  await rm(path, { force: true });
  return { handle: await open(path, "a"), exporters: 0, bytes: 0, isTorn: false };
}

function headerOf({ minute }: FlowTable): Uint8Array {
  const header = new Uint8Array(HEADER_BYTES);
  header.set(HEADER);
  new DataView(header.buffer).setUint32(MAGIC_BYTES, minute, true);
  return header;
}

/** All of it, or nothing that counts: what stands behind half a block would never be read. */
async function append(file: OpenFile, blocks: readonly Uint8Array[]): Promise<void> {
  const { handle } = file;
  if (file.isTorn) await handle.truncate(file.bytes);
  file.isTorn = true;
  // A single write may end before its end, and say nothing.
  for (const bytes of blocks) await handle.appendFile(bytes);
  await handle.datasync();
  file.bytes += blocks.reduce((sum, { length }) => sum + length, 0);
  file.isTorn = false;
}

function block(kind: number, content: Uint8Array): [Uint8Array, Uint8Array] {
  const header = new Uint32Array([kind, content.length, crc32(content), 0]);
  return [new Uint8Array(header.buffer), content];
}

function encodeExporters(table: FlowTable): Uint8Array {
  const content = new Uint8Array(table.exporters.size * EXPORTER_BYTES);
  const view = new DataView(content.buffer);
  let at = 0;
  for (const [index, address] of table.exporters) {
    view.setUint32(at, index, true);
    content.set(address, at + 4);
    at += EXPORTER_BYTES;
  }
  return content;
}

function encodeRows(table: FlowTable, rows: Int32Array): Uint8Array {
  const words = new Uint32Array(rows.length * ROW_WORDS);
  const times = new Float64Array(2);
  const timeWords = new Uint32Array(times.buffer);
  const { keys } = table.index;
  rows.forEach((row, index) => {
    let at = index * ROW_WORDS;
    words[at++] = row;
    // Files of releases that did not know `firstEnd` have zeros in the upper half.
    words[at++] = ((table.firstEnd[row]! << 16) | table.tcpFlags[row]!) >>> 0;
    for (let word = 0; word < KEY_WORDS; word++) words[at++] = keys[row * KEY_WORDS + word]!;
    for (let word = 0; word < COUNTER_WORDS; word++) words[at++] = table.counters[row * COUNTER_WORDS + word]!;
    times[0] = table.firstSeen[row]!;
    times[1] = table.lastSeen[row]!;
    words.set(timeWords, at);
  });
  return new Uint8Array(words.buffer);
}

function encodeTranslations({ translations }: FlowTable, rows: Int32Array): Uint8Array {
  const words = new Uint32Array(rows.length * TRANSLATION_WORDS);
  rows.forEach((row, index) => {
    words[index * TRANSLATION_WORDS] = row;
    words.set(translations.get(row)!, index * TRANSLATION_WORDS + 1);
  });
  return new Uint8Array(words.buffer);
}

function readTable(id: string, file: Buffer): (Recovered & { bytes: number }) | undefined {
  // Aligned and of its own, so that words can be looked at as words.
  const bytes = new Uint8Array(file);
  if (bytes.length < HEADER_BYTES || (versionOf(bytes) ?? Infinity) > VERSION) return undefined;
  const minute = new Uint32Array(bytes.buffer, MAGIC_BYTES, 1)[0];
  const table = new FlowTable(id, minute!);
  let closed = false;
  let at = HEADER_BYTES;
  while (bytes.length - at >= BLOCK_HEADER_BYTES) {
    const [kind, length, checksum] = new Uint32Array(bytes.buffer, at, 3);
    const start = at + BLOCK_HEADER_BYTES;
    if (start + length! > bytes.length) break;
    const content = bytes.subarray(start, start + length!);
    if (crc32(content) !== checksum) break;
    if (kind === BLOCK_EXPORTERS) restoreExporters(table, content);
    else if (kind === BLOCK_ROWS && !restoreRows(table, content)) break;
    else if (kind === BLOCK_TRANSLATIONS && !restoreTranslations(table, content)) break;
    else if (kind === BLOCK_CLOSED) closed = true;
    at = start + length!;
  }
  return { table, closed, bytes: at };
}

function restoreExporters(table: FlowTable, content: Uint8Array): void {
  const view = new DataView(content.buffer, content.byteOffset, content.length);
  for (let at = 0; at + EXPORTER_BYTES <= content.length; at += EXPORTER_BYTES) {
    table.exporters.set(view.getUint32(at, true), content.slice(at + 4, at + EXPORTER_BYTES));
  }
}

function restoreRows(table: FlowTable, content: Uint8Array): boolean {
  const words = new Uint32Array(content.buffer, content.byteOffset, content.length / 4);
  const times = new Float64Array(2);
  const timeWords = new Uint32Array(times.buffer);
  for (let at = 0; at + ROW_WORDS <= words.length; at += ROW_WORDS) {
    const key = words.subarray(at + 2, at + 2 + KEY_WORDS);
    const counters = words.subarray(at + 2 + KEY_WORDS, at + 2 + KEY_WORDS + COUNTER_WORDS);
    timeWords.set(words.subarray(at + 2 + KEY_WORDS + COUNTER_WORDS, at + ROW_WORDS));
    const [tcpFlags, firstEnd] = [words[at + 1]! & 0xffff, words[at + 1]! >>> 16];
    const state = { counters, firstSeen: times[0]!, lastSeen: times[1]!, tcpFlags, firstEnd };
    const known = table.restore(words[at]!, key, state);
    if (!known || !table.exporters.has(key[1]! >>> 16)) return false;
  }
  return true;
}

function restoreTranslations(table: FlowTable, content: Uint8Array): boolean {
  const words = new Uint32Array(content.buffer, content.byteOffset, content.length / 4);
  for (let at = 0; at + TRANSLATION_WORDS <= words.length; at += TRANSLATION_WORDS) {
    if (words[at]! >= table.count) return false;
    table.translations.set(words[at]!, words, at + 1);
  }
  return true;
}
