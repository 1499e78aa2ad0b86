import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { StorageSpace } from "../ports/store.ts";

/** Measuring reads the size of every file, a few thousand after some years. */
const FRESH_MS = 30_000;

/** The space on the disk of the data folder. Measured at most every 30 seconds, by one caller for all. */
export class StorageSpaceGauge {
  readonly #dataDir: string;
  #measuring: Promise<StorageSpace> | undefined;
  #measuredAt = -FRESH_MS;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  measure(): Promise<StorageSpace> {
    const now = performance.now();
    if (this.#measuring && now - this.#measuredAt < FRESH_MS) return this.#measuring;
    this.#measuredAt = now;
    const measuring = measure(this.#dataDir);
    this.#measuring = measuring;
    measuring.catch(() => {
      // The next caller tries again.
      if (this.#measuring === measuring) this.#measuring = undefined;
    });
    return measuring;
  }
}

async function measure(dataDir: string): Promise<StorageSpace> {
  const [{ bsize, blocks, bavail }, usedBytes] = await Promise.all([statfs(dataDir), sizeOf(dataDir)]);
  return { totalBytes: bsize * blocks, freeBytes: bsize * bavail, usedBytes };
}

/** The space that the files of the folder occupy, which is less than their length if they are sparse. */
async function sizeOf(folder: string): Promise<number> {
  let bytes = 0;
  const entries = await unlessGone(readdir(folder, { withFileTypes: true }));
  for (const entry of entries ?? []) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += await sizeOf(path);
    else if (entry.isFile()) bytes += ((await unlessGone(stat(path)))?.blocks ?? 0) * 512;
  }
  return bytes;
}

/** Files come and go while the folder is read. */
async function unlessGone<Value>(found: Promise<Value>): Promise<Value | undefined> {
  try {
    return await found;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
