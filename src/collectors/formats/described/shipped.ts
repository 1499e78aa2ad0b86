import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readDescriptions, type DescribedFormat } from "./read-descriptions.ts";

// The descriptions that come with the service: one YAML file each, in shipped/.

const FOLDER = fileURLToPath(new URL("shipped/", import.meta.url));

let shipped: readonly DescribedFormat[] | undefined;

/** By file name. Throws on faults, which are bugs. */
export function readShipped(): readonly DescribedFormat[] {
  shipped ??= globSync("*.yaml", { cwd: FOLDER }).sort().flatMap(readFile);
  return shipped;
}

function readFile(name: string): readonly DescribedFormat[] {
  const { formats, faults } = readDescriptions(readFileSync(join(FOLDER, name), "utf8"));
  const words = faults.map(({ line, path, message }) => `shipped/${name}:${line}: ${path} ${message}`);
  if (words.length > 0) throw new Error(words.join("\n"));
  return formats;
}
