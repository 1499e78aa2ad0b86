import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FormatDescription } from "./description.ts";
import { readDescriptions } from "./read-descriptions.ts";

// The descriptions that come with the service: one YAML file each, in shipped/.

const FOLDER = fileURLToPath(new URL("shipped/", import.meta.url));

let shipped: readonly FormatDescription[] | undefined;

/** By file name. Throws on faults, which are bugs. */
export function readShipped(): readonly FormatDescription[] {
  shipped ??= globSync("*.yaml", { cwd: FOLDER }).sort().flatMap(readFile);
  return shipped;
}

function readFile(name: string): readonly FormatDescription[] {
  const { formats, faults } = readDescriptions(readFileSync(join(FOLDER, name), "utf8"));
  const words = faults.map(({ line, path, message }) => `shipped/${name}:${line}: ${path} ${message}`);
  if (words.length > 0) throw new Error(words.join("\n"));
  return formats.map(({ description }) => description);
}
