import { parseDuration } from "../lib/duration.ts";
import { DAY_MS } from "../lib/time.ts";
import type { EventClass, JsonObject, Severity } from "./event.ts";

// The tests of a rule: events, and the alerts that they must raise. Rule files, the API and the store use this shape. The schema
// is in rule-test-schema.ts, so that the thread that runs tests need not load zod.

export const TESTS_MAX = 100;
/** Events of one test, with repetitions. */
export const TEST_EVENTS_MAX = 10_000;
/** Longest offset, repetition and wait of a test. */
export const TEST_SPAN_MS_MAX = 366 * DAY_MS;

export interface RuleTestEvent {
  readonly type: string;
  /** Default: that of the rule, or custom. */
  readonly source?: string | undefined;
  readonly severity?: Severity | undefined;
  readonly class?: EventClass | undefined;
  /** An offset from the start such as `+90s`, or a time. */
  readonly at?: string | undefined;
  readonly raw?: JsonObject | undefined;
  readonly enrichment?: JsonObject | undefined;
  readonly repeat?: number | undefined;
  readonly every?: string | undefined;
}

/** A test as it was written. */
export interface RuleTest {
  readonly name: string;
  readonly start?: string | undefined;
  /** In order of arrival. */
  readonly events: readonly RuleTestEvent[];
  /** Time without events after the last one. */
  readonly wait?: string | undefined;
  readonly alerts: number;
  /** Events of all alerts together. */
  readonly event_count?: number | undefined;
  /** The title of the first alert. */
  readonly title?: string | undefined;
}

/** The offset of `+90s` in milliseconds; undefined for anything else. */
export function parseOffset(text: string): number | undefined {
  if (text === "+0s") return 0;
  return text.startsWith("+") ? parseDuration(text.slice(1)) : undefined;
}
