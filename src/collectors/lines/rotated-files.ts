import { readdir, stat, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

// Rotated files next to the tailed one.

/** Directory entries examined. */
const NAMES_MAX = 10_000;
const COMPRESSED = /\.(?:gz|xz|bz2|zst|lz4)$/;

/** All files in the folder of a path, the one at the path first. */
export async function filesBeside(path: string): Promise<string[]> {
  const folder = dirname(path);
  const names = (await readdir(folder).catch(() => [])).slice(0, NAMES_MAX);
  return [basename(path), ...names].map((name) => join(folder, name));
}

/**
 * Names of files that had the tailed path between two others, judged by creation time. They are reported and not read: a
 * manual copy looks the same and would be read twice.
 */
export async function filesBetween(path: string, older: FileHandle, newer: FileHandle): Promise<string[]> {
  const [from, to] = await Promise.all([older.stat(), newer.stat()]);
  const between: string[] = [];
  for (const file of await filesBeside(path)) {
    if (!basename(file).startsWith(basename(path)) || COMPRESSED.test(file)) continue;
    const found = await stat(file).catch(() => undefined);
    if (!found?.isFile() || found.size === 0 || found.ino === from.ino || found.ino === to.ino) continue;
    // A file system without creation times reports the last change instead, which matches nothing here.
    if (found.birthtimeMs > from.birthtimeMs && found.birthtimeMs < to.birthtimeMs) between.push(basename(file));
  }
  return between;
}
