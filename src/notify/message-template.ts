import { nearestName } from "../lib/nearest.ts";
import { html } from "./escape.ts";

// Templates of text with fields: `{{title}}`, or `{{title|url}}` with an escape of its own. There are no conditions, loops or
// expressions: a template can do nothing but insert the fields below, each escaped for its place.

const FIELDS_MAX = 200;

/** The escapes, with their meaning. `alerts` is not a text: only `json` and `text` insert it. */
export const TEMPLATE_ESCAPES = {
  json: "a whole JSON value, with its quotes",
  string: "text within the quotes of a JSON string",
  url: "percent-encoded, for URLs and forms",
  html: "for HTML and XML",
  text: "unchanged",
} as const;
export type TemplateEscape = keyof typeof TEMPLATE_ESCAPES;

export const TEMPLATE_FIELDS = {
  headline: "summary of the message in one line",
  text: "the message in plain text",
  count: "number of notifications",
  alerts: "list of the notifications, as the webhook has them",
  delivery_id: "id of the message, the same for every attempt",
  sent_at: "time of the attempt",
  repeat: "true if the message may have arrived before",
  alert_id: "id of the most severe alert, as all fields below",
  reason: "created, reopened, severity_raised, acknowledged or resolved",
  severity: "critical, high, medium, low or info",
  status: "open, acknowledged or resolved",
  title: "title of the alert",
  description: "description of the alert",
  rule: "name of the rule",
  tags: "tags of the rule, as a list",
  source: "source of the events",
  group_field: "field that the alert is grouped by",
  group_value: "its value",
  event_count: "number of events",
  first_event_at: "time of the first event",
  last_event_at: "time of the last event",
  url: "the alert in the console",
  api_url: "the alert in the API",
  resolution: "of a resolved alert",
  resolved_by: "of a resolved alert",
  comment: "of a resolved alert",
} as const;
export type InsertedField = keyof typeof TEMPLATE_FIELDS;

export type InsertedValues = Readonly<Record<InsertedField, unknown>>;

type InsertedPart = string | { readonly field: InsertedField; readonly escape: TemplateEscape | undefined };
export type MessageTemplate = readonly InsertedPart[];

/** The template, or why it is none. */
export function parseTemplate(text: string): MessageTemplate | { readonly fault: string } {
  const parts: InsertedPart[] = [];
  let at = 0;
  for (let open = text.indexOf("{{"); open >= 0; open = text.indexOf("{{", at)) {
    const close = text.indexOf("}}", open);
    if (close < 0) return { fault: "has {{ without }}" };
    const [name = "", escape, ...more] = text
      .slice(open + 2, close)
      .split("|")
      .map((word) => word.trim());
    if (!Object.hasOwn(TEMPLATE_FIELDS, name)) return { fault: unknown("field", name, Object.keys(TEMPLATE_FIELDS)) };
    if (more.length > 0) return { fault: `has two escapes for ${name}` };
    if (escape !== undefined && !Object.hasOwn(TEMPLATE_ESCAPES, escape)) {
      return { fault: unknown("escape", escape, Object.keys(TEMPLATE_ESCAPES)) };
    }
    parts.push(text.slice(at, open), { field: name as InsertedField, escape: escape as TemplateEscape | undefined });
    if (parts.length > FIELDS_MAX * 2) return { fault: `has more than ${FIELDS_MAX} fields` };
    at = close + 2;
  }
  return [...parts, text.slice(at)];
}

function unknown(kind: string, name: string, names: readonly string[]): string {
  const near = nearestName(name, names);
  const known = near === undefined ? `there are ${names.join(", ")}` : `did you mean ${near}?`;
  return `has the unknown ${kind} ${JSON.stringify(name.slice(0, 40))}; ${known}`;
}

/** `standard` escapes the fields that name no escape. */
export function renderTemplate(template: MessageTemplate, values: InsertedValues, standard: TemplateEscape): string {
  return template
    .map((part) => (typeof part === "string" ? part : escaped(values[part.field], part.escape ?? standard)))
    .join("");
}

function escaped(value: unknown, escape: TemplateEscape): string {
  if (escape === "json") return JSON.stringify(value ?? null);
  const text =
    value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  if (escape === "string") return JSON.stringify(text).slice(1, -1);
  if (escape === "url") return encodeURIComponent(text.toWellFormed());
  return escape === "html" ? html(text) : text;
}
