import { parseDuration } from "../../lib/duration.ts";
import { formatTime, parseTime } from "../../lib/time.ts";
import { classOfType, CUSTOM_SOURCE, type Event, type JsonObject, type JsonValue } from "../../model/event.ts";
import { ANY_SOURCE, type Rule } from "../../model/rule.ts";
import { parseOffset, type RuleTest } from "../../model/rule-test.ts";

/** Default start of the events of a test: a Monday at noon. */
const TEST_START = "2026-11-02T12:00:00Z";

/** The events of a test, one by one: repetitions of a large event do not fit in memory at once. */
export function* eventsOfTest(test: RuleTest, { source }: Pick<Rule, "source">): Generator<Event, void> {
  const startMs = parseTime(test.start ?? TEST_START)!;
  let made = 0;
  for (const event of test.events) {
    const at = event.at ?? "+0s";
    const firstMs = parseTime(at) ?? startMs + parseOffset(at)!;
    const everyMs = event.every === undefined ? 0 : parseDuration(event.every)!;
    for (let number = 1; number <= (event.repeat ?? 1); number++) {
      yield {
        // Arrival order is id order.
        id: `evt_${(++made).toString(16).padStart(32, "0")}`,
        type: event.type,
        source: event.source ?? (source === ANY_SOURCE ? CUSTOM_SOURCE : source),
        class: event.class ?? classOfType(event.type),
        severity: event.severity ?? "info",
        timestamp: formatTime(firstMs + (number - 1) * everyMs),
        raw: numbered(event.raw ?? {}, number) as JsonObject,
        enrichment: numbered(event.enrichment ?? {}, number) as JsonObject,
      };
    }
  }
}

export function waitOfTest({ wait }: RuleTest): number {
  return wait === undefined ? 0 : parseDuration(wait)!;
}

/** Replaces `{n}` in a repeated event by its number, counted from 1: a number if it stands alone, else part of the string. */
function numbered(value: JsonValue, number: number): JsonValue {
  if (value === "{n}") return number;
  if (typeof value === "string") return value.replaceAll("{n}", String(number));
  if (Array.isArray(value)) return value.map((item) => numbered(item, number));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, numbered(inner, number)]));
}
