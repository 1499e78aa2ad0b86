import { globSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { RuleFile } from "../detection/rules/rule-file.ts";
import type { MappingFault } from "../sigma/mapping.ts";
import type { ImportFormat } from "../sigma/rule-import.ts";
import { CommandFailure, EXIT_WRONG_USE } from "./command-failure.ts";
import { countOf } from "./setting-flags.ts";

// The input of commands about rules: files, and all YAML files of folders.

/** The flag of every command that reads Sigma. */
export const MAPPING_OPTION = [
  "--mapping <file>",
  "where Sigma's log sources and fields are in your events (YAML)",
] as const;

const FILES_MAX = 50_000;
const BYTES_MAX = 512 * 1024 * 1024;

export function readRuleFiles(paths: readonly string[]): RuleFile[] {
  const names = [...new Set(paths.flatMap(namesAt))];
  if (names.length > FILES_MAX) throw new CommandFailure(`More than ${FILES_MAX} files at once.`, EXIT_WRONG_USE);
  let bytes = 0;
  return names.map((name) => {
    const content = readText(name);
    bytes += content.length;
    if (bytes > BYTES_MAX) throw new CommandFailure(`More than ${BYTES_MAX} bytes at once.`, EXIT_WRONG_USE);
    return { name, content };
  });
}

function namesAt(path: string): string[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) throw new CommandFailure(`There is no file or folder ${path}.`, EXIT_WRONG_USE);
  if (!stats.isDirectory()) return [path];
  const found = globSync("**/*.{yaml,yml}", { cwd: path }).sort();
  if (found.length === 0) throw new CommandFailure(`There is no .yaml or .yml file in ${path}.`, EXIT_WRONG_USE);
  return found.map((name) => join(path, name));
}

/** Sigma rules have these keys at the top level; ours do not. */
export function formatOf(content: string): ImportFormat {
  return /^(detection|correlation|logsource|filter|action):/m.test(content) ? "sigma" : "tocsin";
}

/** A mapping with any fault is not used. */
export function mappingFailure(faults: readonly MappingFault[]): CommandFailure {
  const lines = faults.map(({ line, path, message }) => `  line ${line}: ${path === "" ? "" : `${path}: `}${message}`);
  return new CommandFailure(`The mapping has ${countOf(lines.length, "fault")}:\n${lines.join("\n")}`, EXIT_WRONG_USE);
}

export function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const reason = code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
    throw new CommandFailure(`The file ${path} ${reason}.`, EXIT_WRONG_USE, { cause: error });
  }
}
