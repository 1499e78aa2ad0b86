import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { TaughtFault } from "../taught-status.ts";
import type { LocatedDescription } from "./description-checks.ts";
import { readDescriptions } from "./read-descriptions.ts";

// The files of a folder that teach formats. A file that is spoiled keeps the formats of its last good version.

const FILES_MAX = 200;
/** Parsing blocks the thread, for a tenth of a second for this size. */
const FILE_BYTES_MAX = 256 * 1024;
const FOLDER_BYTES_MAX = 2 * 1024 * 1024;
const FILE_FAULTS_MAX = 20;
const NAME = /^[^.].*\.ya?ml$/i;

interface TaughtFile {
  /** Of the last attempt. */
  readonly signature: string;
  readonly bytes: number;
  readonly formats: readonly LocatedDescription[];
  /** When `formats` were read. */
  readonly atMs: number;
  readonly faults: readonly TaughtFault[];
}

export interface TaughtFileFormat {
  readonly located: LocatedDescription;
  readonly atMs: number;
  /** True if the file has changed since and is spoiled. */
  readonly isKept: boolean;
}

export class TaughtFiles {
  readonly #folder: string;
  readonly #now: () => number;
  #files: ReadonlyMap<string, TaughtFile> = new Map();
  #faults: readonly TaughtFault[] = [];

  constructor(folder: string, now: () => number) {
    this.#folder = folder;
    this.#now = now;
  }

  /** Reads files that have changed. Returns true if any did. */
  async poll(): Promise<boolean> {
    const { names, faults } = await this.#list();
    const before = this.#files;
    if (names === undefined) return this.#replace(before, faults);
    const files = new Map<string, TaughtFile>();
    let bytes = 0;
    for (const name of names) {
      const file = await this.#read(name, before.get(name), FOLDER_BYTES_MAX - bytes);
      files.set(name, file);
      bytes += file.bytes;
    }
    return this.#replace(files, faults);
  }

  /** By the name of the file, then by their order in it. */
  get formats(): readonly TaughtFileFormat[] {
    return [...this.#files.values()].flatMap(({ formats, atMs, faults }) =>
      formats.map((located) => ({ located, atMs, isKept: faults.length > 0 })),
    );
  }

  get faults(): readonly TaughtFault[] {
    return [...this.#faults, ...[...this.#files.values()].flatMap(({ faults }) => faults)];
  }

  #replace(files: ReadonlyMap<string, TaughtFile>, faults: readonly TaughtFault[]): boolean {
    const isSame =
      files.size === this.#files.size &&
      [...files].every(([name, file]) => this.#files.get(name) === file) &&
      faults.map(({ message }) => message).join("\n") === this.#faults.map(({ message }) => message).join("\n");
    this.#files = files;
    this.#faults = faults;
    return !isSame;
  }

  async #list(): Promise<{ names?: readonly string[]; faults: readonly TaughtFault[] }> {
    try {
      const names = (await readdir(this.#folder)).filter((name) => NAME.test(name)).sort();
      if (names.length <= FILES_MAX) return { names, faults: [] };
      return { names: names.slice(0, FILES_MAX), faults: [refused("", `only the first ${FILES_MAX} files are read`)] };
    } catch (error) {
      const stays = this.#files.size > 0 ? "; the formats read before stay in use" : "";
      return { faults: [refused("", `the folder ${this.#folder} cannot be read (${codeOf(error)})${stays}`)] };
    }
  }

  /** The same object if the file has not changed. */
  async #read(name: string, before: TaughtFile | undefined, bytesLeft: number): Promise<TaughtFile> {
    let signature = "";
    const spoiled = (faults: readonly TaughtFault[]): TaughtFile => {
      const { formats = [], bytes = 0, atMs = 0 } = before ?? {};
      return { signature, bytes, formats, atMs, faults: faults.slice(0, FILE_FAULTS_MAX) };
    };
    try {
      const path = join(this.#folder, name);
      const found = await stat(path);
      const { size, mtimeMs, ctimeMs, ino } = found;
      signature = `${size} ${mtimeMs} ${ctimeMs} ${ino} ${size > bytesLeft}`;
      if (before?.signature === signature) return before;
      if (!found.isFile()) return spoiled([refused(name, "is not a file")]);
      if (size > FILE_BYTES_MAX) return spoiled([refused(name, `is larger than ${FILE_BYTES_MAX} bytes`)]);
      if (size > bytesLeft) return spoiled([refused(name, `the files are larger than ${FOLDER_BYTES_MAX} bytes`)]);
      const { formats, faults } = readDescriptions(await readFile(path, "utf8"));
      if (faults.length > 0) return spoiled(faults.map((fault) => ({ kind: "refused", file: name, ...fault })));
      const located = formats.map((format) => ({ ...format, file: name }));
      return { signature, bytes: size, formats: located, atMs: this.#now(), faults: [] };
    } catch (error) {
      const message = `cannot be read (${codeOf(error)})`;
      // The error may go away without a change of the file.
      return before?.faults[0]?.message === message ? before : spoiled([refused(name, message)]);
    }
  }
}

const refused = (file: string, message: string): TaughtFault => ({ kind: "refused", file, line: 1, path: "", message });

function codeOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
