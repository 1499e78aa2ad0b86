import { reference, type Schema, type Schemas } from "./document-schema.ts";

// Client generators make a usable type of a component only. Of an object or a choice inside another one they make an
// anonymous struct that no program can construct, or a type that cannot be decoded. So every such part becomes a component,
// and equal parts become the same one.

/** Better names than that of the first place where the part stands. */
const PREFERRED: Readonly<Record<string, string>> = {
  AggregationAggs: "InnerAggregation",
  AggregationCount: "CountAggregation",
  AggregationHistogram: "HistogramAggregation",
  AggregationStats: "FieldAggregation",
  AggregationTerms: "TermsAggregation",
  CollectorsListeners: "Listener",
  CollectorsWebhooks: "WebhookSender",
  EnrichmentLists: "EnrichmentList",
  ExportRequestTimeRange: "BoundedTimeRange",
  FieldTestCidr: "NetworkOrNetworks",
  FieldTestContains: "TextOrTexts",
  FieldTestEquals: "Scalar",
  FieldTestGlob: "GlobOrGlobs",
  FieldTestRegex: "PatternOrPatterns",
  ListEventsSource: "EventSource",
  NewRuleDedup: "NewDedup",
  NewRuleSequence: "NewSequenceStep",
  NewRuleSource: "RuleSource",
  NewRuleThreshold: "NewThreshold",
  RuleSequence: "SequenceStep",
  RuleThresholdGroupBy: "FieldPathOrPaths",
  SearchQueryTimeRange: "TimeRange",
  StatsMin: "NumberOrTime",
};

interface Operation {
  operationId?: string;
  parameters?: { name: string; schema?: Schema }[];
}

export function nameParts(schemas: Schemas, operations: readonly Operation[]): void {
  const known = new Map<string, string>();

  /** Refers to the part as a component, which it becomes unless an equal one is there. */
  function componentOf(name: string, part: Schema): Schema {
    const { description: _, ...shape } = part;
    const key = JSON.stringify(shape);
    const same = known.get(key);
    if (same !== undefined) return reference(same);
    const chosen = PREFERRED[name] ?? name;
    if (chosen in schemas) throw new Error(`two shapes of the document would be called ${chosen}`);
    known.set(key, chosen);
    schemas[chosen] = part;
    nameInside(chosen, part);
    return reference(chosen);
  }

  function nameInside(owner: string, { properties, additionalProperties }: Schema): void {
    for (const [name, property] of Object.entries((properties ?? {}) as Schemas)) {
      namePart(`${owner}${pascalCase(name)}`, property);
    }
    if (isSchema(additionalProperties)) namePart(`${owner}Value`, additionalProperties);
  }

  function namePart(name: string, part: Schema): void {
    const { anyOf, enum: words, items, properties, additionalProperties } = part;
    if (Array.isArray(anyOf)) {
      const nothing = (anyOf as Schema[]).filter(({ type }) => type === "null");
      const others = (anyOf as Schema[]).filter(({ type }) => type !== "null");
      if (others.length === 1 && "$ref" in others[0]!) return;
      const component = componentOf(name, others.length === 1 ? others[0]! : { anyOf: others });
      delete part["anyOf"];
      if (nothing.length > 0) part["anyOf"] = [component, ...nothing];
      else referTo(component, part);
    } else if (isSchema(items)) {
      namePart(name, items);
    } else if (isSchema(properties) || (words && part["type"] === "string")) {
      const { description: _, default: __, ...shape } = part;
      for (const keyword of Object.keys(shape)) delete part[keyword];
      // The default of an object is that of its properties, and some generators refuse to have one said.
      if (properties) delete part["default"];
      referTo(componentOf(name, shape), part);
    } else if (isSchema(additionalProperties)) {
      namePart(name, additionalProperties);
    }
  }

  for (const [name, schema] of Object.entries(schemas)) nameInside(name, schema);
  for (const { operationId = "", parameters = [] } of operations) {
    for (const { name, schema = {} } of parameters) {
      if ("enum" in schema)
        namePart(`${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}${pascalCase(name)}`, schema);
    }
  }
}

/** Beside a default a bare reference is not understood by all. */
export function referTo(target: Schema, node: Schema): void {
  if ("default" in node) node["allOf"] = [target];
  else Object.assign(node, target);
}

/** A schema that says something. */
function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

function pascalCase(name: string): string {
  return name
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}
