import { createHash } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseExact } from "../lib/exact-json.ts";

// What YAML makes of the built-in rules, kept where the compiled code is: reading them takes a tenth of a start. Nothing is
// lost with it: where it is missing, of other texts or not to be read, they are read anew.

const FILE = "builtin-rules.json";
/** Goes up when the same texts are to be read anew: a parser that reads them otherwise, or another form of the file. */
const FORM = 1;

interface Kept {
  readonly of: string;
  readonly values: unknown[][];
}

/** For each text the values of its documents; `parse` is asked where the folder has none of these texts. */
export function readKept(
  texts: readonly string[],
  folder: string | undefined,
  parse: (text: string) => unknown[],
): unknown[][] {
  const of = createHash("sha256")
    .update(JSON.stringify([FORM, ...texts]))
    .digest("hex");
  const kept = folder === undefined ? undefined : keptIn(folder);
  if (kept?.of === of && kept.values?.length === texts.length) return kept.values;
  const values = texts.map(parse);
  if (folder !== undefined) keep(folder, { of, values });
  return values;
}

function keptIn(folder: string): Partial<Kept> | undefined {
  try {
    return parseExact(readFileSync(join(folder, FILE), "utf8")) as Partial<Kept> | undefined;
  } catch {
    // None yet, or one that is not for us.
    return undefined;
  }
}

function keep(folder: string, kept: Kept): void {
  const path = join(folder, FILE);
  const half = `${path}.${process.pid}`;
  try {
    writeFileSync(half, JSON.stringify(kept));
    renameSync(half, path);
  } catch {
    // A folder that takes nothing, as where the program is installed for all: the next start reads them anew.
  }
}
