import { statSync } from "node:fs";

// A file that is unlinked, renamed or replaced goes on taking writes through the handle that is open, and all of them are
// gone after the next restart. So whoever acknowledges a write first makes sure that the path still leads to the file that
// was opened. A stat takes a microsecond or two; the fsync before it takes a thousand times as long.

/** Thrown in threads too, where only its name and message cross over: `isFileGone` knows it on either side. */
export class FileGone extends Error {
  constructor(path: string, what: string) {
    super(`The file ${path} ${what} while the service was running: what is written to it would be lost.`);
    this.name = "FileGone";
  }
}

export function isFileGone(error: unknown): boolean {
  return error instanceof Error && error.name === "FileGone";
}

/** Which file a path led to when this was made. */
export class FileIdentity {
  readonly path: string;
  readonly #device: number;
  readonly #inode: number;
  readonly #mayShrink: boolean;
  #bytes: number;

  /** SQLite's main files never get smaller here; its logs and DuckDB's files do. */
  constructor(path: string, { mayShrink = false } = {}) {
    const { dev, ino, size } = statSync(path);
    this.path = path;
    this.#device = dev;
    this.#inode = ino;
    this.#bytes = size;
    this.#mayShrink = mayShrink;
  }

  /** What has happened to the file; undefined while it is the one that was opened. */
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

/** A SQLite file in write-ahead mode, with the log that holds the newest commits. It must be open, or the log may not exist. */
export class SqliteIdentity {
  readonly #files: readonly FileIdentity[];

  constructor(path: string) {
    this.#files = [new FileIdentity(path), new FileIdentity(`${path}-wal`, { mayShrink: true })];
  }

  verify(): void {
    for (const file of this.#files) file.verify();
  }

  /** The same without throwing. */
  get faults(): GoneFile[] {
    return goneAmong(this.#files);
  }

  /** Runs a write that may only be acknowledged when it returns. */
  during<Value>(write: () => Value): Value {
    // Before as well: what is not written cannot be found later and taken for stored.
    this.verify();
    const value = write();
    this.verify();
    return value;
  }
}

/** A file of the data folder that is not the one any more that was opened. */
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
