import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Creates a folder and its missing parents. Node's recursive mkdir loops forever where the parent exists but accepts no
 * folder, as in /proc.
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
      // Another process may have created it meanwhile. A dangling link also exists, but is not a folder.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !isThere(next)) throw error;
    }
  }
  if (!statSync(path).isDirectory()) throw Object.assign(new Error(`${path} is not a folder`), { code: "ENOTDIR" });
}

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
