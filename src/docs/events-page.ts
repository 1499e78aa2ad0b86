import type { LineFormat } from "../collectors/formats/line-format.ts";
import { knownFormats } from "../collectors/formats/known-formats.ts";
import { SEVERITIES } from "../model/event.ts";
import { SEVERITY_SCALES } from "../model/device-severity.ts";
import { FIELD_NAMES } from "../model/field-names.ts";
import { code, markdownTable, printParts } from "./markdown.ts";

// docs/events.md is written by hand, except for the tables of line formats, field names and severities.

/** The page with its generated tables brought up to date. */
export function printEventTables(page: string): string {
  return printParts("docs/events.md", page, { formats: formatTable, names: nameTable, severities: severityTable });
}

function formatTable(): string {
  return markdownTable(
    ["format", "is", "recognised by", "example"],
    knownFormats().all.map((format) => [format.name, format.about, recognisedBy(format), code(format.example)]),
  );
}

function recognisedBy({ ownHeader, programs, ownsPrograms, bare }: LineFormat): string {
  const marks = [
    ownHeader === undefined ? [] : code(ownHeader),
    programs === undefined || !ownsPrograms ? [] : `the program alone: ${programs.map(code).join(", ")}`,
    bare === undefined ? [] : "the keys of the JSON object",
  ].flat();
  return marks.length > 0 ? marks.join("; ") : "its text";
}

function nameTable(): string {
  return markdownTable(
    ["field", "type", "meaning"],
    Object.entries(FIELD_NAMES).map(([name, { type, about }]) => [code(`raw.${name}`), type, about]),
  );
}

function severityTable(): string {
  return markdownTable(
    ["scale", ...SEVERITIES.map(code), "notes"],
    SEVERITY_SCALES.map(({ name, about, values }) => {
      const valuesOf = (severity: string) => Object.keys(values).filter((value) => values[value] === severity);
      return [name, ...SEVERITIES.map((severity) => valuesOf(severity).join(", ")), about];
    }),
  );
}
