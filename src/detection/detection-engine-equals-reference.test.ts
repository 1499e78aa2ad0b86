import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { Event } from "../model/event.ts";
import type { Finding } from "../model/finding.ts";
import type { Rule } from "../model/rule.ts";
import { conditions, drafts } from "../store/testing/arbitrary-events.ts";
import {
  denseEvents,
  denseRule,
  eventsOf,
  floodedSequence,
  longStream,
  PLAIN_RULE,
  rulesOf,
  START_MS,
} from "./testing/arbitrary-rules.ts";
import { DetectionEngine, type DetectionResult } from "./detection-engine.ts";
import { Reference } from "./testing/reference-engine.ts";

const MINUTE_MS = 60_000;
const now = () => START_MS;

function engineWith(list: readonly Rule[]): DetectionEngine {
  const engine = new DetectionEngine({ now });
  for (const rule of list) engine.setRule(rule);
  return engine;
}

/** Splits a list at these indices. */
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

/** Normalises results: the order among rules and within a batch is irrelevant. */
function comparable({ findings, matches }: Pick<DetectionResult, "findings" | "matches">) {
  return {
    findings: findings.map((finding: Finding) => ({ ...finding })).sort(byText),
    matches: [...matches].sort(byText),
  };
}

const rules = rulesOf(conditions());
const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 4 });
const ranges = fc.constantFrom(5_000, 2 * MINUTE_MS, 30 * MINUTE_MS, 300 * MINUTE_MS);
const streams = ranges.chain((range) => eventsOf(drafts(START_MS, START_MS + range), 40));

test("the engine finds what the reference engine finds", () => {
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

test("windows and sequences count what the reference engine counts, regardless of the order of events", () => {
  let waited = 0;
  let chained = 0;
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
        const outcome = engine.process(batch);
        if (rule.parts) chained += outcome.findings.length;
        expect(comparable(outcome)).toEqual(comparable(reference.process(batch, START_MS)));
        clockMs = Math.max(clockMs, ...batch.map(({ timestamp }) => Date.parse(timestamp)));
        tick();
      }
      clockMs += 240 * MINUTE_MS;
      tick();
    }),
    { numRuns: 1200 },
  );
  // Absent last steps and parts must be covered.
  expect(waited).toBeGreaterThan(20);
  expect(chained).toBeGreaterThan(50);
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
        // After so many events, their choice and the remainder may differ.
        if (wanted) {
          fired++;
          break;
        }
      }
    }),
    { numRuns: 25 },
  );
  // The test must not pass vacuously.
  expect(fired).toBeGreaterThan(10);
});

test("late events of a long group count as in the reference engine", () => {
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

test("adding, changing and removing rules does not affect the others", () => {
  fc.assert(
    fc.property(rules, rules, streams, (list, others, events) => {
      const engine = new DetectionEngine({ now });
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

test("a warmed-up engine continues as if it had processed the earlier events", () => {
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

test("the memory of a threshold does not depend on the order of warm-up", () => {
  // With dedup.by, the completing event determines the key that the events count under.
  const aligned = denseRule
    // The events of an occurrence depend on the order of arrival, like those of a sequence.
    .filter(({ threshold, parts }) => threshold !== null && parts === undefined)
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
