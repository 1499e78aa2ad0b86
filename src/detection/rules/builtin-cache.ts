import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseExact } from "../../lib/exact-json.ts";

// A cache of the parsed YAML of built-in rules, next to the compiled code: parsing takes a tenth of a start. If the cache is
// missing, stale or unreadable, the rules are parsed again.

const FILE = "builtin-rules.json";
/** Increase when the parser or the format of the cache file changes. */
const FORMAT = 1;

interface CachedRules {
  readonly of: string;
  readonly values: unknown[][];
}

/** The values of the documents of each text. Calls `parse` if the cache does not hold these texts. */
export function readCached(
  texts: readonly string[],
  folder: string | undefined,
  parse: (text: string) => unknown[],
): unknown[][] {
  const of = createHash("sha256")
    .update(JSON.stringify([FORMAT, ...texts]))
    .digest("hex");
  const cached = folder === undefined ? undefined : readCacheFile(folder);
  if (cached?.of === of && cached.values?.length === texts.length) return cached.values;
  const values = texts.map(parse);
  if (folder !== undefined) writeCacheFile(folder, { of, values });
  return values;
}

function readCacheFile(folder: string): Partial<CachedRules> | undefined {
  try {
    return parseExact(readFileSync(join(folder, FILE), "utf8")) as Partial<CachedRules> | undefined;
  } catch {
    // No cache yet, or one in another format.
    return undefined;
  }
}

function writeCacheFile(folder: string, cached: CachedRules): void {
  const path = join(folder, FILE);
  const temporary = `${path}.${process.pid}`;
  try {
    writeFileSync(temporary, JSON.stringify(cached));
    renameSync(temporary, path);
  } catch {
    // A read-only folder, for example of a shared installation: the next start parses the rules again.
  }
}
