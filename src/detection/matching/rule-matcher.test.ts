import * as fc from "fast-check";
import { expect, test } from "vitest";
import { compileCondition, type Condition } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import { conditions, drafts } from "../../store/testing/arbitrary-events.ts";
import { eventsOf, START_MS } from "../testing/arbitrary-rules.ts";
import { EventFacts } from "./event-facts.ts";
import { RuleMatcher } from "./rule-matcher.ts";
import { RulePatterns } from "./rule-patterns.ts";

const events = eventsOf(drafts(START_MS, START_MS + 1000), 12);
const anySource = "any";

function open() {
  const facts = new EventFacts();
  const patterns = new RulePatterns();
  const matcher = new RuleMatcher<number>(facts, patterns);
  const match = (event: Event) => {
    facts.setEvent(event);
    patterns.startEvent();
    return matcher.match().toSorted((a, b) => a - b);
  };
  return { matcher, match };
}

/** The numbers of the conditions that hold, evaluated one by one. */
function holding(list: readonly Condition[], event: Event): number[] {
  return list.flatMap((condition, i) => (compileCondition(condition)(event) ? [i] : []));
}

test("finds exactly the conditions that hold", () => {
  fc.assert(
    fc.property(fc.array(conditions(), { maxLength: 20 }), events, (list, stream) => {
      const { matcher, match } = open();
      for (const [i, condition] of list.entries()) matcher.add(`${i}`, anySource, condition, i);
      for (const event of stream) expect(match(event)).toEqual(holding(list, event));
    }),
    { numRuns: 150 },
  );
});

test("still finds them after some were removed and others took their ids", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(conditions(), conditions(), fc.nat(2))), events, (list, stream) => {
      const { matcher, match } = open();
      for (const [i, [first]] of list.entries()) matcher.add(`${i}`, anySource, first, i);
      for (const [i, [, second, fate]] of list.entries()) {
        if (fate > 0) matcher.remove(`${i}`);
        if (fate > 1) matcher.add(`${i}`, anySource, second, i);
      }
      const kept = list.map(([first, second, fate]): Condition =>
        fate === 0 ? first : fate === 1 ? { kind: "any", of: [] } : second,
      );
      for (const event of stream) expect(match(event)).toEqual(holding(kept, event));
    }),
    { numRuns: 100 },
  );
});

test("still finds them after guards were chosen from the traffic sample", () => {
  const EVENTS = 4000;
  fc.assert(
    fc.property(fc.array(conditions(), { minLength: 1, maxLength: 20 }), events, (list, stream) => {
      const { matcher, match } = open();
      for (const [i, condition] of list.entries()) matcher.add(`${i}`, anySource, condition, i);
      for (let i = 0; i < EVENTS; i++) match(stream[i % stream.length]!);
      for (const event of stream) expect(match(event)).toEqual(holding(list, event));
    }),
    { numRuns: 10 },
  );
});

test("a rule is evaluated only for events of its source that satisfy its guard", () => {
  const { matcher, match } = open();
  const contains = (value: string): Condition => ({
    kind: "test",
    field: "raw.command",
    operator: "contains",
    value,
    ignoreCase: true,
  });
  matcher.add("0", "custom", { kind: "all", of: [contains("mimikatz"), { kind: "not", of: contains("test") }] }, 0);
  matcher.add("1", "platform_network", contains("lsass"), 1);
  const event = (source: string, command: string) =>
    ({ source, type: "process", raw: { command }, enrichment: {} }) as unknown as Event;
  expect(match(event("custom", "notepad.exe"))).toEqual([]);
  expect(match(event("custom", "dump LSASS"))).toEqual([]);
  expect(matcher.metrics()["rules_asked"]).toBe(0);
  expect(match(event("custom", "MimiKatz"))).toEqual([0]);
  expect(match(event("custom", "MimiKatz test"))).toEqual([]);
  expect(match(event("platform_network", "dump LSASS"))).toEqual([1]);
  expect(matcher.metrics()["rules_asked"]).toBe(3);
});
