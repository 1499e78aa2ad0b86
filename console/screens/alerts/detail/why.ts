import type { AlertDetail, Event } from "../../../data/client.ts";
import { count, exact } from "../../../text/numbers.ts";
import { durationWords } from "../../../text/rules.ts";

// Why an alert fired, in words: the steps of its rule with the events that met them, or the events that were counted.

type Match = NonNullable<AlertDetail["match"]>;
type MatchedField = Match["events"][number]["fields"][number];

export interface WhyStep {
  /** Null where the rule has no steps. */
  readonly number: number | null;
  readonly name: string | null;
  readonly event: Event;
  /** Further events that met the same step. */
  readonly more: number;
  readonly fields: readonly MatchedField[];
  /** Since the step before. */
  readonly laterMs: number | null;
}

export interface Why {
  /** What was counted; null where a single event is enough. */
  readonly lead: { readonly figure: string; readonly words: string } | null;
  readonly steps: readonly WhyStep[];
  /** What had to be true of them all. */
  readonly closing: string | null;
}

const EVENTS_SHOWN_MAX = 3;

export function whyOf(alert: AlertDetail): Why {
  const { match } = alert;
  const oldestFirst = alert.related_events.toReversed();
  if (match === null) return { lead: null, steps: plainSteps(alert.related_events), closing: null };
  const explained = new Map(match.events.map((event) => [event.event_id, event]));
  if (match.kind === "sequence") {
    return { lead: null, steps: sequenceSteps(oldestFirst, explained), closing: sequenceWords(match) };
  }
  const steps = plainSteps(alert.related_events).map((step) => ({
    ...step,
    fields: explained.get(step.event.id)?.fields ?? [],
  }));
  switch (match.kind) {
    case "threshold":
      return { lead: thresholdLead(alert, match), steps, closing: null };
    case "absence":
      return {
        lead: null,
        steps,
        closing: `The rule fires when such events stay away for ${match.absence ?? match.window ?? "a while"}.`,
      };
    default:
      return { lead: null, steps, closing: alert.event_count > steps.length ? moreWords(alert, steps.length) : null };
  }
}

const moreWords = ({ event_count: all }: AlertDetail, shown: number) =>
  `Each of these is enough. ${count(all - shown, "more event", "more events")} joined the alert.`;

/** The newest few, oldest of them first. */
function plainSteps(newestFirst: readonly Event[]): WhyStep[] {
  return newestFirst
    .slice(0, EVENTS_SHOWN_MAX)
    .toReversed()
    .map((event) => ({ number: null, name: null, event, more: 0, fields: [], laterMs: null }));
}

function sequenceSteps(
  oldestFirst: readonly Event[],
  explained: ReadonlyMap<string, Match["events"][number]>,
): WhyStep[] {
  const byStep = new Map<
    number,
    { first: Event; last: Event; name: string | null; fields: readonly MatchedField[]; count: number }
  >();
  for (const event of oldestFirst) {
    const found = explained.get(event.id);
    if (found?.step_number === null || found?.step_number === undefined) continue;
    const known = byStep.get(found.step_number);
    if (known === undefined) {
      byStep.set(found.step_number, { first: event, last: event, name: found.step, fields: found.fields, count: 1 });
    } else {
      byStep.set(found.step_number, { ...known, last: event, count: known.count + 1 });
    }
  }
  const inTime = [...byStep].toSorted(([, a], [, b]) => atMs(a.first) - atMs(b.first));
  return inTime.map(([number, step], index) => {
    const before = inTime[index - 1]?.[1];
    return {
      number,
      name: step.name,
      event: step.first,
      more: step.count - 1,
      fields: step.fields,
      laterMs: before === undefined ? null : atMs(step.first) - atMs(before.first),
    };
  });
}

const atMs = ({ timestamp }: Event) => Date.parse(timestamp);

function sequenceWords({ order, steps, steps_min: min, window }: Match): string {
  const which = min === null || min >= steps.length ? "These steps" : `At least ${min} of ${steps.length} steps`;
  const absent = steps.filter((step) => step.absent).map(({ name }) => `“${name}”`);
  const without = absent.length === 0 ? "" : `, without ${absent.join(" and ")}`;
  return `${which} ${order === "any" ? "in any order" : "in this order"}${window === null ? "" : ` within ${durationWords(window)}`}${without}.`;
}

function thresholdLead(alert: AlertDetail, { threshold, window, group_by: groupBy }: Match): Why["lead"] {
  const shared =
    alert.group === null || groupBy.length === 0 ? "" : ` with ${shortField(alert.group.field)} = ${alert.group.value}`;
  const within = window === null ? "" : ` within ${durationWords(window)}`;
  return {
    figure: exact(alert.event_count),
    words: `matching ${alert.event_count === 1 ? "event" : "events"}${shared}. The rule fires at ${limitWords(threshold)}${within}.`,
  };
}

function limitWords(threshold: Match["threshold"]): string {
  if (threshold === null) return "one";
  const { count: events, distinct, sum, avg, percentile, gte, gt, lte, lt } = threshold;
  const bound =
    gte !== null
      ? `at least ${exact(gte)}`
      : gt !== null
        ? `more than ${exact(gt)}`
        : lte !== null
          ? `at most ${exact(lte)}`
          : lt !== null
            ? `less than ${exact(lt)}`
            : undefined;
  if (sum !== null) return `a sum of ${shortField(sum)} of ${bound ?? "any size"}`;
  if (avg !== null) return `an average of ${shortField(avg)} of ${bound ?? "any size"}`;
  if (percentile !== null)
    return `a percentile ${percentile.rank} of ${shortField(percentile.of)} of ${bound ?? "any size"}`;
  if (distinct.length > 0)
    return `${bound ?? exact(events ?? 1)} different values of ${distinct.map(shortField).join(" and ")}`;
  return bound ?? exact(events ?? 1);
}

/** `raw.src_ip` is `src_ip`: nearly every field is one of what was sent. */
export const shortField = (path: string) => path.replace(/^raw\./, "");

const SIGNS: Readonly<Record<string, string>> = {
  equals: "=",
  in: "=",
  not_equals: "≠",
  not_in: "≠",
  gt: ">",
  gte: "≥",
  lt: "<",
  lte: "≤",
  exists: "is there",
  equals_field: "=",
  cidr: "is in",
  glob: "is like",
  regex: "is like",
};

/** `type = door_held`, `bytes ≥ 1000 (was 4096)`. */
export function fieldWords({ field, operator, value, expected }: MatchedField): string {
  const name = shortField(field);
  if (operator === "exists") return expected === false ? `${name} is missing` : `${name} is there`;
  const sign = SIGNS[operator] ?? operator.replaceAll("_", " ");
  const isExact = operator === "equals" || operator === "in" || expected === value;
  if (isExact) return `${name} = ${String(value)}`;
  const was = value === null ? "" : ` (was ${String(value)})`;
  return expected === null ? `${name} ${sign} any of the list${was}` : `${name} ${sign} ${String(expected)}${was}`;
}
