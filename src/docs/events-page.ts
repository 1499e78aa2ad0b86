import { SEVERITIES } from "../model/event.ts";
import { SEVERITY_SCALES } from "../model/device-severity.ts";
import { FIELD_NAMES } from "../model/field-names.ts";
import { code, markdownTable, printParts } from "./markdown.ts";

// docs/events.md is written by hand, but for the names of fields and the severities, which the code knows better.

/** The page with its printed parts as the code has them now. */
export function printEventTables(page: string): string {
  return printParts("docs/events.md", page, { names: nameTable, severities: severityTable });
}

function nameTable(): string {
  return markdownTable(
    ["field", "holds a", "says"],
    Object.entries(FIELD_NAMES).map(([name, { type, about }]) => [code(`raw.${name}`), type, about]),
  );
}

function severityTable(): string {
  return markdownTable(
    ["scale", ...SEVERITIES.map(code), "about"],
    SEVERITY_SCALES.map(({ name, about, values }) => {
      const told = (severity: string) => Object.keys(values).filter((value) => values[value] === severity);
      return [name, ...SEVERITIES.map((severity) => told(severity).join(", ")), about];
    }),
  );
}
