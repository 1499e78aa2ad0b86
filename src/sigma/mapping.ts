import { readFileSync } from "node:fs";
import { z } from "zod";
import { faultsOf } from "../lib/fault.ts";
import { parseYaml } from "../lib/yaml.ts";
import { pathFault } from "../model/field.ts";
import { ANY_SOURCE, type ConditionInput } from "../model/rule.ts";
import { conditionsSchema } from "../model/rule-schema.ts";
import type { FieldNames } from "./field-test.ts";

// Where Sigma's log sources and fields are found in our events. Ours is default-mapping.yaml; an own file goes before it.

const ENTRIES_MAX = 1000;
const PLACEHOLDERS_MAX = 1000;
const ANYTHING = "*";
export const LOGSOURCE_KEYS = ["category", "product", "service"] as const;

export type Logsource = { readonly [Key in (typeof LOGSOURCE_KEYS)[number]]?: string | undefined };

const pathSchema = z.string().superRefine((path, context) => {
  const fault = pathFault(path);
  if (fault) context.addIssue({ code: "custom", message: fault });
});
const fieldsSchema = z.record(z.string(), pathSchema).default({});

const entrySchema = z.strictObject({
  category: z.string().optional(),
  product: z.string().optional(),
  service: z.string().optional(),
  source: z.string().default(ANY_SOURCE),
  conditions: conditionsSchema.default([]),
  fields: fieldsSchema,
});

const mappingSchema = z.strictObject({
  prefix: z
    .string()
    .regex(/^(raw|enrichment)\.([^.]+\.)*$/, "raw. or a path below it that ends in a dot: raw.event.")
    .optional(),
  logsources: z.array(entrySchema).max(ENTRIES_MAX).default([]),
  fields: fieldsSchema,
  placeholders: z
    .record(z.string(), z.array(z.union([z.string(), z.number()])).min(1))
    .refine((given) => Object.keys(given).length <= PLACEHOLDERS_MAX, `at most ${PLACEHOLDERS_MAX}`)
    .default({}),
});

export type Mapping = z.output<typeof mappingSchema>;
type Entry = z.output<typeof entrySchema>;

export interface MappingFault {
  readonly line: number;
  readonly path: string;
  readonly message: string;
}

export function parseMapping(
  text: string,
): { readonly mapping: Mapping } | { readonly faults: readonly MappingFault[] } {
  const [document, more] = parseYaml(text, 2);
  if (!document) return { mapping: mappingSchema.parse({}) };
  if ("fault" in document) return { faults: [{ line: document.line, path: "", message: document.fault }] };
  if (more) return { faults: [{ line: more.line, path: "", message: "a mapping is one document" }] };
  const parsed = mappingSchema.safeParse(document.value);
  if (parsed.success) return { mapping: parsed.data };
  return {
    faults: faultsOf(parsed.error).map(({ field, message }) => ({
      line: document.lineOf(field.split(/[.[\]]+/).map((key) => (/^\d+$/.test(key) ? Number(key) : key))),
      path: field,
      message,
    })),
  };
}

let defaultMapping: Mapping | undefined;

export function readDefaultMapping(): Mapping {
  if (defaultMapping) return defaultMapping;
  const outcome = parseMapping(readFileSync(new URL("default-mapping.yaml", import.meta.url), "utf8"));
  if ("faults" in outcome) throw new Error(`default-mapping.yaml: ${JSON.stringify(outcome.faults)}`);
  return (defaultMapping = outcome.mapping);
}

/** Where the events of a rule are, and what its fields are called there. */
export interface Placement extends FieldNames {
  readonly source: string;
  readonly conditions: readonly ConditionInput[];
  /** Parts of the log source that nothing is made of, since the entry does not speak of them. */
  readonly unsaid: readonly (keyof Logsource)[];
}

/** Of several mappings, the first goes before the others where they say equally much. */
export function placementOf(logsource: Logsource, mappings: readonly Mapping[]): Placement | undefined {
  let best: Entry | undefined;
  let most = 0;
  for (const entry of mappings.flatMap((mapping) => mapping.logsources)) {
    const fit = fitOf(entry, logsource);
    if (fit > most) [best, most] = [entry, fit];
  }
  if (!best) return undefined;
  const entry = best;
  const renames = new Map<string, string>();
  for (const fields of [...mappings].reverse().map((mapping) => mapping.fields)) {
    for (const [from, to] of Object.entries(fields)) renames.set(from, to);
  }
  for (const [from, to] of Object.entries(best.fields)) renames.set(from, to);
  const prefix = mappings.find((mapping) => mapping.prefix !== undefined)?.prefix ?? "raw.";
  return {
    source: best.source,
    conditions: best.conditions.map((condition) => fill(condition, logsource) as ConditionInput),
    unsaid: LOGSOURCE_KEYS.filter((key) => logsource[key] !== undefined && entry[key] === undefined),
    pathOf: (field) => renames.get(field) ?? prefix + field,
    placeholder: (name) => mappings.find(({ placeholders }) => Object.hasOwn(placeholders, name))?.placeholders[name],
  };
}

/** How much of a log source an entry speaks of; 0 when it is not meant. */
function fitOf(entry: Entry, logsource: Logsource): number {
  let fit = 0;
  for (const key of LOGSOURCE_KEYS) {
    const wanted = entry[key]?.toLowerCase();
    if (wanted === undefined) continue;
    const given = logsource[key]?.toLowerCase();
    if (given === undefined) return 0;
    if (wanted === given) fit += 16;
    // A category says more than a service, a service more than a product.
    else if (wanted === ANYTHING) fit += key === "category" ? 4 : key === "service" ? 2 : 1;
    else return 0;
  }
  return fit;
}

function fill(value: unknown, logsource: Logsource): unknown {
  if (typeof value === "string") {
    return value.replaceAll(
      /\{(category|product|service)\}/g,
      (whole, key: keyof Logsource) => logsource[key] ?? whole,
    );
  }
  if (Array.isArray(value)) return value.map((item) => fill(item, logsource));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner, logsource)]));
}
