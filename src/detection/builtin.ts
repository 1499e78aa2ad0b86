import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Severity } from "../model/event.ts";
import type { Channel, Rule } from "../model/rule.ts";
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

export interface BuiltinSettings extends RuleFileSettings {
  /** Who is told of alerts of a built-in rule of this severity, since nobody can write that into the rule; default: nobody. */
  readonly channelsOf?: (severity: Severity) => readonly Channel[];
}

export function loadBuiltinRules({ channelsOf = () => [], ...settings }: BuiltinSettings): Rule[] {
  return readFiles(settings, withoutTests).map((document) => {
    if (document.id === null || document.createdMs === null) {
      throw new Error(`${document.file}:${document.line}: a built-in rule needs id and created`);
    }
    const rule = toRule(document, { builtin: true });
    return { ...rule, actions: [{ alert: { channels: channelsOf(rule.severity) } }] };
  });
}

/** Tests stand last in our files, and reading them would take most of the time at every start. */
function withoutTests(content: string): string {
  return content.slice(0, content.indexOf("\ntests:\n") + 1);
}
