import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";

// What a browser loads, from the manifest of the build that `npm test` makes.

const dist = fileURLToPath(new URL("../../console/dist/", import.meta.url));
const FIRST_KB_MAX = 160;
const SCREEN_KB_MAX = 60;

interface Chunk {
  readonly file: string;
  readonly isEntry?: boolean;
  readonly isDynamicEntry?: boolean;
  readonly imports?: readonly string[];
}

const readManifest = () => JSON.parse(readFileSync(`${dist}.vite/manifest.json`, "utf8")) as Record<string, Chunk>;

/** The chunk and all that it cannot start without. */
function closure(manifest: Record<string, Chunk>, name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  for (const other of manifest[name]!.imports ?? []) closure(manifest, other, found);
  return found;
}

const kilobytes = (manifest: Record<string, Chunk>, names: Iterable<string>) =>
  [...names].reduce((sum, name) => sum + gzipSync(readFileSync(dist + manifest[name]!.file)).length, 0) / 1000;

test.skipIf(!existsSync(`${dist}index.html`))(
  "the first script and each screen stay within their budgets (skipped without a build of the console)",
  () => {
    const manifest = readManifest();
    const entry = Object.keys(manifest).find((name) => manifest[name]!.isEntry)!;
    const first = closure(manifest, entry);
    expect(kilobytes(manifest, first)).toBeLessThan(FIRST_KB_MAX);
    const screens = Object.keys(manifest).filter((name) => /^screens\/\w+\/\w+-screen\.tsx$/.test(name));
    expect(screens.length).toBeGreaterThan(7);
    const sizes = screens.map(
      (name) => [name, kilobytes(manifest, closure(manifest, name).difference(first))] as const,
    );
    expect(sizes.filter(([, size]) => size > SCREEN_KB_MAX)).toEqual([]);
  },
);
