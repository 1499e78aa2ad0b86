import { RESOLUTIONS, STATUSES } from "../model/alert-state.ts";
import { CLASSES, SEVERITIES } from "../model/event.ts";
import { EXPORT_FORMATS } from "../model/export.ts";
import { MEASURES, SPLITS } from "../model/flow-question.ts";
import { PLANS, SCOPES } from "../model/key.ts";
import { NOTIFICATION_REASONS, NOTIFICATION_STATUSES } from "../model/notification.ts";
import { CHANNELS } from "../model/rule.ts";
import { REFUSAL_REASONS } from "../collectors/reading.ts";
import { nameParts, referTo } from "./document-parts.ts";
import { COMPONENTS, reference, visit, type Schema, type Schemas } from "./document-schema.ts";

// The OpenAPI document in shapes that client generators can name. They make a type of each component and stumble over what
// stands inside others: a union of types, an object in a choice, the same list of words again and again.

/** Lists of words that several shapes have in common. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  SeverityLevel: SEVERITIES,
  EventClass: CLASSES,
  AlertStatus: STATUSES,
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

/** Names that a language has for something of its own. */
const RENAMED: Readonly<Record<string, string>> = { Bool: "BoolQuery", Error: "ErrorResponse", Value: "ValueAnswer" };

export function nameShapes(document: { paths: unknown; components: { schemas: Schemas } }): void {
  const { schemas } = document.components;
  for (const [name, words] of Object.entries(WORDS)) nameWords(document, name, words);
  visit(document, (node) => {
    joinNull(node);
    spreadTypes(node);
    markTimes(node);
    markNumbers(node);
    setChoiceApart(node);
  });
  for (const [name, better] of Object.entries(RENAMED)) {
    if (!(name in schemas)) continue;
    schemas[better] = schemas[name]!;
    delete schemas[name];
    visit(document, (node) => {
      if (node["$ref"] === `${COMPONENTS}${name}`) node["$ref"] = `${COMPONENTS}${better}`;
    });
  }
  nameParts(
    schemas,
    Object.values(document.paths as Record<string, object>).flatMap((path) => Object.values(path)),
  );
}

/** The words become a component, and each place that has them refers to it. */
function nameWords(
  { paths, components }: Parameters<typeof nameShapes>[0],
  name: string,
  words: readonly string[],
): void {
  let isUsed = false;
  visit([paths, components], (node) => {
    const { enum: own } = node;
    if (!Array.isArray(own) || own.length !== words.length || !own.every((word, i) => word === words[i])) return;
    isUsed = true;
    delete node["type"];
    delete node["enum"];
    referTo(reference(name), node);
  });
  if (isUsed) components.schemas[name] = { type: "string", enum: [...words] };
}

/** `type: [string, number]` is a choice of types. Only `null` beside one type is understood by all. */
function spreadTypes(node: Schema): void {
  const { type } = node;
  if (!Array.isArray(type) || type.filter((one) => one !== "null").length < 2) return;
  delete node["type"];
  node["anyOf"] = type.map((one) => ({ type: one }));
}

/** The other way round, something with a type or null is one schema of two types: generators take an `anyOf` for a choice. */
function joinNull(node: Schema): void {
  const { anyOf } = node;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return;
  const other = (anyOf as Schema[]).find(({ type }) => type !== "null");
  const hasNull = (anyOf as Schema[]).some(({ type }) => type === "null");
  if (!hasNull || typeof other?.["type"] !== "string" || other["type"] === "object" || "enum" in other) return;
  delete node["anyOf"];
  Object.assign(node, { ...other, ...node, type: [other["type"], "null"] });
}

const INT32_MAX = 2 ** 31 - 1;

/** Without a format, a number is one of 32 bits for many generators: it would lose digits, and a count would overflow. */
function markNumbers(node: Schema): void {
  const { type, maximum } = node;
  const isOf = (name: string) => type === name || (Array.isArray(type) && type.includes(name));
  if (isOf("number")) node["format"] ??= "double";
  else if (isOf("integer") && !(typeof maximum === "number" && maximum <= INT32_MAX)) node["format"] ??= "int64";
}

/**
 * "One of these properties" says nothing about types, but generators make a choice of nameless types of it. They pass over
 * conditional schemas, which validators know.
 */
function setChoiceApart(node: Schema): void {
  const { oneOf, properties } = node;
  if (!Array.isArray(oneOf) || properties === undefined) return;
  delete node["oneOf"];
  Object.assign(node, { if: { oneOf }, else: { not: {} } });
}

const TIME_NAMES = /(?:^|_)(?:at|until)$|^(?:timestamp|last_match)$/;

/** Properties that hold a time, by their names; those of flows are numbers. */
function markTimes({ properties }: Schema): void {
  if (typeof properties !== "object" || properties === null) return;
  for (const [name, property] of Object.entries(properties as Schemas)) {
    if (!TIME_NAMES.test(name)) continue;
    const { type } = property;
    if (type === "string" || (Array.isArray(type) && type.includes("string"))) property["format"] ??= "date-time";
  }
}
