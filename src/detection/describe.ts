import type { Scalar } from "../model/condition.ts";
import type { Event } from "../model/event.ts";
import type { Finding, Group } from "../model/finding.ts";
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
    source: event.source,
    enrichment: event.enrichment,
  };
}

/** There is no event to speak of: what is known of it is its group. */
export function describeSilence(
  rule: Rule,
  { group, seenAtMs, source }: Silence,
  fold: Pick<Finding, "foldKey" | "foldMs">,
): Finding {
  const paths = groupPaths(rule);
  const valueOf: ReadField = (path) => (paths.includes(path) ? [group[paths.indexOf(path)]!] : []);
  const named = valueOf("source")[0];
  const fallback = rule.source === ANY_SOURCE && typeof named === "string" ? named : rule.source;
  return {
    ...fold,
    ...describeRule(rule, valueOf),
    group: groupOf(rule, group),
    source: source ?? fallback,
    enrichment: {},
    eventCount: 0,
    firstEventMs: seenAtMs,
    lastEventMs: seenAtMs,
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
