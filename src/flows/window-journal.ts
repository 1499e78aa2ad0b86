import { open, readdir, readFile, rename, rm, type FileHandle } from "node:fs/promises";
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { NAT_WORDS } from "../collectors/flows/flow-records.ts";
import { NewerFile } from "../lib/newer-file.ts";
import { ADDRESS_BYTES } from "../model/flow.ts";
import { COUNTER_WORDS, WindowTable, KEY_WORDS } from "./window-table.ts";

// The journal of windows that are not stored yet: one file for each, to which changed rows are appended every few seconds. Once the
// window is stored, its file is removed, or kept for as long as summaries look back. A crash loses the seconds since the last
// write. Rows keep their positions, so recovered rows go to the store under the same batch ids as before, which deduplicate them.

// The first four bytes: the file type, and the format version as a digit.
const MAGIC = "TFJ";
/** Version 2 has NAT translations. Files of version 1, which have none, are still read. */
const VERSION = 2;
const HEADER = [...Buffer.from(`${MAGIC}${VERSION}`)] as const;
const MAGIC_BYTES = 4;
/** The magic and the minute. */
const HEADER_BYTES = 8;
const BLOCK_EXPORTERS = 1;
const BLOCK_ROWS = 2;
const BLOCK_CLOSED = 3;
const BLOCK_TRANSLATIONS = 4;
/** Type, length and checksum before each block. */
const BLOCK_HEADER_BYTES = 16;
const EXPORTER_BYTES = 4 + ADDRESS_BYTES;
/** Position, flags with the first end, key, counters, first and last seen. */
const ROW_WORDS = 2 + KEY_WORDS + COUNTER_WORDS + 4;
/** The row's position, then its translation. */
const TRANSLATION_WORDS = 1 + NAT_WORDS;
const BLOCK_ROWS_MAX = 65_536;
/** The window of a larger file is closed early. */
export const JOURNAL_FILE_BYTES_MAX = 512 * 1024 * 1024;
const SUFFIX = ".window";
/** Stored windows, kept so that summaries can continue after a restart. */
const STORED_SUFFIX = ".stored";
/** Beyond this limit the oldest stored windows are removed early; after a restart, summaries do without them. */
const STORED_BYTES_MAX = 256 * 1024 * 1024;

interface OpenFile {
  readonly handle: FileHandle;
  exporters: number;
  /** The length of the intact part. */
  bytes: number;
  /** True if there may be bytes after the intact part. */
  isTorn: boolean;
}

interface StoredFile {
  readonly path: string;
  readonly minute: number;
  readonly bytes: number;
}

interface WindowJournalOptions {
  readonly onTrouble?: (trouble: string) => void;
  readonly storedBytesMax?: number;
}

export interface RecoveredWindow {
  readonly table: WindowTable;
  /** True if it had been closed: parts of it may be stored already. */
  readonly closed: boolean;
}

/** True if the last run left windows. Creates the folder, and throws if it cannot. */
export function hasWindows(folder: string): boolean {
  mkdirSync(folder, { recursive: true });
  return readdirSync(folder).some((name) => name.endsWith(SUFFIX));
}

/** The format version; undefined if the bytes are not the start of a window file. */
function versionOf(start: Uint8Array): number | undefined {
  const [, digit] =
    new RegExp(`^${MAGIC}([1-9])`).exec(Buffer.from(start.subarray(0, MAGIC_BYTES)).toString("latin1")) ?? [];
  return digit === undefined ? undefined : Number(digit);
}

/** Throws NewerFile if a newer version has left windows, before anything in the folder is touched. */
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
  readonly #files = new Map<WindowTable, OpenFile>();
  /** Oldest minute first. */
  readonly #stored: StoredFile[] = [];
  readonly #storedBytesMax: number;

  /** `onTrouble` receives messages about files that were lost or cannot be read. */
  constructor(folder: string, { onTrouble, storedBytesMax }: WindowJournalOptions = {}) {
    this.#folder = folder;
    this.#onTrouble = onTrouble ?? (() => undefined);
    this.#storedBytesMax = storedBytesMax ?? STORED_BYTES_MAX;
    mkdirSync(folder, { recursive: true });
  }

  /** Makes the changed rows of the table durable. After a rejection they are written with the next ones. */
  async write(table: WindowTable, closed: boolean): Promise<void> {
    if (!this.#hasFile(table)) await this.#begin(table);
    const file = this.#files.get(table)!;
    const blocks: Uint8Array[] = [];
    const exporters = table.exporters.size;
    if (exporters > file.exporters) blocks.push(...block(BLOCK_EXPORTERS, encodeExporters(table)));
    const changed = table.takeChanged();
    for (let from = 0; from < changed.length; from += BLOCK_ROWS_MAX) {
      const rows = changed.subarray(from, from + BLOCK_ROWS_MAX);
      blocks.push(...block(BLOCK_ROWS, encodeRows(table, rows)));
      const translated = table.translations.translatedRows(rows);
      if (translated.length > 0) blocks.push(...block(BLOCK_TRANSLATIONS, encodeTranslations(table, translated)));
    }
    if (closed) blocks.push(...block(BLOCK_CLOSED, new Uint8Array(new Uint32Array([table.count]).buffer)));
    if (blocks.length === 0) return;
    if (file.bytes === 0) blocks.unshift(headerOf(table));
    try {
      await append(file, blocks);
      file.exporters = exporters;
    } catch (error) {
      table.markChanged(changed);
      throw error;
    }
  }

  sizeOf(table: WindowTable): number {
    return this.#files.get(table)?.bytes ?? 0;
  }

  /** Removes the file of a stored table. */
  async remove(table: WindowTable): Promise<void> {
    await this.#files.get(table)?.handle.close();
    this.#files.delete(table);
    await rm(this.#pathOf(table.id), { force: true });
  }

  /** Keeps the file of a stored table for summaries after a restart. */
  async keep(table: WindowTable): Promise<void> {
    const file = this.#files.get(table);
    // A table that could not be written has no file to keep.
    if (!file || file.bytes === 0) return this.remove(table);
    this.#files.delete(table);
    await file.handle.close();
    const path = this.#pathOf(table.id, STORED_SUFFIX);
    await rename(this.#pathOf(table.id), path);
    this.#addStored({ path, minute: table.minute, bytes: file.bytes });
  }

  /** Removes stored windows of earlier minutes, and those beyond the limit. */
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
  async *recoverStored(): AsyncGenerator<WindowTable> {
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
   * Recovers the windows that were not stored when the service last stopped, oldest first. A file without rows is removed; a file
   * that is not a journal is kept under another name.
   */
  async *recover(): AsyncGenerator<RecoveredWindow> {
    for (const name of await this.#names(SUFFIX)) {
      const path = join(this.#folder, name);
      const content = await readFile(path);
      refuseNewer(path, content);
      const read = readTable(name.slice(0, -SUFFIX.length), content);
      if (!read && content.length >= HEADER_BYTES) {
        await rename(path, `${path}.${Date.now()}.damaged`);
        this.#onTrouble(`${path} cannot be read and was renamed to *.damaged; the flows of its minute are missing`);
        continue;
      }
      if (read && read.table.count > 0) {
        const handle = await open(path, "a");
        const exporters = read.table.exporters.size;
        this.#files.set(read.table, { handle, exporters, bytes: read.bytes, isTorn: false });
        // Blocks after a torn one would never be read: the file continues after its intact part.
        await handle.truncate(read.bytes);
        yield read;
      } else await rm(path, { force: true });
    }
  }

  /** True if the table's file is open and still in the folder. */
  #hasFile(table: WindowTable): boolean {
    const file = this.#files.get(table);
    if (!file) return false;
    const opened = fstatSync(file.handle.fd);
    const found = statSync(this.#pathOf(table.id), { throwIfNoEntry: false });
    return found?.ino === opened.ino && found.dev === opened.dev;
  }

  /** Creates the table's file. If its previous file was removed or replaced, every row is written again. */
  async #begin(table: WindowTable): Promise<void> {
    const path = this.#pathOf(table.id);
    const file = this.#files.get(table);
    if (file) {
      await file.handle.close();
      this.#onTrouble(`${path} was removed or replaced while the service was running; writing its rows again`);
      table.markChanged(Int32Array.from({ length: table.count }, (_, row) => row));
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

function headerOf({ minute }: WindowTable): Uint8Array {
  const header = new Uint8Array(HEADER_BYTES);
  header.set(HEADER);
  new DataView(header.buffer).setUint32(MAGIC_BYTES, minute, true);
  return header;
}

/** Appends all blocks or none: after a failure the next call truncates the file, since blocks after a torn one are not read. */
async function append(file: OpenFile, blocks: readonly Uint8Array[]): Promise<void> {
  const { handle } = file;
  if (file.isTorn) await handle.truncate(file.bytes);
  file.isTorn = true;
  // A single write may be short without an error; appendFile repeats it.
  for (const bytes of blocks) await handle.appendFile(bytes);
  await handle.datasync();
  file.bytes += blocks.reduce((sum, { length }) => sum + length, 0);
  file.isTorn = false;
}

function block(type: number, content: Uint8Array): [Uint8Array, Uint8Array] {
  const header = new Uint32Array([type, content.length, crc32(content), 0]);
  return [new Uint8Array(header.buffer), content];
}

function encodeExporters(table: WindowTable): Uint8Array {
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

function encodeRows(table: WindowTable, rows: Int32Array): Uint8Array {
  const words = new Uint32Array(rows.length * ROW_WORDS);
  const times = new Float64Array(2);
  const timeWords = new Uint32Array(times.buffer);
  const { keys } = table.index;
  rows.forEach((row, index) => {
    let at = index * ROW_WORDS;
    words[at++] = row;
    // Files of releases without `firstEnd` have zeros in the upper half.
    words[at++] = ((table.firstEnd[row]! << 16) | table.tcpFlags[row]!) >>> 0;
    for (let word = 0; word < KEY_WORDS; word++) words[at++] = keys[row * KEY_WORDS + word]!;
    for (let word = 0; word < COUNTER_WORDS; word++) words[at++] = table.counters[row * COUNTER_WORDS + word]!;
    times[0] = table.firstSeen[row]!;
    times[1] = table.lastSeen[row]!;
    words.set(timeWords, at);
  });
  return new Uint8Array(words.buffer);
}

function encodeTranslations({ translations }: WindowTable, rows: Int32Array): Uint8Array {
  const words = new Uint32Array(rows.length * TRANSLATION_WORDS);
  rows.forEach((row, index) => {
    words[index * TRANSLATION_WORDS] = row;
    words.set(translations.get(row)!, index * TRANSLATION_WORDS + 1);
  });
  return new Uint8Array(words.buffer);
}

function readTable(id: string, file: Buffer): (RecoveredWindow & { bytes: number }) | undefined {
  // A copy is aligned, so that it can be read as words.
  const bytes = new Uint8Array(file);
  if (bytes.length < HEADER_BYTES || (versionOf(bytes) ?? Infinity) > VERSION) return undefined;
  const minute = new Uint32Array(bytes.buffer, MAGIC_BYTES, 1)[0];
  const table = new WindowTable(id, minute!);
  let closed = false;
  let at = HEADER_BYTES;
  while (bytes.length - at >= BLOCK_HEADER_BYTES) {
    const [type, length, checksum] = new Uint32Array(bytes.buffer, at, 3);
    const start = at + BLOCK_HEADER_BYTES;
    if (start + length! > bytes.length) break;
    const content = bytes.subarray(start, start + length!);
    if (crc32(content) !== checksum) break;
    if (type === BLOCK_EXPORTERS) restoreExporters(table, content);
    else if (type === BLOCK_ROWS && !restoreRows(table, content)) break;
    else if (type === BLOCK_TRANSLATIONS && !restoreTranslations(table, content)) break;
    else if (type === BLOCK_CLOSED) closed = true;
    at = start + length!;
  }
  return { table, closed, bytes: at };
}

function restoreExporters(table: WindowTable, content: Uint8Array): void {
  const view = new DataView(content.buffer, content.byteOffset, content.length);
  for (let at = 0; at + EXPORTER_BYTES <= content.length; at += EXPORTER_BYTES) {
    table.exporters.set(view.getUint32(at, true), content.slice(at + 4, at + EXPORTER_BYTES));
  }
}

function restoreRows(table: WindowTable, content: Uint8Array): boolean {
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

function restoreTranslations(table: WindowTable, content: Uint8Array): boolean {
  const words = new Uint32Array(content.buffer, content.byteOffset, content.length / 4);
  for (let at = 0; at + TRANSLATION_WORDS <= words.length; at += TRANSLATION_WORDS) {
    if (words[at]! >= table.count) return false;
    table.translations.set(words[at]!, words, at + 1);
  }
  return true;
}
