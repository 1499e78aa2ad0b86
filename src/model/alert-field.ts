import { formatTime } from "../lib/time.ts";
import type { AlertSummary } from "./alert.ts";
import { entityText } from "./alert-entity.ts";
import type { ConditionFields } from "./condition.ts";
import type { Event } from "./event.ts";
import { fieldReader, pathFault, type FieldValue } from "./field.ts";
import { TIME_FIELD, type QueryFields } from "./query-fields.ts";

// The fields of alerts that searches can name, and their values in an alert. A store that evaluates searches in its own way
// must agree with these.

type AlertFieldReader = (alert: AlertSummary) => readonly (FieldValue | null)[];

interface AlertFieldMeta {
  readonly kind: "text" | "number" | "time";
  readonly read: AlertFieldReader;
}

const FIELDS = {
  id: { kind: "text", read: ({ id }) => [id] },
  rule_name: { kind: "text", read: ({ rule }) => [rule.name] },
  title: { kind: "text", read: ({ title }) => [title] },
  description: { kind: "text", read: ({ description }) => [description] },
  severity: { kind: "text", read: ({ severity }) => [severity] },
  status: { kind: "text", read: ({ status }) => [status] },
  source: { kind: "text", read: ({ source }) => [source] },
  assignee: { kind: "text", read: ({ assignee }) => [assignee] },
  resolution: { kind: "text", read: ({ resolution }) => [resolution] },
  tags: { kind: "text", read: ({ tags = [] }) => tags },
  "group.field": { kind: "text", read: ({ group }) => [group?.field ?? null] },
  "group.value": { kind: "text", read: ({ group }) => [group?.value ?? null] },
  entities: { kind: "text", read: ({ entities = [] }) => entities.map(entityText) },
  "entities.kind": { kind: "text", read: ({ entities = [] }) => entities.map(({ kind }) => kind) },
  "entities.value": { kind: "text", read: ({ entities = [] }) => entities.map(({ value }) => value) },
  event_count: { kind: "number", read: ({ eventCount }) => [eventCount] },
  "ai_analysis.threat_score": { kind: "number", read: ({ aiAnalysis }) => [aiAnalysis?.threat_score ?? null] },
  created_at: { kind: "time", read: ({ createdAt }) => [formatTime(createdAt)] },
  first_event_at: { kind: "time", read: ({ firstEventAt }) => [formatTime(firstEventAt)] },
  last_event_at: { kind: "time", read: ({ lastEventAt }) => [formatTime(lastEventAt)] },
} as const satisfies Record<string, AlertFieldMeta>;

export type AlertField = keyof typeof FIELDS;
export const ALERT_FIELDS = Object.keys(FIELDS) as AlertField[];
const ENRICHMENT = "enrichment.";

export function isAlertField(path: string): path is AlertField {
  return Object.hasOwn(FIELDS, path);
}

export const ALERT_QUERY_FIELDS: QueryFields = {
  prefix: "Alert",
  timeWords: "a time such as created_at",
  hasAnyField: false,
  pathFault: (path) => {
    if (isAlertField(path)) return undefined;
    if (!path.startsWith(ENRICHMENT))
      return `not a field of alerts: use ${ALERT_FIELDS.join(", ")} or enrichment.<path>`;
    return pathFault(path);
  },
  operatorField: (path) => (isAlertField(path) && FIELDS[path].kind === "time" ? TIME_FIELD : path),
  isText: (path) => isAlertField(path) && FIELDS[path].kind === "text",
};

export const ALERT_CONDITION_FIELDS: ConditionFields<AlertSummary> = {
  reader: (path) => {
    if (isAlertField(path)) {
      const { read } = FIELDS[path] as AlertFieldMeta;
      return (alert) => read(alert).filter((value) => value !== null);
    }
    const read = fieldReader(path);
    // The path reaches into the enrichment alone, which alerts and events share.
    return ({ enrichment }) => read({ enrichment } as Event);
  },
  operatorField: ALERT_QUERY_FIELDS.operatorField,
};
