import { parseTime } from "../../lib/time.ts";
import type { Scalar } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import type { Finding, Group, SeenEvent } from "../../model/finding.ts";
import { ANY_SOURCE, groupPaths, type Channel, type Rule } from "../../model/rule.ts";
import { identifyDefinition } from "../../model/rule-definition.ts";
import type { Absence } from "../windows/absence-tracker.ts";
import { renderTemplate, plainText, readFieldsOf, type ReadField } from "./alert-template.ts";

// The title and description of a finding.

const TITLE_CHARACTERS_MAX = 300;
const DESCRIPTION_CHARACTERS_MAX = 10_000;

export type FindingEvents = Pick<
  Finding,
  "dedupKey" | "dedupMs" | "eventCount" | "firstEventMs" | "lastEventMs" | "events"
>;

export function describeFinding(rule: Rule, event: Event, group: readonly Scalar[], events: FindingEvents): Finding {
  return {
    ...events,
    ...describeRule(rule, readFieldsOf(event)),
    group: groupOf(rule, group),
    eventId: event.id,
    source: event.source,
    enrichment: event.enrichment,
  };
}

/** An absence has no event. Its text uses the group and the last event. */
export function describeAbsence(
  rule: Rule,
  { group, seenAtMs, last }: Absence,
  dedup: Pick<Finding, "dedupKey" | "dedupMs">,
): Finding {
  const paths = groupPaths(rule);
  const valueOf: ReadField = (path) => {
    if (paths.includes(path)) return [group[paths.indexOf(path)]!];
    return last !== null && Object.hasOwn(last, path) ? [last[path as keyof SeenEvent]] : [];
  };
  const named = valueOf("source")[0];
  const source = rule.source === ANY_SOURCE && typeof named === "string" ? named : rule.source;
  const lastMs = last === null ? seenAtMs : parseTime(last.timestamp)!;
  return {
    ...dedup,
    ...describeRule(rule, valueOf),
    group: groupOf(rule, group),
    eventId: null,
    source: last?.source ?? source,
    enrichment: {},
    eventCount: 0,
    firstEventMs: lastMs,
    lastEventMs: lastMs,
    events: [],
  };
}

function describeRule(rule: Rule, read: ReadField): Pick<Finding, "rule" | "severity" | "title" | "description"> {
  const { id, name, description, tags, severity } = rule;
  const channels = new Set<Channel>(rule.actions.flatMap((action) => action.alert.channels));
  return {
    rule: { id, name, description, tags, channels: [...channels], definition: identifyDefinition(rule) },
    severity,
    title: renderTemplate(rule.title ?? description.split("\n", 1)[0]!.trim(), read, TITLE_CHARACTERS_MAX),
    description: renderTemplate(description, read, DESCRIPTION_CHARACTERS_MAX),
  };
}

function groupOf(rule: Rule, group: readonly Scalar[]): Group | null {
  if (group.length === 0) return null;
  return {
    field: groupPaths(rule).join(", "),
    value: group.map((value) => plainText(String(value))).join(", "),
  };
}
