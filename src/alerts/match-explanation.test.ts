import { expect, test } from "vitest";
import type { Event } from "../model/event.ts";
import type { RuleDefinition } from "../model/rule-definition.ts";
import { explainMatch } from "./match-explanation.ts";

const definition: RuleDefinition = {
  source: "custom",
  conditions: [{ field: "raw.a", equals: 1 }],
  window: null,
  threshold: null,
  sequence: null,
  sequenceOrder: "in_order",
  groupBy: null,
  absence: null,
};
const event = (id: string, more: Partial<Event> = {}) => {
  const whole: Event = {
    id,
    type: "t",
    source: "custom",
    class: "security",
    severity: "low",
    timestamp: "2026-11-15T08:30:00.000Z",
    raw: { a: 1 },
    enrichment: {},
    ...more,
  };
  return { id, text: JSON.stringify(whole) };
};

test("events that the definition does not match have no fields", async () => {
  const explained = await explainMatch(definition, [event("evt_1", { source: "other" }), event("evt_2", { raw: {} })]);
  expect(explained.map(({ fields, isComplete }) => [fields, isComplete])).toEqual([
    [[], true],
    [[], true],
  ]);
});

test("an explanation that takes too long says so", async () => {
  for (const budgetMs of [0, Number.MIN_VALUE]) {
    const [explained] = await explainMatch(definition, [event("evt_1")], budgetMs);
    expect(explained).toMatchObject({ eventId: "evt_1", fields: [], isComplete: false });
  }
});
