import { RESOLUTIONS, STATUSES } from "../model/alert-state.ts";
import { CLASSES, SEVERITIES } from "../model/event.ts";
import { EXPORT_FORMATS } from "../model/export.ts";
import { MEASURES, SPLITS } from "../model/flow-question.ts";
import { PLANS, SCOPES } from "../model/key.ts";
import { NOTIFICATION_REASONS, NOTIFICATION_STATUSES } from "../model/notification.ts";
import { CHANNELS } from "../model/rule.ts";
import { REFUSAL_REASONS } from "../collectors/reading.ts";

// The OpenAPI document in shapes that client generators can name. They make a type of each component and stumble over what
// stands inside others: a union of types, an object in a choice, the same list of words again and again.

export type Schema = { [keyword: string]: unknown };
type Schemas = Record<string, Schema>;

export const COMPONENTS = "#/components/schemas/";
export const reference = (name: string): Schema => ({ $ref: `${COMPONENTS}${name}` });

/** Calls back with every object of a tree, from the outside in. */
export function visit(node: unknown, each: (node: Schema) => void): void {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) each(node as Schema);
  for (const inner of Object.values(node)) visit(inner, each);
}

/** Lists of words that several shapes have in common. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  Severity: SEVERITIES,
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
    spreadTypes(node);
    markTimes(node);
  });
  for (const [name, better] of Object.entries(RENAMED)) {
    if (!(name in schemas)) continue;
    schemas[better] = schemas[name]!;
    delete schemas[name];
    visit(document, (node) => {
      if (node["$ref"] === `${COMPONENTS}${name}`) node["$ref"] = `${COMPONENTS}${better}`;
    });
  }
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
    // Beside a default a bare reference is not understood by all.
    if ("default" in node) node["allOf"] = [reference(name)];
    else Object.assign(node, reference(name));
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
