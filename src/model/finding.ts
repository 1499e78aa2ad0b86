import type { Event, JsonObject, Severity } from "./event.ts";
import type { Channel } from "./rule.ts";

// What detection says: a rule matched. Alerts are made of it.

/** Related events that an alert remembers, the newest ones. */
export const RELATED_EVENTS_MAX = 50;

export interface EventMark {
  readonly id: string;
  readonly timestampMs: number;
}

/** What is kept of the last event of something that an absence rule waits for. */
export type SeenEvent = Pick<Event, "type" | "source" | "class" | "severity" | "timestamp">;

export interface Group {
  /** The path, or several with a comma between. */
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
  };
  readonly severity: Severity;
  /** Findings of one rule with the same key are of one attack, as long as they lie close enough in time. */
  readonly foldKey: string;
  readonly foldMs: number;
  readonly group: Group | null;
  /** The event that completed the match; null for an absence. */
  readonly eventId: string | null;
  /** The source of that event. */
  readonly source: string;
  /** Filled from that event. */
  readonly title: string;
  readonly description: string;
  readonly enrichment: JsonObject;
  /** Events that no earlier finding of the rule with this key counted. Zero only for an absence. */
  readonly eventCount: number;
  /** Between these lies all that fired, also what was counted before in another group. */
  readonly firstEventMs: number;
  readonly lastEventMs: number;
  /** The newest of those that are counted, newest first, at most RELATED_EVENTS_MAX. */
  readonly events: readonly EventMark[];
}

interface Span {
  readonly firstEventMs: number;
  readonly lastEventMs: number;
}

/** Whether a finding belongs to the attack that these events are of: it lies less than the period away from them. */
export function isSameAttack(known: Span, next: Span, periodMs: number): boolean {
  return next.firstEventMs - known.lastEventMs < periodMs && known.firstEventMs - next.lastEventMs < periodMs;
}

/** The newest of both, newest first. */
export function newestEvents<Mark extends AnyMark>(a: readonly Mark[], b: readonly Mark[]): Mark[] {
  return [...a, ...b].sort(newestFirst).slice(0, RELATED_EVENTS_MAX);
}

/** A simulation knows events by their numbers. */
interface AnyMark {
  readonly id: string | number;
  readonly timestampMs: number;
}

function newestFirst(a: AnyMark, b: AnyMark): number {
  return b.timestampMs - a.timestampMs || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}
