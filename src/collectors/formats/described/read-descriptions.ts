import { z } from "zod";
import { faultsOf, WITH_NAMES } from "../../../lib/fault.ts";
import { parseYaml } from "../../../lib/yaml.ts";
import { descriptionSchema, type FormatDescription } from "./description.ts";

// Files with descriptions of formats.

const DOCUMENTS_MAX = 50;
const CHARACTERS_MAX = 1_000_000;

export interface ReadDescription {
  readonly description: FormatDescription;
  readonly line: number;
  /** The line of the test at this index. */
  readonly lineOfTest: (index: number) => number;
}

export interface DescriptionFault {
  readonly line: number;
  /** Path of the field; empty if the fault concerns the whole document. */
  readonly path: string;
  readonly message: string;
}

export interface ReadDescriptions {
  readonly formats: readonly ReadDescription[];
  readonly faults: readonly DescriptionFault[];
}

export function readDescriptions(content: string): ReadDescriptions {
  if (content.length > CHARACTERS_MAX) {
    return { formats: [], faults: [{ line: 1, path: "", message: `exceeds ${CHARACTERS_MAX} characters` }] };
  }
  const formats: ReadDescription[] = [];
  const faults: DescriptionFault[] = [];
  for (const document of parseYaml(content, DOCUMENTS_MAX)) {
    if ("fault" in document) {
      faults.push({ line: document.line, path: "", message: document.fault });
      continue;
    }
    const { line, value, lineOf } = document;
    const parsed = descriptionSchema.safeParse(value, WITH_NAMES);
    if (parsed.success) {
      formats.push({ description: parsed.data, line, lineOfTest: (index) => lineOf(["tests", index]) });
    } else faults.push(...faultsIn(parsed.error, lineOf));
  }
  return { formats, faults };
}

type SchemaIssue = z.core.$ZodIssue;

/** The faults that the schema found, with their lines. Of a value that may have several forms, the faults of the nearest form. */
function faultsIn({ issues }: z.ZodError, lineOf: (path: readonly PropertyKey[]) => number): DescriptionFault[] {
  return issues.flatMap(nearestForm).flatMap((issue) =>
    faultsOf(new z.ZodError([issue])).map(({ field, message }, index) => {
      const unknown = issue.code === "unrecognized_keys" ? [issue.keys[index]!] : [];
      return { line: lineOf([...issue.path, ...unknown]), path: field, message };
    }),
  );
}

function nearestForm(issue: SchemaIssue): SchemaIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const isWhole = ({ path, code }: SchemaIssue) =>
    path.length === 0 && (code === "invalid_type" || code === "invalid_value");
  const forms = (issue.errors as SchemaIssue[][]).map((inner) =>
    inner.flatMap((one) => nearestForm({ ...one, path: [...one.path] } as SchemaIssue)),
  );
  const nearest = forms.find((inner) => !inner.some(isWhole));
  if (nearest !== undefined)
    return nearest.map((one) => ({ ...one, path: [...issue.path, ...one.path] }) as SchemaIssue);
  const wanted = forms.flatMap((inner) => faultsOf(new z.ZodError(inner)).map(({ message }) => message));
  const message = [...new Set(wanted)].join(", or ").replaceAll(", or must be ", " or ");
  return [{ ...issue, code: "custom", message } as unknown as SchemaIssue];
}
