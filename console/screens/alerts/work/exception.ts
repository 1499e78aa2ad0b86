import type { AlertDetail, Event } from "../../../data/client.ts";
import { whyOf } from "../detail/why.ts";

// What an exception for a false positive would be about: values that all events of the alert share.

export type Value = string | number | boolean;

export interface Candidate {
  readonly field: string;
  readonly value: Value;
  /** Chosen at first. */
  readonly isLikely: boolean;
}

/** Fields that name somebody or something. */
const NAMES = [
  "user",
  "src_ip",
  "dst_ip",
  "src_mac",
  "host",
  "device",
  "door",
  "camera",
  "badge",
  "plate",
  "from",
  "to",
  "query",
  "signature",
  "zone",
];
/** Fields that say what kind of event it is: alone, they would silence the rule. */
const GENERAL = new Set(["type", "source", "class", "severity"]);
const CANDIDATES_MAX = 12;

export interface Choice {
  /** The event that it is about; null: all events of the alert. */
  readonly event: Event | null;
  readonly candidates: readonly Candidate[];
}

/**
 * What the exception can be about. Events that have a name in common can be ignored together; the steps of a sequence often have
 * none, and then one of them is chosen: conditions must all hold for the same event.
 */
export function choicesOf(alert: AlertDetail): Choice[] {
  const together = candidatesOf(alert, alert.related_events);
  if (together.some(({ isLikely }) => isLikely)) return [{ event: null, candidates: together }];
  const steps = whyOf(alert).steps.map(({ event }) => ({ event, candidates: candidatesOf(alert, [event]) }));
  // What completes a sequence comes last, and is what makes it an alert.
  return steps.toReversed().filter(({ candidates }) => candidates.length > 0);
}

function candidatesOf(alert: AlertDetail, events: readonly Event[]): Candidate[] {
  const ids = new Set(events.map(({ id }) => id));
  const grouped = (alert.group?.field ?? "").split(",").map((field) => field.trim());
  const explained = (alert.match?.events ?? []).filter((event) => ids.has(event.event_id));
  const matched = explained.flatMap(({ fields }) => fields.map(({ field }) => field));
  const named = NAMES.map((name) => `raw.${name}`);
  const fields = [...new Set([...grouped, ...matched, ...named])].filter((field) => field !== "");
  const shared = fields.flatMap((field) => {
    const value = sharedValue(events, field);
    return value === undefined ? [] : [{ field, value }];
  });
  const isGeneral = (field: string) => GENERAL.has(field);
  const tiers = [grouped, matched.filter((field) => !isGeneral(field) && named.includes(field)), named, matched].map(
    (tier) => tier.filter((field) => !isGeneral(field)),
  );
  const likely = tiers.find((tier) => shared.some(({ field }) => tier.includes(field))) ?? [];
  return shared.slice(0, CANDIDATES_MAX).map((each) => ({ ...each, isLikely: likely.includes(each.field) }));
}

function sharedValue(events: readonly Event[], field: string): Value | undefined {
  const [first, ...others] = events.map((event) => valueAt(event, field));
  return first !== undefined && others.every((value) => value === first) ? first : undefined;
}

function valueAt(event: Event, path: string): Value | undefined {
  let value: unknown = event;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : undefined;
}

export const toConditions = (chosen: readonly Pick<Candidate, "field" | "value">[]) =>
  chosen.map(({ field, value }) => ({ field, equals: value }));

/** "would have silenced 17 of 21 alerts last week" */
export function silencedWords(before: number, after: number): string {
  if (before === 0) return "The rule raised no alert last week.";
  return `It would have silenced ${before - after} of ${before} ${before === 1 ? "alert" : "alerts"} last week.`;
}
