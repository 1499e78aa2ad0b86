import type { Entity } from "./entity.ts";
import type { Event, JsonObject, Severity } from "./event.ts";
import type { Channel } from "./rule.ts";
import type { IdentifiedDefinition } from "./rule-definition.ts";

// A finding is one match of a rule, reported by detection. Alerts are made from findings.

/** Limit of the events of a finding, and of those that an alert shows; the newest stay. */
export const RELATED_EVENTS_MAX = 50;
/** Limit of the events of an alert that can be listed; the newest stay. */
export const ALERT_EVENTS_MAX = 1000;

export interface EventMark {
  readonly id: string;
  readonly timestampMs: number;
}

/** The fields kept of the last event that an absence rule has seen. */
export type SeenEvent = Pick<Event, "type" | "source" | "class" | "severity" | "timestamp">;

export interface Group {
  /** The path, or several separated by commas. */
  readonly field: string;
  readonly value: string;
}

export interface Finding {
  readonly rule: {
    readonly id: string;
    readonly name: string;
    readonly description: string;
    readonly tags: readonly string[];
    readonly channels: readonly Channel[];
    /** The rule as it was when it matched. */
    readonly definition?: IdentifiedDefinition | undefined;
  };
  readonly severity: Severity;
  /** Findings of one rule with the same deduplication key join one alert if they are less than `dedupMs` apart. */
  readonly dedupKey: string;
  readonly dedupMs: number;
  readonly group: Group | null;
  /** The event that completed the match; null for an absence. */
  readonly eventId: string | null;
  /** The source of that event. */
  readonly source: string;
  /** Filled in from that event. */
  readonly title: string;
  readonly description: string;
  readonly enrichment: JsonObject;
  /** Number of events that no earlier finding of the rule with this key counted. Zero only for an absence. */
  readonly eventCount: number;
  /** Time span of all events that fired, including those already counted in another group. */
  readonly firstEventMs: number;
  readonly lastEventMs: number;
  /** The newest counted events, newest first, at most RELATED_EVENTS_MAX. */
  readonly events: readonly EventMark[];
  /** The entities of those of `events` that detection had at hand, by event id. Others must be read from the store. */
  readonly entities?: Readonly<Record<string, readonly Entity[]>> | undefined;
}

interface EventSpan {
  readonly firstEventMs: number;
  readonly lastEventMs: number;
}

/** True if the two spans lie less than the deduplication period apart. */
export function isSameIncident(known: EventSpan, next: EventSpan, periodMs: number): boolean {
  return next.firstEventMs - known.lastEventMs < periodMs && known.firstEventMs - next.lastEventMs < periodMs;
}

/** Merges two lists, newest first, up to RELATED_EVENTS_MAX. */
export function newestEvents<Mark extends AnyMark>(a: readonly Mark[], b: readonly Mark[]): Mark[] {
  return inOrder(a, b).slice(0, RELATED_EVENTS_MAX);
}

/** The marks that `newestEvents` leaves out. */
export function displacedEvents<Mark extends AnyMark>(a: readonly Mark[], b: readonly Mark[]): Mark[] {
  return inOrder(a, b).slice(RELATED_EVENTS_MAX);
}

function inOrder<Mark extends AnyMark>(a: readonly Mark[], b: readonly Mark[]): Mark[] {
  return [...a, ...b].sort(newestFirst);
}

/** Simulations identify events by number. */
interface AnyMark {
  readonly id: string | number;
  readonly timestampMs: number;
}

function newestFirst(a: AnyMark, b: AnyMark): number {
  return b.timestampMs - a.timestampMs || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}
