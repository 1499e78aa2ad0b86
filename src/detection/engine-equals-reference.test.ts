import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Event } from "../model/event.ts";
import type { Finding } from "../model/finding.ts";
import type { Rule } from "../model/rule.ts";
import { conditions, drafts } from "../store/arbitrary.ts";
import {
  denseEvents,
  denseRule,
  eventsOf,
  floodedSequence,
  longStream,
  PLAIN_RULE,
  rulesOf,
  START_MS,
} from "./arbitrary.ts";
import { Engine, type Outcome } from "./engine.ts";
import { Reference } from "./reference.ts";

const MINUTE_MS = 60_000;
const now = () => START_MS;

function engineWith(list: readonly Rule[]): Engine {
  const engine = new Engine({ now });
  for (const rule of list) engine.setRule(rule);
  return engine;
}

/** Cuts a list at these places, and gives the parts. */
function batches(events: readonly Event[], sizes: readonly number[]): Event[][] {
  const parts: Event[][] = [];
  for (let at = 0, i = 0; at < events.length; i++) {
    const size = sizes[i % sizes.length]!;
    parts.push(events.slice(at, at + size));
    at += size;
  }
  return parts;
}

const text = (value: unknown) => JSON.stringify(value);
const byText = (a: unknown, b: unknown) => (text(a) < text(b) ? -1 : 1);

/** What is compared: order among rules and within a batch has no meaning. */
function comparable({ findings, matches }: Pick<Outcome, "findings" | "matches">) {
  return {
    findings: findings.map((finding: Finding) => ({ ...finding })).sort(byText),
    matches: [...matches].sort(byText),
  };
}

const rules = rulesOf(conditions());
const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 });
const ranges = fc.constantFrom(5_000, 2 * MINUTE_MS, 30 * MINUTE_MS, 300 * MINUTE_MS);
const streams = ranges.chain((range) => eventsOf(drafts(START_MS, START_MS + range), 40));

test("the engine finds what the plain evaluator finds", () => {
  fc.assert(
    fc.property(rules, streams, sizes, (list, events, cuts) => {
      const engine = engineWith(list);
      const reference = new Reference(list);
      for (const batch of batches(events, cuts)) {
        expect(comparable(engine.process(batch))).toEqual(comparable(reference.process(batch, START_MS)));
      }
    }),
    { numRuns: 200 },
  );
});

test("windows and sequences count what the plain evaluator counts, in whatever order events come", () => {
  let waited = 0;
  fc.assert(
    fc.property(denseRule, denseEvents, sizes, (rule, events, cuts) => {
      const engine = engineWith([rule]);
      const reference = new Reference([rule]);
      let clockMs = START_MS;
      const tick = () => {
        const { findings } = engine.tick(clockMs);
        waited += findings.length;
        expect(findings.sort(byText)).toEqual(reference.tick(clockMs).sort(byText));
      };
      for (const batch of batches(events, cuts)) {
        expect(comparable(engine.process(batch))).toEqual(comparable(reference.process(batch, START_MS)));
        clockMs = Math.max(clockMs, ...batch.map(({ timestamp }) => Date.parse(timestamp)));
        tick();
      }
      clockMs += 240 * MINUTE_MS;
      tick();
    }),
    { numRuns: 1200 },
  );
  // Otherwise it would prove nothing about steps that must not happen in the end.
  expect(waited).toBeGreaterThan(20);
});

test("a flood of some steps of a sequence hides nothing", () => {
  let fired = 0;
  fc.assert(
    fc.property(floodedSequence, ({ rule, events }) => {
      const engine = engineWith([rule]);
      const reference = new Reference([rule]);
      for (const event of events) {
        const [found] = engine.process([event]).findings;
        const [wanted] = reference.process([event], START_MS).findings;
        expect({ event, eventCount: found?.eventCount }).toEqual({ event, eventCount: wanted?.eventCount });
        // Which events it is made of may differ after so many, and what is left for another.
        if (wanted) {
          fired++;
          break;
        }
      }
    }),
    { numRuns: 25 },
  );
  // Otherwise it would prove nothing.
  expect(fired).toBeGreaterThan(10);
});

test("what comes late to a group that has grown long counts as the plain evaluator counts it", () => {
  fc.assert(
    fc.property(longStream, fc.integer({ min: 1, max: 12 }), sizes, (events, count, cuts) => {
      const rule: Rule = { ...PLAIN_RULE, id: "rule_long", name: "test.long", window: "1m", threshold: { count } };
      const engine = engineWith([rule]);
      const reference = new Reference([rule]);
      for (const batch of batches(events, cuts)) {
        expect(comparable(engine.process(batch))).toEqual(comparable(reference.process(batch, START_MS)));
      }
    }),
    { numRuns: 15 },
  );
});

test("rules that come, change and go leave the others as they are", () => {
  fc.assert(
    fc.property(rules, rules, streams, (list, others, events) => {
      const engine = new Engine({ now });
      for (const rule of others) engine.setRule({ ...rule, id: `${rule.id}_gone` });
      for (const [i, rule] of list.entries()) engine.setRule({ ...(others[i] ?? rule), id: rule.id });
      for (const rule of list) engine.setRule(rule);
      for (const rule of others) engine.removeRule(`${rule.id}_gone`);
      const reference = new Reference(list);
      expect(comparable(engine.process(events))).toEqual(comparable(reference.process(events, START_MS)));
    }),
    { numRuns: 100 },
  );
});

test("an engine that is warmed with what came before goes on as if it had been there", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        rules,
        denseRule.map((rule) => [rule]),
      ),
      fc.oneof(streams, denseEvents),
      fc.nat(40),
      (list, events, cut) => {
        const before = events.slice(0, cut);
        const after = events.slice(cut);
        const whole = engineWith(list);
        whole.process(before);
        const warmed = engineWith(list);
        for (const { id } of list) warmed.warm(id, before);
        expect(comparable(warmed.process(after))).toEqual(comparable(whole.process(after)));
        const endMs = START_MS + 1000 * MINUTE_MS;
        expect(comparable(warmed.tick(endMs))).toEqual(comparable(whole.tick(endMs)));
      },
    ),
    { numRuns: 200 },
  );
});

test("a threshold's memory does not depend on the order in which it is filled", () => {
  // Where another path tells alerts apart, whichever event completes a match says what its events are counted under.
  const aligned = denseRule
    .filter(({ threshold }) => threshold !== null)
    .map((rule) => ({ ...rule, dedup: { ...rule.dedup, by: null } }));
  fc.assert(
    fc.property(aligned, denseEvents, fc.nat(30), fc.infiniteStream(fc.nat()), (rule, events, cut, random) => {
      const recent = events.filter(({ timestamp }) => Date.parse(timestamp) < START_MS + 60 * MINUTE_MS);
      const before = recent.slice(0, cut);
      const after = recent.slice(cut);
      const shuffled = before
        .map((event) => ({ event, rank: random.next().value! }))
        .sort((a, b) => a.rank - b.rank)
        .map(({ event }) => event);
      const [one, other] = [engineWith([rule]), engineWith([rule])];
      one.warm(rule.id, before);
      other.warm(rule.id, shuffled);
      expect(comparable(other.process(after))).toEqual(comparable(one.process(after)));
    }),
    { numRuns: 300 },
  );
});
