import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Rule } from "../model/rule.ts";
import { describeFault, ruleFileParser, toRule, type RuleDocument, type RuleFileSettings } from "./rule-file.ts";

// The rules that every installation begins with: one YAML file each, in builtin/.

const FOLDER = fileURLToPath(new URL("builtin/", import.meta.url));

/** By name of the file, with their tests. A fault in one of ours is a bug. */
export function readBuiltinFiles(settings: RuleFileSettings): RuleDocument[] {
  return readFiles(settings, (content) => content);
}

function readFiles(settings: RuleFileSettings, shorten: (content: string) => string): RuleDocument[] {
  const parse = ruleFileParser(settings);
  return globSync("*.yaml", { cwd: FOLDER })
    .sort()
    .flatMap((name) => {
      const content = shorten(readFileSync(join(FOLDER, name), "utf8"));
      const { documents, faults } = parse({ name: `builtin/${name}`, content });
      if (faults.length > 0) throw new Error(faults.map(describeFault).join("\n"));
      return documents;
    });
}

export function loadBuiltinRules(settings: RuleFileSettings): Rule[] {
  return readFiles(settings, withoutTests).map((document) => {
    if (document.id === null || document.createdMs === null) {
      throw new Error(`${document.file}:${document.line}: a built-in rule needs id and created`);
    }
    return toRule(document, { builtin: true });
  });
}

/** Tests stand last in our files, and reading them would take most of the time at every start. */
function withoutTests(content: string): string {
  return content.slice(0, content.indexOf("\ntests:\n") + 1);
}
