import { describe, expect, test } from "vitest";
import type { AlertDetail, Event } from "../../../data/client.ts";
import { alertLike } from "../alert.fixture.ts";
import { fieldWords, whyOf } from "./why.ts";

const event = (id: string, second: number): Event => ({
  id,
  type: "door_held",
  source: "platform_access",
  class: "security",
  severity: "low",
  timestamp: new Date(Date.UTC(2026, 10, 15, 8, 0, second)).toISOString(),
  raw: {},
  enrichment: {},
});
type Match = NonNullable<AlertDetail["match"]>;
const STAGE: Match = {
  rule_as: "stored",
  kind: "single",
  window: null,
  group_by: [],
  threshold: null,
  order: null,
  steps_min: null,
  steps: [],
  absence: null,
  parts: [],
  events: [],
};
const explained = (id: string, step: number | null, name: string | null = null): Match["events"][number] => ({
  event_id: id,
  part: null,
  step: name,
  step_number: step,
  fields: [{ field: "type", operator: "equals", value: "door_held", expected: "door_held" }],
  complete: true,
});
const step = (number: number, name: string, absent = false) => ({ number, name, count: 1, absent, part: null });

function detail(events: Event[], match: Partial<Match> | null, differences: Partial<AlertDetail> = {}): AlertDetail {
  return {
    ...alertLike({ event_count: events.length }),
    actions_taken: [],
    acknowledged_at: null,
    resolved_at: null,
    rule: { id: "rule_1", name: "r", description: "", tags: [] },
    related_events: events.toReversed(),
    related_events_total: events.length,
    timeline: [],
    match: match && { ...STAGE, ...match },
    ...differences,
  };
}

describe("a sequence", () => {
  const events = [event("1", 0), event("2", 5), event("3", 40)];
  const match: Partial<Match> = {
    kind: "sequence",
    window: "10m",
    order: "in_order",
    steps: [step(1, "held"), step(2, "seen")],
    events: [explained("3", 2, "seen"), explained("2", 1, "held"), explained("1", 1, "held")],
  };

  test("shows each step with its first event, and the time between", () => {
    const { steps, closing } = whyOf(detail(events, match));
    expect(steps.map(({ number, name, event: { id }, more, laterMs }) => [number, name, id, more, laterMs])).toEqual([
      [1, "held", "1", 1, null],
      [2, "seen", "3", 0, 40_000],
    ]);
    expect(closing).toBe("These steps in this order within 10 minutes.");
  });

  test("says how many steps are enough, and which must not happen", () => {
    const steps = [step(1, "a"), step(2, "b"), step(3, "c", true)];
    const { closing } = whyOf(detail(events, { ...match, order: "any", steps_min: 2, steps }));
    expect(closing).toBe("At least 2 of 3 steps in any order within 10 minutes, without “c”.");
  });
});

test("a threshold says what was counted, and the newest events", () => {
  const events = [event("1", 0), event("2", 1), event("3", 2), event("4", 3)];
  const threshold = {
    count: 3,
    distinct: [],
    sum: null,
    avg: null,
    percentile: null,
    gte: null,
    gt: null,
    lte: null,
    lt: null,
  };
  const match = {
    kind: "threshold" as const,
    window: "5m",
    group_by: ["raw.door"],
    threshold,
    events: [explained("4", null)],
  };
  const { lead, steps } = whyOf(detail(events, match, { event_count: 180 }));
  expect(lead).toEqual({
    figure: "180",
    words: "matching events with door = Loading dock. The rule fires at 3 within 5 minutes.",
  });
  expect(steps.map(({ event: { id }, fields }) => [id, fields.length])).toEqual([
    ["2", 0],
    ["3", 0],
    ["4", 1],
  ]);
});

test("an absence says how long", () => {
  expect(whyOf(detail([], { kind: "absence", absence: "15m" })).closing).toContain("15m");
});

test("an alert whose rule is gone still shows its events", () => {
  expect(whyOf(detail([event("1", 0)], null)).steps).toHaveLength(1);
});

test.each([
  [{ field: "type", operator: "equals", value: "a", expected: "a" }, "type = a"],
  [{ field: "raw.port", operator: "in", value: 22, expected: 22 }, "port = 22"],
  [{ field: "raw.bytes", operator: "gte", value: 9, expected: 5 }, "bytes ≥ 5 (was 9)"],
  [{ field: "raw.user", operator: "exists", value: null, expected: false }, "user is missing"],
  [
    { field: "raw.user", operator: "contains", value: "xadminx", expected: "admin" },
    "user contains admin (was xadminx)",
  ],
  [{ field: "raw.ip", operator: "not_in", value: "1", expected: null }, "ip ≠ any of the list (was 1)"],
] as const)("%j is read as %s", (field, words) => expect(fieldWords(field)).toBe(words));
