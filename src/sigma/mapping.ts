import { readFileSync } from "node:fs";
import { z } from "zod";
import { faultsOf } from "../lib/fault.ts";
import { parseYaml } from "../lib/yaml.ts";
import { pathFault } from "../model/field.ts";
import { ANY_SOURCE, type ConditionInput } from "../model/rule.ts";
import { conditionsSchema } from "../model/rule-schema.ts";
import type { FieldNames } from "./field-test.ts";

// Maps Sigma's log sources and fields to our events. A user's file takes precedence over default-mapping.yaml.

const ENTRIES_MAX = 1000;
const PLACEHOLDERS_MAX = 1000;
const PRODUCTS_MAX = 100;
/** Each path adds a test to every line with the field. */
const FIELD_PATHS_MAX = 8;
const ANYTHING = "*";
const DEFAULT_PREFIX = "raw.";
/** Placeholder of the prefix at the start of a path. */
const PREFIX_MARK = /^\{prefix\}/;
export const LOGSOURCE_KEYS = ["category", "product", "service"] as const;

export type Logsource = { readonly [Key in (typeof LOGSOURCE_KEYS)[number]]?: string | undefined };

const pathSchema = z.string().superRefine((path, context) => {
  const fault = pathFault(path.replace(PREFIX_MARK, DEFAULT_PREFIX));
  if (fault) context.addIssue({ code: "custom", message: fault });
});
const fieldsSchema = z
  .record(z.string(), z.union([pathSchema, z.array(pathSchema).min(1).max(FIELD_PATHS_MAX)]))
  .default({});

/** Null: the log source must not have the key. */
const partSchema = z.string().nullable().optional();

const entrySchema = z.strictObject({
  category: partSchema,
  product: partSchema,
  service: partSchema,
  source: z.string().default(ANY_SOURCE),
  conditions: conditionsSchema.default([]),
  fields: fieldsSchema,
  /** Reported for every rule that this entry places. */
  remark: z.string().optional(),
});

const productSchema = z.strictObject({ conditions: conditionsSchema.default([]) });

const mappingSchema = z.strictObject({
  prefix: z
    .string()
    .regex(/^(raw|enrichment)\.([^.]+\.)*$/, "must be raw. or a path below it that ends in a dot: raw.event.")
    .optional(),
  /** Conditions that identify the events of a product, for entries that do not name it. */
  products: z
    .record(z.string().toLowerCase(), productSchema)
    .refine((given) => Object.keys(given).length <= PRODUCTS_MAX, `at most ${PRODUCTS_MAX}`)
    .default({}),
  logsources: z.array(entrySchema).max(ENTRIES_MAX).default([]),
  fields: fieldsSchema,
  placeholders: z
    .record(z.string(), z.array(z.union([z.string(), z.number()])).min(1))
    .refine((given) => Object.keys(given).length <= PLACEHOLDERS_MAX, `at most ${PLACEHOLDERS_MAX}`)
    .default({}),
});

export type Mapping = z.output<typeof mappingSchema>;
type MappingEntry = z.output<typeof entrySchema>;

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
  if (more) return { faults: [{ line: more.line, path: "", message: "a mapping must be one document" }] };
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

/** Source and conditions of a rule's events, and the paths of its fields. */
export interface Placement extends FieldNames {
  readonly source: string;
  readonly conditions: readonly ConditionInput[];
  /** Conditions that exclude the events of other products. */
  readonly productConditions: readonly ConditionInput[];
  /** Keys of the log source that the mapping does not cover, so that no condition checks them. */
  readonly unsaid: readonly (keyof Logsource)[];
  readonly remark: string | undefined;
}

/** Finds the best entry; of equally specific entries, the one of the first mapping. */
export function placementOf(logsource: Logsource, mappings: readonly Mapping[]): Placement | undefined {
  const entry = bestEntry(logsource, mappings);
  if (!entry) return undefined;
  const prefix = mappings.find((mapping) => mapping.prefix !== undefined)?.prefix ?? DEFAULT_PREFIX;
  // An entry takes precedence over the rest of its mapping, and an earlier mapping over a later one.
  const renames = mappings.flatMap((mapping) =>
    mapping.logsources.includes(entry) ? [entry.fields, mapping.fields] : [mapping.fields],
  );
  const pathsOf = (field: string): readonly string[] => {
    const named = renames.find((fields) => Object.hasOwn(fields, field))?.[field];
    return named === undefined ? [prefix + field] : [named].flat().map((path) => path.replace(PREFIX_MARK, prefix));
  };
  const productConditions = entry.product === undefined ? conditionsOfProduct(logsource, mappings) : [];
  return {
    source: entry.source,
    conditions: entry.conditions.map((condition) => fill(condition, logsource) as ConditionInput),
    productConditions: productConditions ?? [],
    unsaid: LOGSOURCE_KEYS.filter(
      (key) =>
        logsource[key] !== undefined &&
        entry[key] === undefined &&
        !(key === "product" && productConditions !== undefined),
    ),
    remark: fill(entry.remark, logsource) as string | undefined,
    pathsOf,
    placeholder: (name) => mappings.find(({ placeholders }) => Object.hasOwn(placeholders, name))?.placeholders[name],
  };
}

function bestEntry(logsource: Logsource, mappings: readonly Mapping[]): MappingEntry | undefined {
  let best: MappingEntry | undefined;
  let most = 0;
  for (const entry of mappings.flatMap((mapping) => mapping.logsources)) {
    const fit = fitOf(entry, logsource);
    if (fit > most) [best, most] = [entry, fit];
  }
  return best;
}

/** Undefined if no mapping identifies the product. */
function conditionsOfProduct({ product }: Logsource, mappings: readonly Mapping[]): ConditionInput[] | undefined {
  const name = product?.toLowerCase();
  if (name === undefined) return undefined;
  return mappings.find(({ products }) => Object.hasOwn(products, name))?.products[name]!.conditions;
}

/** Specificity of an entry for a log source; 0 if it does not apply. */
function fitOf(entry: MappingEntry, logsource: Logsource): number {
  let fit = 0;
  for (const key of LOGSOURCE_KEYS) {
    const wanted = entry[key]?.toLowerCase() ?? entry[key];
    if (wanted === undefined) continue;
    const given = logsource[key]?.toLowerCase();
    if (wanted === null && given === undefined) continue;
    if (given === undefined) return 0;
    if (wanted === given) fit += 16;
    // A category is more specific than a service, a service more than a product.
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
