import { reference, type OpenapiSchema, type OpenapiSchemas } from "./openapi-schema.ts";

// Client generators create usable types only from components. From a nested object or union they create an anonymous struct
// that no program can construct, or a type that cannot be decoded. So every nested object, union and enum becomes a component,
// and equal ones share a component.

/** Names to use instead of the generated one, which joins the name of the owner and of the property. */
const PREFERRED_NAMES: Readonly<Record<string, string>> = {
  AggregationAggs: "InnerAggregation",
  AggregationCount: "CountAggregation",
  AggregationHistogram: "HistogramAggregation",
  AggregationStats: "FieldAggregation",
  AggregationTerms: "TermsAggregation",
  AlertAggregationAggs: "InnerAlertAggregation",
  AlertAggregationHistogram: "AlertHistogramAggregation",
  AlertIntervalBySeverity: "SeverityCounts",
  AlertIntervalByStatus: "StatusCounts",
  AlertQueryStatus: "FilterValues",
  ChannelStatusLastError: "LastFailure",
  CollectorsListeners: "Listener",
  CollectorsWebhooks: "WebhookSender",
  EnrichmentLists: "EnrichmentList",
  EntityDetailTrafficIn: "TrafficSeries",
  EntityDetailTrafficPeersIn: "TrafficPeer",
  EntityDetailTrafficPorts: "TrafficPort",
  ExportRequestTimeRange: "BoundedTimeRange",
  FieldTestCidr: "NetworkOrNetworks",
  FieldTestContains: "TextOrTexts",
  FieldTestEquals: "Scalar",
  FieldTestGlob: "GlobOrGlobs",
  FieldTestRegex: "PatternOrPatterns",
  ListEventsSource: "EventSource",
  NewRuleDedup: "NewDedup",
  NewRuleSource: "RuleSource",
  NewThresholdInputs: "NewThresholdInputSpec",
  RuleParts: "RulePart",
  RuleSequence: "SequenceStep",
  RuleThresholdGroupBy: "FieldPathOrPaths",
  RuleThresholdInputs: "ThresholdInputSpec",
  SearchQueryTimeRange: "TimeRange",
  StatsMin: "NumberOrTime",
};

interface NamedOperation {
  operationId?: string;
  parameters?: { name: string; schema?: OpenapiSchema }[];
}

export function extractComponents(schemas: OpenapiSchemas, operations: readonly NamedOperation[]): void {
  const known = new Map<string, string>();

  /** Returns a reference to the component of this schema, and creates the component if there is no equal one. */
  function componentOf(name: string, part: OpenapiSchema): OpenapiSchema {
    const { description: _, ...rest } = part;
    const key = JSON.stringify(rest);
    const same = known.get(key);
    if (same !== undefined) return reference(same);
    const chosen = PREFERRED_NAMES[name] ?? name;
    if (chosen in schemas) throw new Error(`two schemas of the OpenAPI document would be named ${chosen}`);
    known.set(key, chosen);
    schemas[chosen] = part;
    extractNested(chosen, part);
    return reference(chosen);
  }

  function extractNested(owner: string, { properties, additionalProperties }: OpenapiSchema): void {
    for (const [name, property] of Object.entries((properties ?? {}) as OpenapiSchemas)) {
      extract(`${owner}${pascalCase(name)}`, property);
    }
    if (isSchema(additionalProperties)) extract(`${owner}Value`, additionalProperties);
  }

  function extract(name: string, part: OpenapiSchema): void {
    const { anyOf, enum: values, items, properties, additionalProperties } = part;
    if (Array.isArray(anyOf)) {
      const nulls = (anyOf as OpenapiSchema[]).filter(({ type }) => type === "null");
      const others = (anyOf as OpenapiSchema[]).filter(({ type }) => type !== "null");
      if (others.length === 1 && "$ref" in others[0]!) return;
      const component = componentOf(name, others.length === 1 ? others[0]! : { anyOf: others });
      delete part["anyOf"];
      if (nulls.length > 0) part["anyOf"] = [component, ...nulls];
      else referTo(component, part);
    } else if (isSchema(items)) {
      extract(name, items);
    } else if (isSchema(properties) || (values && part["type"] === "string")) {
      const { description: _, default: __, ...shape } = part;
      for (const keyword of Object.keys(shape)) delete part[keyword];
      // The default of an object follows from its properties, and some generators reject an explicit one.
      if (properties) delete part["default"];
      referTo(componentOf(name, shape), part);
    } else if (isSchema(additionalProperties)) {
      extract(name, additionalProperties);
    }
  }

  for (const [name, schema] of Object.entries(schemas)) extractNested(name, schema);
  for (const { operationId = "", parameters = [] } of operations) {
    for (const { name, schema = {} } of parameters) {
      if ("enum" in schema)
        extract(`${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}${pascalCase(name)}`, schema);
    }
  }
}

/** Not all generators accept a default beside a bare reference, so it is wrapped in `allOf`. */
export function referTo(target: OpenapiSchema, node: OpenapiSchema): void {
  if ("default" in node) node["allOf"] = [target];
  else Object.assign(node, target);
}

/** A schema with at least one keyword. */
function isSchema(value: unknown): value is OpenapiSchema {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

function pascalCase(name: string): string {
  return name
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}
