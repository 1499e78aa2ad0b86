import type { AlertFilters, AlertSort } from "../../data/alerts.ts";
import type { Alert } from "../../data/client.ts";
import { SEVERITIES } from "../../data/severity.ts";

// Whether an alert belongs into a list, for alerts that the stream brings. The service decides about the list itself.

const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const wordsOf = (text: string) => text.toLowerCase().match(WORD) ?? [];

function hasWords(alert: Alert, search: string): boolean {
  const { title, description, rule_name: rule, group, assignee, tags, entities } = alert;
  const texts = [title, description, rule, group?.value, assignee, ...tags, ...entities.map(({ value }) => value)];
  const words = wordsOf(texts.filter((text) => text !== null && text !== undefined).join(" "));
  return wordsOf(search).every((searched) => words.some((word) => word.startsWith(searched)));
}

function namesEntity({ entities }: Alert, filter: string): boolean {
  const searched = filter.toLowerCase();
  return entities.some(
    ({ kind, value }) => value.toLowerCase() === searched || `${kind}:${value}`.toLowerCase() === searched,
  );
}

export function matches(alert: Alert, filters: AlertFilters): boolean {
  const { status, severity, rule_name: rules, source, assignee, entity, tag, search } = filters;
  const person = alert.assignee?.toLowerCase() ?? "none";
  const [startMs, endMs] =
    filters.time === "created"
      ? [Date.parse(alert.created_at), Date.parse(alert.created_at)]
      : [Date.parse(alert.first_event_at), Date.parse(alert.last_event_at)];
  return (
    (status?.includes(alert.status) ?? true) &&
    (severity?.includes(alert.severity) ?? true) &&
    (rules?.includes(alert.rule_name) ?? true) &&
    (source?.includes(alert.source) ?? true) &&
    (assignee?.some((name) => name.toLowerCase() === person) ?? true) &&
    (entity?.some((each) => namesEntity(alert, each)) ?? true) &&
    (tag?.some((each) => alert.tags.includes(each.toLowerCase())) ?? true) &&
    // The stream does not say which events an alert has.
    filters.event_id === undefined &&
    (filters.from === undefined || endMs >= Date.parse(filters.from)) &&
    (filters.to === undefined || startMs < Date.parse(filters.to)) &&
    (search === undefined || hasWords(alert, search))
  );
}

/** Whether the list shows `a` before `b`. */
export function isBefore(a: Alert, b: Alert, sort: AlertSort): boolean {
  const [left, right] = [rankOf(a, sort), rankOf(b, sort)];
  return left === right ? a.id > b.id : left > right;
}

function rankOf(alert: Alert, sort: AlertSort): number {
  switch (sort) {
    case "severity":
      return -SEVERITIES.indexOf(alert.severity);
    case "event_count":
      return alert.event_count;
    default:
      return Date.parse(alert[sort]);
  }
}
