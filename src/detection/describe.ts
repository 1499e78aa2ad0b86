import { parseTime } from "../lib/time.ts";
import type { Scalar } from "../model/condition.ts";
import type { Event } from "../model/event.ts";
import type { Finding, Group, SeenEvent } from "../model/finding.ts";
import { ANY_SOURCE, groupPaths, type Channel, type Rule } from "../model/rule.ts";
import type { Silence } from "./silence.ts";
import { fillTemplate, plainText, readsEvent, type ReadField } from "./template.ts";

// A finding in words that a person reads.

const TITLE_CHARACTERS_MAX = 300;
const DESCRIPTION_CHARACTERS_MAX = 10_000;

export type Found = Pick<Finding, "foldKey" | "foldMs" | "eventCount" | "firstEventMs" | "lastEventMs" | "events">;

export function describeFinding(rule: Rule, event: Event, group: readonly Scalar[], found: Found): Finding {
  return {
    ...found,
    ...describeRule(rule, readsEvent(event)),
    group: groupOf(rule, group),
    eventId: event.id,
    source: event.source,
    enrichment: event.enrichment,
  };
}

/** There is no event to speak of: what is known is its group, and what the last one was called. */
export function describeSilence(
  rule: Rule,
  { group, seenAtMs, last }: Silence,
  fold: Pick<Finding, "foldKey" | "foldMs">,
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
    ...fold,
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
    rule: { id, name, description, tags, channels: [...channels] },
    severity,
    title: fillTemplate(rule.title ?? description.split("\n", 1)[0]!.trim(), read, TITLE_CHARACTERS_MAX),
    description: fillTemplate(description, read, DESCRIPTION_CHARACTERS_MAX),
  };
}

function groupOf(rule: Rule, group: readonly Scalar[]): Group | null {
  if (group.length === 0) return null;
  return {
    field: groupPaths(rule).join(", "),
    value: group.map((value) => plainText(String(value))).join(", "),
  };
}
