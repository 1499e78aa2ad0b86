import { statSync } from "node:fs";

// A file that was unlinked, renamed or replaced still accepts writes through an open handle, and all of them are lost at the
// next restart. So a write is acknowledged only after a check that the path still leads to the opened file. A stat takes a
// microsecond or two; the fsync before it takes a thousand times as long.

/** Only the name and message of an error cross a thread boundary, so use `isFileGone` instead of `instanceof`. */
export class FileGone extends Error {
  constructor(path: string, fault: string) {
    super(`The file ${path} ${fault} while the service was running: writes to it would be lost.`);
    this.name = "FileGone";
  }
}

export function isFileGone(error: unknown): boolean {
  return error instanceof Error && error.name === "FileGone";
}

/** The device and inode that a path led to at construction. */
export class FileIdentity {
  readonly path: string;
  readonly #device: number;
  readonly #inode: number;
  readonly #mayShrink: boolean;
  #bytes: number;

  /** SQLite's main files never shrink here; its logs and DuckDB's files do. */
  constructor(path: string, { mayShrink = false } = {}) {
    const { dev, ino, size } = statSync(path);
    this.path = path;
    this.#device = dev;
    this.#inode = ino;
    this.#bytes = size;
    this.#mayShrink = mayShrink;
  }

  /** The fault, worded to follow the file's name; undefined while the path leads to the opened file. */
  fault(): string | undefined {
    const found = statSync(this.path, { throwIfNoEntry: false });
    if (!found) return "was removed or renamed";
    if (found.ino !== this.#inode || found.dev !== this.#device) return "was replaced";
    if (!this.#mayShrink && found.size < this.#bytes) return "was truncated";
    this.#bytes = found.size;
    return undefined;
  }

  verify(): void {
    const fault = this.fault();
    if (fault !== undefined) throw new FileGone(this.path, fault);
  }
}

/** A SQLite file in write-ahead mode, with its log. Construct it while the file is open; otherwise the log may not exist. */
export class SqliteIdentity {
  readonly #files: readonly FileIdentity[];

  constructor(path: string) {
    this.#files = [new FileIdentity(path), new FileIdentity(`${path}-wal`, { mayShrink: true })];
  }

  verify(): void {
    for (const file of this.#files) file.verify();
  }

  /** Like `verify`, without throwing. */
  get faults(): GoneFile[] {
    return goneAmong(this.#files);
  }

  /** Runs a write that may be acknowledged only if this returns. */
  during<Value>(write: () => Value): Value {
    // Before the write as well, so that a refused write is not in the file if it comes back.
    this.verify();
    const value = write();
    this.verify();
    return value;
  }
}

/** A file of the data folder that is no longer the one that was opened. */
export interface GoneFile {
  readonly path: string;
  readonly fault: string;
}

export function goneAmong(files: Iterable<FileIdentity>): GoneFile[] {
  const gone: GoneFile[] = [];
  for (const file of files) {
    const fault = file.fault();
    if (fault !== undefined) gone.push({ path: file.path, fault });
  }
  return gone;
}
