import { globSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readCached } from "../../lib/parsed-cache.ts";
import type { Severity } from "../../model/event.ts";
import type { Channel, Rule } from "../../model/rule.ts";
import type { RuleTest } from "../../model/rule-test.ts";
import {
  describeFault,
  readDocuments,
  ruleFileParser,
  toRule,
  type RuleDocument,
  type RuleFile,
  type RuleFileSettings,
} from "./rule-file.ts";

// The built-in rules: one YAML file each, in builtin/.

const FOLDER = fileURLToPath(new URL("builtin/", import.meta.url));

/** The built-in rules with their tests, by file name. Throws on faults, which are bugs. */
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

/** Reads the tests of built-in rules when they are asked for: parsing all of them would double the time of a start. */
export function builtinTestReader(
  settings: RuleFileSettings,
): (rule: Pick<Rule, "name">) => Promise<readonly RuleTest[]> {
  const known = new Map<string, Promise<readonly RuleTest[]>>();
  const parse = ruleFileParser(settings);
  const read = async (name: string) => {
    const path = join(FOLDER, `${name.replaceAll(/[._]/g, "-")}.yaml`);
    const { documents } = parse({ name: path, content: await readFile(path, "utf8") });
    return documents.find(({ input }) => input.name === name)!.input.tests;
  };
  return ({ name }) => {
    const tests = known.get(name) ?? read(name);
    known.set(name, tests);
    return tests;
  };
}

export interface BuiltinSettings extends RuleFileSettings {
  /** Notification channels of built-in rules of this severity, since their files cannot name any; default: none. */
  readonly channelsOf?: (severity: Severity) => readonly Channel[];
  /** Folder for the cache of parsed rules; default: the compile cache of Node, if enabled. */
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
  const values = readCached({
    file: "builtin-rules.json",
    folder: cacheFolder,
    texts,
    parse: (text) => readDocuments(text).map((document) => ("fault" in document ? null : document.value)),
  });
  const valuesOf = new Map(texts.map((text, i) => [text, values[i]!]));
  const readFromCache = (text: string) => valuesOf.get(text)!.map((value) => ({ line: 1, value, lineOf: () => 1 }));
  const parsed = files.map(ruleFileParser(settings, readFromCache));
  // Only parsing the text again gives the line of a fault.
  if (parsed.some(({ faults }) => faults.length > 0)) return parseAll(files, settings);
  return parsed.flatMap(({ documents }) => documents);
}

/** Tests come last in our files. Parsing them would take most of the time of a start. */
function withoutTests(content: string): string {
  return content.slice(0, content.indexOf("\ntests:\n") + 1);
}
