import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Severity } from "../model/event.ts";
import type { Channel, Rule } from "../model/rule.ts";
import { readKept } from "./builtin-cache.ts";
import {
  describeFault,
  readDocuments,
  ruleFileParser,
  toRule,
  type RuleDocument,
  type RuleFile,
  type RuleFileSettings,
} from "./rule-file.ts";

// The rules that every installation begins with: one YAML file each, in builtin/.

const FOLDER = fileURLToPath(new URL("builtin/", import.meta.url));

/** By name of the file, with their tests. A fault in one of ours is a bug. */
export function readBuiltinFiles(settings: RuleFileSettings): RuleDocument[] {
  return parseAll(readFiles(), settings);
}

function readFiles(): RuleFile[] {
  return globSync("*.yaml", { cwd: FOLDER })
    .sort()
    .map((name) => ({ name: `builtin/${name}`, content: readFileSync(join(FOLDER, name), "utf8") }));
}

function parseAll(files: readonly RuleFile[], settings: RuleFileSettings): RuleDocument[] {
  return files.map(ruleFileParser(settings)).flatMap(({ documents, faults }) => {
    if (faults.length > 0) throw new Error(faults.map(describeFault).join("\n"));
    return documents;
  });
}

export interface BuiltinSettings extends RuleFileSettings {
  /** Who is told of alerts of a built-in rule of this severity, since nobody can write that into the rule; default: nobody. */
  readonly channelsOf?: (severity: Severity) => readonly Channel[];
  /** Where what YAML makes of them is kept from one start to the next; default: with the compiled code, if that is kept. */
  readonly cacheFolder?: string | undefined;
}

export function loadBuiltinRules({
  channelsOf = () => [],
  cacheFolder = process.env["NODE_COMPILE_CACHE"],
  ...settings
}: BuiltinSettings): Rule[] {
  return readAtStart(settings, cacheFolder).map((document) => {
    if (document.id === null || document.createdMs === null) {
      throw new Error(`${document.file}:${document.line}: a built-in rule needs id and created`);
    }
    const rule = toRule(document, { builtin: true });
    return { ...rule, actions: [{ alert: { channels: channelsOf(rule.severity) } }] };
  });
}

function readAtStart(settings: RuleFileSettings, cacheFolder: string | undefined): RuleDocument[] {
  const files = readFiles().map(({ name, content }) => ({ name, content: withoutTests(content) }));
  const texts = files.map(({ content }) => content);
  const values = readKept(texts, cacheFolder, (text) =>
    readDocuments(text).map((document) => ("fault" in document ? null : document.value)),
  );
  const valuesOf = new Map(texts.map((text, i) => [text, values[i]!]));
  const readAgain = (text: string) => valuesOf.get(text)!.map((value) => ({ line: 1, value, lineOf: () => 1 }));
  const parsed = files.map(ruleFileParser(settings, readAgain));
  // Which line is at fault is known where the text is read.
  if (parsed.some(({ faults }) => faults.length > 0)) return parseAll(files, settings);
  return parsed.flatMap(({ documents }) => documents);
}

/** Tests stand last in our files, and reading them would take most of the time at every start. */
function withoutTests(content: string): string {
  return content.slice(0, content.indexOf("\ntests:\n") + 1);
}
