import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readCached } from "../../../lib/parsed-cache.ts";
import type { FormatDescription } from "./description.ts";
import { readDescriptions } from "./read-descriptions.ts";

// The descriptions that come with the service: one YAML file each, in shipped/. Validated descriptions are cached, for as long as
// neither they nor the language change.

const HERE = fileURLToPath(new URL(".", import.meta.url));
const FOLDER = join(HERE, "shipped");
/** What decides whether a description is valid, besides this folder. */
const FIELD_NAMES = fileURLToPath(new URL("../../../model/field-names.ts", import.meta.url));

let shipped: readonly FormatDescription[] | undefined;

/** By file name. Throws on faults, which are bugs. */
export function readShipped(): readonly FormatDescription[] {
  return (shipped ??= readShippedFrom(FOLDER, process.env["NODE_COMPILE_CACHE"]));
}

export function readShippedFrom(folder: string, cacheFolder: string | undefined): readonly FormatDescription[] {
  const names = globSync("*.yaml", { cwd: folder }).sort();
  const texts = names.map((name) => readFileSync(join(folder, name), "utf8"));
  const dependencies = cacheFolder === undefined ? [] : readLanguage();
  const parse = (text: string, index: number) => readOne(names[index]!, text);
  return readCached({ file: "shipped-formats.json", folder: cacheFolder, texts, dependencies, parse }).flat();
}

/** The source of the language of descriptions. */
function readLanguage(): string[] {
  const sources = globSync("*.ts", { cwd: HERE, exclude: ["*.test.ts"] }).sort();
  return [...sources.map((name) => join(HERE, name)), FIELD_NAMES].map((path) => readFileSync(path, "utf8"));
}

function readOne(name: string, text: string): FormatDescription[] {
  const { formats, faults } = readDescriptions(text);
  const words = faults.map(({ line, path, message }) => `shipped/${name}:${line}: ${path} ${message}`);
  if (words.length > 0) throw new Error(words.join("\n"));
  return formats.map(({ description }) => description);
}
