import { readdir, stat, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

// Files beside the one that is followed: what becomes of it when it is rotated.

/** Names in a folder that are looked at. */
const NAMES_MAX = 10_000;
const COMPRESSED = /\.(?:gz|xz|bz2|zst|lz4)$/;

/** All files beside a path, the one at the path first. */
export async function filesBeside(path: string): Promise<string[]> {
  const folder = dirname(path);
  const names = (await readdir(folder).catch(() => [])).slice(0, NAMES_MAX);
  return [basename(path), ...names].map((name) => join(folder, name));
}

/**
 * Files that have had the same name between two others, by when they were made. They are only told of: a copy that
 * somebody has made looks the same, and would be read twice.
 */
export async function filesBetween(path: string, older: FileHandle, newer: FileHandle): Promise<string[]> {
  const [from, to] = await Promise.all([older.stat(), newer.stat()]);
  const between: string[] = [];
  for (const file of await filesBeside(path)) {
    if (!basename(file).startsWith(basename(path)) || COMPRESSED.test(file)) continue;
    const found = await stat(file).catch(() => undefined);
    if (!found?.isFile() || found.size === 0 || found.ino === from.ino || found.ino === to.ino) continue;
    // Where a file system does not know when a file was made, its last change stands there, which is no help.
    if (found.birthtimeMs > from.birthtimeMs && found.birthtimeMs < to.birthtimeMs) between.push(basename(file));
  }
  return between;
}
