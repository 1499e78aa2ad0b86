import { RESOLUTIONS, STATUSES } from "../model/alert-state.ts";
import { ENTITY_KINDS } from "../model/entity.ts";
import { CLASSES, SEVERITIES } from "../model/event.ts";
import { EXPORT_FORMATS } from "../model/export.ts";
import { MEASURES, SPLITS } from "../model/flow-query.ts";
import { PLANS, SCOPES } from "../model/key.ts";
import { NOTIFICATION_REASONS, NOTIFICATION_STATUSES } from "../model/notification.ts";
import { CHANNELS } from "../model/rule.ts";
import { REFUSAL_REASONS } from "../collectors/formats/reading.ts";
import { ALERT_TIMES } from "../store/ports/alert-store.ts";
import { extractComponents, referTo } from "./openapi-components.ts";
import { COMPONENTS, reference, visit, type OpenapiSchema, type OpenapiSchemas } from "./openapi-schema.ts";

// Rewrites the OpenAPI document for client generators. They create a type for each component and have trouble with nested
// schemas: type lists, objects in unions, and repeated enums.

/** Enums that several schemas share. */
const SHARED_ENUMS: Readonly<Record<string, readonly string[]>> = {
  SeverityLevel: SEVERITIES,
  EventClass: CLASSES,
  AlertStatus: STATUSES,
  AlertTime: ALERT_TIMES,
  EntityKind: ENTITY_KINDS,
  Resolution: RESOLUTIONS,
  Channel: CHANNELS,
  NotificationReason: NOTIFICATION_REASONS,
  NotificationStatus: NOTIFICATION_STATUSES,
  ExportFormat: EXPORT_FORMATS,
  FlowMeasure: MEASURES,
  FlowSplit: SPLITS,
  Scope: SCOPES,
  Plan: PLANS,
  RefusalReason: REFUSAL_REASONS,
  SequenceOrder: ["in_order", "any"],
  SortOrder: ["asc", "desc"],
};

/** Names that collide with a built-in type of a language. */
const RESERVED_NAMES: Readonly<Record<string, string>> = {
  Bool: "BoolQuery",
  Error: "ErrorResponse",
  Value: "ValueAnswer",
};

export function nameClientTypes(document: { paths: unknown; components: { schemas: OpenapiSchemas } }): void {
  const { schemas } = document.components;
  for (const [name, values] of Object.entries(SHARED_ENUMS)) extractEnum(document, name, values);
  visit(document, (node) => {
    mergeNull(node);
    splitTypeList(node);
    markTimes(node);
    markNumbers(node);
    replaceOneOf(node);
  });
  for (const [name, better] of Object.entries(RESERVED_NAMES)) {
    if (!(name in schemas)) continue;
    schemas[better] = schemas[name]!;
    delete schemas[name];
    visit(document, (node) => {
      if (node["$ref"] === `${COMPONENTS}${name}`) node["$ref"] = `${COMPONENTS}${better}`;
    });
  }
  extractComponents(
    schemas,
    Object.values(document.paths as Record<string, object>).flatMap((path) => Object.values(path)),
  );
}

/** Moves an enum into a component and replaces its occurrences by references. */
function extractEnum(
  { paths, components }: Parameters<typeof nameClientTypes>[0],
  name: string,
  values: readonly string[],
): void {
  let isUsed = false;
  visit([paths, components], (node) => {
    const { enum: own } = node;
    if (!Array.isArray(own) || own.length !== values.length || !own.every((value, i) => value === values[i])) return;
    isUsed = true;
    delete node["type"];
    delete node["enum"];
    referTo(reference(name), node);
  });
  if (isUsed) components.schemas[name] = { type: "string", enum: [...values] };
}

/** Rewrites `type: [string, number]` to a union. All generators understand only `null` beside one type. */
function splitTypeList(node: OpenapiSchema): void {
  const { type } = node;
  if (!Array.isArray(type) || type.filter((one) => one !== "null").length < 2) return;
  delete node["type"];
  node["anyOf"] = type.map((one) => ({ type: one }));
}

/** Rewrites a union of one type and null to `type: [x, null]`, because generators create a union type from `anyOf`. */
function mergeNull(node: OpenapiSchema): void {
  const { anyOf } = node;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return;
  const other = (anyOf as OpenapiSchema[]).find(({ type }) => type !== "null");
  const hasNull = (anyOf as OpenapiSchema[]).some(({ type }) => type === "null");
  if (!hasNull || typeof other?.["type"] !== "string" || other["type"] === "object" || "enum" in other) return;
  delete node["anyOf"];
  Object.assign(node, { ...other, ...node, type: [other["type"], "null"] });
}

const INT32_MAX = 2 ** 31 - 1;

/** Adds a format to numbers. Without one many generators use 32 bits, which loses digits and overflows counts. */
function markNumbers(node: OpenapiSchema): void {
  const { type, maximum } = node;
  const isOf = (name: string) => type === name || (Array.isArray(type) && type.includes(name));
  if (isOf("number")) node["format"] ??= "double";
  else if (isOf("integer") && !(typeof maximum === "number" && maximum <= INT32_MAX)) node["format"] ??= "int64";
}

/**
 * Rewrites a `oneOf` over required properties to a conditional schema. It says nothing about types, but generators create a
 * union of anonymous types from it. They ignore conditional schemas, which validators support.
 */
function replaceOneOf(node: OpenapiSchema): void {
  const { oneOf, properties } = node;
  if (!Array.isArray(oneOf) || properties === undefined) return;
  delete node["oneOf"];
  Object.assign(node, { if: { oneOf }, else: { not: {} } });
}

const TIME_NAMES = /(?:^|_)(?:at|until)$|^(?:timestamp|last_match)$/;

/** Marks string properties as times by their names. Times of flows are numbers. */
function markTimes({ properties }: OpenapiSchema): void {
  if (typeof properties !== "object" || properties === null) return;
  for (const [name, property] of Object.entries(properties as OpenapiSchemas)) {
    if (!TIME_NAMES.test(name)) continue;
    const { type } = property;
    if (type === "string" || (Array.isArray(type) && type.includes("string"))) property["format"] ??= "date-time";
  }
}
