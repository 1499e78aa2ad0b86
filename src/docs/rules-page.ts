import { readBuiltinFiles } from "../detection/rules/builtin.ts";
import { OPERATOR_NAMES, OPERATORS } from "../model/condition.ts";
import { WELL_KNOWN_FIELDS } from "../model/event.ts";
import { code, markdownTable, printParts } from "./markdown.ts";

// docs/rules.md is written by hand, except for the tables between `generated` comments, which are printed here.

/** The page with its generated tables up to date. */
export function printRuleTables(page: string): string {
  return printParts("docs/rules.md", page, {
    fields: fieldTable,
    operators: operatorTable,
    "built-in rules": builtinTable,
  });
}

function fieldTable(): string {
  return markdownTable(
    ["field", "type"],
    Object.entries(WELL_KNOWN_FIELDS).map(([path, type]) => [code(path), type]),
  );
}

function operatorTable(): string {
  const takesCase = (name: (typeof OPERATOR_NAMES)[number]) => ("ignoresCase" in OPERATORS[name] ? "yes" : "");
  return markdownTable(
    ["operator", "holds when", "`ignore_case`"],
    OPERATOR_NAMES.map((name) => [code(name), OPERATORS[name].about, takesCase(name)]),
  );
}

function builtinTable(): string {
  const rules = readBuiltinFiles({ platform: "<platform>", timezone: "UTC" }).map(({ input }) => input);
  return markdownTable(
    ["rule", "severity", "source", "finds", "techniques"],
    rules.map(({ name, severity, source, description, tags, enabled }) => [
      code(name),
      severity + (enabled ? "" : " (off)"),
      code(source),
      description.split("\n\n", 1)[0]!,
      tags
        .filter((tag) => /^attack\.t\d/.test(tag))
        .map((tag) => tag.slice("attack.".length).toUpperCase())
        .join(", "),
    ]),
  );
}
