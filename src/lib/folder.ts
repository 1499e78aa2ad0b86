import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder and those above it that are missing. Node's own way of doing so tries for ever where nothing can be
 * made although everything above is there, as under /proc.
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  let folder = path;
  while (!isThere(folder) && dirname(folder) !== folder) {
    missing.push(folder);
    folder = dirname(folder);
  }
  for (const next of missing.reverse()) {
    try {
      mkdirSync(next);
    } catch (error) {
      // Somebody else may have made it meanwhile. A link that leads nowhere is there as well, and no folder.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !isThere(next)) throw error;
    }
  }
  if (!statSync(path).isDirectory()) throw Object.assign(new Error(`${path} is not a folder`), { code: "ENOTDIR" });
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
