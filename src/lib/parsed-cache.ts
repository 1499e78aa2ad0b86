import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseExact } from "./exact-json.ts";

// A cache of texts that are parsed at every start, such as the YAML of built-in rules, next to the compiled code: parsing YAML takes
// a good part of a start. If the cache is missing, stale or unreadable, the texts are parsed again.

/** Increase when the YAML parser or the format of the cache file changes. */
const FORMAT = 1;

interface CacheFile<Value> {
  readonly of: string;
  readonly values: Value[];
}

export interface ParsedCacheOptions<Value> {
  /** Name of the cache file. */
  readonly file: string;
  /** Undefined: nothing is cached. */
  readonly folder: string | undefined;
  readonly texts: readonly string[];
  /** What else the values depend on, such as the source of their schema. */
  readonly dependencies?: readonly string[];
  /** `index` is that of the text. */
  readonly parse: (text: string, index: number) => Value;
}

/** The value of each text. Calls `parse` if the cache does not hold these texts. */
export function readCached<Value>(options: ParsedCacheOptions<Value>): Value[] {
  const { file, folder, texts, dependencies = [], parse } = options;
  if (folder === undefined) return texts.map(parse);
  const of = createHash("sha256")
    .update(JSON.stringify([FORMAT, ...dependencies, ...texts]))
    .digest("hex");
  const path = join(folder, file);
  const cached = readCacheFile<Value>(path);
  if (cached?.of === of && cached.values?.length === texts.length) return cached.values;
  const values = texts.map(parse);
  writeCacheFile(path, { of, values });
  return values;
}

function readCacheFile<Value>(path: string): Partial<CacheFile<Value>> | undefined {
  try {
    return parseExact(readFileSync(path, "utf8")) as Partial<CacheFile<Value>> | undefined;
  } catch {
    // No cache yet, or one in another format.
    return undefined;
  }
}

function writeCacheFile<Value>(path: string, cached: CacheFile<Value>): void {
  const temporary = `${path}.${process.pid}`;
  try {
    writeFileSync(temporary, JSON.stringify(cached));
    renameSync(temporary, path);
  } catch {
    // A read-only folder, for example of a shared installation: the next start parses the texts again.
  }
}
