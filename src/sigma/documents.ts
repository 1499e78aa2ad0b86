import { z } from "zod";
import { faultsOf } from "../lib/fault.ts";
import { parseYaml } from "../lib/yaml.ts";

// Reads Sigma's YAML files. A file has one or more documents: rules, correlations of rules, and filters.

/** Size limit of a file, which is read as a whole; the largest published collections have a tenth of this. */
const SIGMA_CHARACTERS_MAX = 32 * 1024 * 1024;
const DOCUMENTS_MAX = 20_000;
const TEXT_CHARACTERS_MAX = 8000;

const saying = (words: string) => ({
  error: ({ input }: { input: unknown }) => (input === undefined || input === null ? "is required" : words),
});

const word = z.union([z.string(), z.number(), z.bigint()], saying("takes a text")).transform(String);
const text = word.transform((given) => given.slice(0, TEXT_CHARACTERS_MAX));
/** A list; some rules have a single value instead. */
const texts = z
  .union(
    [z.array(text), text.transform((one) => [one]), z.null().transform(() => [])],
    saying("takes a text or a list of texts"),
  )
  .default([]);

const headSchema = {
  title: text,
  id: word.nullish(),
  name: word.nullish(),
  description: text.nullish(),
  status: word.nullish(),
  level: word.nullish(),
  // A list of authors becomes one line.
  author: texts.transform((names) => names.join(", ").slice(0, TEXT_CHARACTERS_MAX)),
  tags: texts,
  references: texts,
  falsepositives: texts,
};

const logsourceSchema = z.looseObject({
  category: word.nullish().transform((value) => value ?? undefined),
  product: word.nullish().transform((value) => value ?? undefined),
  service: word.nullish().transform((value) => value ?? undefined),
});

const detectionRuleSchema = z.looseObject({
  ...headSchema,
  logsource: logsourceSchema,
  detection: z.record(z.string(), z.unknown()),
});

const fieldNames = z.union([z.array(word), word.transform((one) => [one])], saying("takes a name or a list of names"));
/** Next to `level` according to the specification; older rules have it in the correlation. */
const generate = z.boolean().nullish();

const correlationSchema = z.looseObject({
  ...headSchema,
  generate,
  correlation: z.looseObject({
    type: z.string(),
    rules: fieldNames.default([]),
    "group-by": fieldNames.nullish(),
    timespan: word.optional(),
    condition: z
      .union([z.record(z.string(), z.unknown()), z.string()], saying("takes a comparison such as gte: 10"))
      .optional(),
    aliases: z.record(z.string(), z.record(z.string(), word)).nullish(),
    generate,
  }),
});

/** A filter excludes events from other rules. */
const filterSchema = z.looseObject({
  ...headSchema,
  logsource: logsourceSchema,
  filter: z.looseObject({ rules: fieldNames.default([]) }),
});

const SCHEMAS = { rule: detectionRuleSchema, correlation: correlationSchema, filter: filterSchema };

export type SigmaRule = z.output<typeof detectionRuleSchema>;
export type SigmaCorrelation = z.output<typeof correlationSchema>;
export type SigmaFilter = z.output<typeof filterSchema>;
export type SigmaHead = Pick<SigmaRule, keyof typeof headSchema>;

interface DocumentPosition {
  readonly file: string;
  readonly line: number;
}

export type SigmaDocument = DocumentPosition &
  (
    | { readonly kind: "rule"; readonly rule: SigmaRule }
    | { readonly kind: "correlation"; readonly rule: SigmaCorrelation }
    | { readonly kind: "filter"; readonly rule: SigmaFilter }
    | {
        readonly kind: "unreadable";
        readonly title: string;
        readonly id: string | null;
        readonly faults: readonly { readonly place: string; readonly message: string }[];
        /** For a correlation: the rules that it names and that raise no alerts by themselves. */
        readonly spokenFor: readonly string[];
      }
  );

export interface SigmaFile {
  readonly name: string;
  readonly content: string;
}

export function readSigma({ name, content }: SigmaFile): SigmaDocument[] {
  const unreadable = (line: number, message: string): SigmaDocument => ({
    kind: "unreadable",
    file: name,
    line,
    title: name,
    id: null,
    faults: [{ place: "", message }],
    spokenFor: [],
  });
  if (content.length > SIGMA_CHARACTERS_MAX) return [unreadable(1, `more than ${SIGMA_CHARACTERS_MAX} characters`)];
  const read: SigmaDocument[] = [];
  let shared: Tree = {};
  let previous: Tree = {};
  for (const document of parseYaml(content, DOCUMENTS_MAX)) {
    if ("fault" in document) {
      read.push(unreadable(document.line, document.fault));
      continue;
    }
    if (!isTree(document.value)) {
      read.push(unreadable(document.line, "is not a rule"));
      continue;
    }
    // Older collections: a document whose fields the others share, or that modifies the previous one.
    const { action, ...own } = document.value;
    if (action === "global") shared = merge(shared, own);
    else if (action === "reset") shared = {};
    else {
      previous = merge(action === "repeat" ? previous : shared, own);
      read.push(readDocument(previous, { file: name, line: document.line }));
    }
  }
  return read;
}

function readDocument(tree: Tree, place: DocumentPosition): SigmaDocument {
  const kind = Object.hasOwn(tree, "correlation") ? "correlation" : Object.hasOwn(tree, "filter") ? "filter" : "rule";
  const parsed = SCHEMAS[kind].safeParse(tree);
  if (parsed.success) return { ...place, kind, rule: parsed.data } as SigmaDocument;
  const faults = faultsOf(parsed.error).map(({ field, message }) => ({ place: field, message }));
  const { title, id } = tree;
  return {
    ...place,
    kind: "unreadable",
    title: typeof title === "string" ? title.slice(0, TEXT_CHARACTERS_MAX) : place.file,
    id: typeof id === "string" ? id : null,
    faults,
    spokenFor: rulesSpokenFor(tree),
  };
}

function rulesSpokenFor({ correlation, generate: beside }: Tree): string[] {
  if (!isTree(correlation) || beside === true || correlation.generate === true) return [];
  return fieldNames.safeParse(correlation.rules).data ?? [];
}

type Tree = { [key: string]: unknown };

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function merge(below: Tree, above: Tree): Tree {
  const merged: Tree = { ...below };
  for (const [key, given] of Object.entries(above)) {
    const known = Object.hasOwn(merged, key) ? merged[key] : undefined;
    const value = isTree(known) && isTree(given) ? merge(known, given) : given;
    // A key may have any name, including __proto__.
    Object.defineProperty(merged, key, { value, enumerable: true, writable: true, configurable: true });
  }
  return merged;
}

/** Names by which correlations and filters refer to a rule. */
export function referencesOf({ name, id }: Pick<SigmaHead, "name" | "id">): string[] {
  return [name, id].filter((reference) => typeof reference === "string");
}
