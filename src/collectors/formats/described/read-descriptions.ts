import { z } from "zod";
import { faultsOf } from "../../../lib/fault.ts";
import { parseYaml } from "../../../lib/yaml.ts";
import { describedFormat } from "./described-format.ts";
import { descriptionSchema, type FormatDescription } from "./description.ts";
import type { LineFormat } from "../line-format.ts";

// Files with descriptions of formats.

const DOCUMENTS_MAX = 50;
export const DESCRIPTION_CHARACTERS_MAX = 1_000_000;

export interface DescribedFormat {
  readonly description: FormatDescription;
  readonly format: LineFormat;
}

export interface DescriptionFault {
  readonly line: number;
  /** Path of the field; empty if the fault concerns the whole document. */
  readonly path: string;
  readonly message: string;
}

export interface ReadDescriptions {
  readonly formats: readonly DescribedFormat[];
  readonly faults: readonly DescriptionFault[];
}

export function readDescriptions(content: string): ReadDescriptions {
  if (content.length > DESCRIPTION_CHARACTERS_MAX) {
    return {
      formats: [],
      faults: [{ line: 1, path: "", message: `exceeds ${DESCRIPTION_CHARACTERS_MAX} characters` }],
    };
  }
  const formats: DescribedFormat[] = [];
  const faults: DescriptionFault[] = [];
  for (const document of parseYaml(content, DOCUMENTS_MAX)) {
    if ("fault" in document) {
      faults.push({ line: document.line, path: "", message: document.fault });
      continue;
    }
    const parsed = descriptionSchema.safeParse(document.value);
    if (parsed.success) formats.push(describe(parsed.data));
    else faults.push(...faultsIn(parsed.error, document.lineOf));
  }
  return { formats, faults };
}

/** A description that was read before. */
export const describe = (description: FormatDescription): DescribedFormat => ({
  description,
  format: describedFormat(description),
});

function faultsIn(error: z.ZodError, lineOf: (path: readonly (string | number)[]) => number): DescriptionFault[] {
  const lines = error.issues.map(({ path }) => lineOf(path as (string | number)[]));
  return faultsOf(error).map(({ field, message }, index) => ({
    line: lines[index] ?? lines[0] ?? 1,
    path: field,
    message,
  }));
}
