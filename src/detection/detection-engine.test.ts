import { beforeEach, describe, expect, test } from "vitest";
import { idMaker } from "../lib/id.ts";
import { formatTime } from "../lib/time.ts";
import type { Event, JsonObject } from "../model/event.ts";
import type { Rule } from "../model/rule.ts";
import { PLAIN_RULE, START_MS } from "./testing/arbitrary-rules.ts";
import { DetectionEngine } from "./detection-engine.ts";
import { memoryMsOf } from "./windows/rule-tracker.ts";
import { identifyDefinition } from "../model/rule-definition.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let now = START_MS;
let engine: DetectionEngine;
let nextId: () => string;
beforeEach(() => {
  now = START_MS;
  engine = new DetectionEngine({ now: () => now });
  nextId = idMaker("evt_", () => START_MS);
});

const failure = (raw: JsonObject = {}, atMs = 0, type = "login_failure"): Event => ({
  id: nextId(),
  type,
  source: "custom",
  class: "security",
  severity: "low",
  timestamp: formatTime(START_MS + atMs),
  raw,
  enrichment: {},
});

const rule = (part: Partial<Rule>): Rule => ({
  ...PLAIN_RULE,
  id: "rule_1",
  name: "test.rule",
  conditions: [{ field: "type", equals: "login_failure" }],
  ...part,
});
const bruteForce = rule({
  title: "Failed logins from {{raw.src_ip}}",
  description: "Somebody guesses passwords",
  window: "5m",
  threshold: { count: 3, group_by: "raw.src_ip" },
});
const attempts = (count: number, fromMs = 0) =>
  Array.from({ length: count }, (_, i) => failure({ src_ip: "192.0.2.7" }, fromMs + i * 1000));

test("a finding has the title, description and events for a person", () => {
  engine.setRule(bruteForce);
  const events = attempts(3);
  const { findings, matches } = engine.process(events);
  expect(findings).toEqual([
    {
      rule: {
        id: "rule_1",
        name: "test.rule",
        description: "Somebody guesses passwords",
        tags: ["test"],
        channels: [],
        definition: identifyDefinition(bruteForce),
      },
      severity: "high",
      dedupKey: '["192.0.2.7"]',
      dedupMs: HOUR_MS,
      group: { field: "raw.src_ip", value: "192.0.2.7" },
      eventId: events[2]!.id,
      source: "custom",
      title: "Failed logins from 192.0.2.7",
      description: "Somebody guesses passwords",
      enrichment: {},
      eventCount: 3,
      firstEventMs: START_MS,
      lastEventMs: START_MS + 2000,
      events: events.toReversed().map(({ id }, i) => ({ id, timestampMs: START_MS + 2000 - i * 1000 })),
    },
  ]);
  expect(matches).toEqual([{ ruleId: "rule_1", timesMs: [START_MS, START_MS + 1000, START_MS + 2000] }]);
});

test("every further match of the same window fires and counts only itself", () => {
  engine.setRule(bruteForce);
  engine.process(attempts(3));
  expect(engine.process(attempts(2, 10_000)).findings.map(({ eventCount }) => eventCount)).toEqual([2]);
});

test("a rule that matches everything yields one finding per batch, regardless of its size", () => {
  engine.setRule(rule({ conditions: [{ field: "raw", exists: true }] }));
  const { findings } = engine.process(Array.from({ length: 20_000 }, (_, i) => failure({}, i)));
  expect(findings).toHaveLength(1);
  expect(findings[0]).toMatchObject({ eventCount: 20_000, firstEventMs: START_MS, lastEventMs: START_MS + 19_999 });
  expect(findings[0]!.events.map(({ timestampMs }) => timestampMs - START_MS)).toEqual(
    Array.from({ length: 50 }, (_, i) => 19_999 - i),
  );
});

test("matches further apart than the deduplication period are separate findings", () => {
  engine.setRule(rule({ dedup: { period: "1m", by: null } }));
  const { findings } = engine.process([failure({}, 0), failure({}, MINUTE_MS - 1), failure({}, 3 * MINUTE_MS)]);
  expect(findings.map(({ eventCount }) => eventCount)).toEqual([2, 1]);
});

test("an event without the group value matches but does not count", () => {
  engine.setRule(bruteForce);
  const { findings, matches } = engine.process(Array.from({ length: 5 }, () => failure({ user: "root" })));
  expect(findings).toEqual([]);
  expect(matches[0]!.timesMs).toHaveLength(5);
});

test("a rule processes only events after its creation, with an empty memory", () => {
  const before = attempts(2);
  engine.setRule({ ...bruteForce, activeAfter: before[1]!.id });
  const timesMs = [START_MS + 10_000, START_MS + 11_000];
  expect(engine.process([...before, ...attempts(2, 10_000)])).toMatchObject({ findings: [], matches: [{ timesMs }] });
  engine.setRule({ ...bruteForce, severity: "low" });
  expect(engine.process(attempts(2, 20_000)).findings).toEqual([]);
});

test("an edit that does not affect counting keeps the memory, and one that does clears it", () => {
  engine.setRule(bruteForce);
  engine.process(attempts(2));
  engine.setRule({ ...bruteForce, severity: "low" });
  expect(engine.process(attempts(1, 10_000)).findings).toMatchObject([{ eventCount: 3, severity: "low" }]);
  engine.setRule({ ...bruteForce, threshold: { count: 4, group_by: "raw.src_ip" } });
  expect(engine.process(attempts(3, 20_000)).findings).toEqual([]);
  expect(engine.metrics()).toMatchObject({ rules: 1, groups: 1 });
});

test("warm-up applies the exceptions that were active when an event arrived", () => {
  const from = (user: string) => failure({ src_ip: "192.0.2.7", user });
  const events = [from("ann"), from("ann"), from("ben"), from("ben"), from("eve"), from("eve")];
  const exception = (user: string) => ({
    id: `exc_${user}`,
    conditions: [{ field: "raw.user", equals: user }],
    reason: "known",
    author: "test",
    createdAt: 0,
    expiresAt: null,
  });
  engine.setRule({
    ...bruteForce,
    threshold: { count: 5, group_by: "raw.src_ip" },
    exceptions: [
      { ...exception("ann"), activeAfter: events[0]!.id },
      { ...exception("eve"), expiresAt: START_MS + 1 },
    ],
    endedExceptions: [{ ...exception("ben"), upTo: events[2]!.id }],
  });
  now = START_MS + HOUR_MS;
  // One of ann, one of ben.
  engine.warm(bruteForce.id, events);
  expect(engine.process([from("dan"), from("dan")]).findings).toEqual([]);
  expect(engine.process([from("dan")]).findings).toMatchObject([{ eventCount: 5 }]);
});

test("a disabled or removed rule stops at once", () => {
  engine.setRule(rule({}));
  engine.setRule(rule({ id: "rule_2" }));
  engine.setRule(rule({ enabled: false }));
  engine.removeRule("rule_2");
  engine.removeRule("rule_3");
  expect(engine.process(attempts(1))).toEqual({ findings: [], matches: [], seen: [], undecided: [] });
  expect(engine.metrics()).toMatchObject({ rules: 0, groups: 0, rules_unguarded: 0 });
});

test("an exception stops a match until it expires", () => {
  const exception = {
    id: "exc_1",
    conditions: [{ field: "raw.user", equals: "scanner" }],
    reason: "ours",
    author: "test",
    createdAt: 0,
    expiresAt: START_MS + 1000,
  };
  engine.setRule(rule({ exceptions: [exception] }));
  expect(engine.process([failure({ user: "scanner" })]).matches).toEqual([]);
  expect(engine.process([failure({ user: "root" })]).matches).toHaveLength(1);
  now = START_MS + 1000;
  expect(engine.process([failure({ user: "scanner" })]).matches).toHaveLength(1);
});

test("events submitted hours late fire as usual, also between newer events", () => {
  engine.setRule(bruteForce);
  const old = () => failure({ src_ip: "192.0.2.7" }, -5 * HOUR_MS);
  engine.process(attempts(1));
  expect(engine.process([old(), old(), old()]).findings).toMatchObject([{ eventCount: 3 }]);
  engine.removeRule(bruteForce.id);
  engine.setRule(bruteForce);
  engine.process([old(), old(), ...attempts(1)]);
  expect(engine.process([old()]).findings).toMatchObject([{ eventCount: 3 }]);
});

test("an event that is too late is counted as late and does not join newer ones", () => {
  engine.setRule(bruteForce);
  engine.process(attempts(2));
  engine.process([failure({ src_ip: "192.0.2.7" }, -8 * 24 * HOUR_MS)]);
  expect(engine.metrics()["late"]).toBe(1);
  expect(engine.process(attempts(1, 10_000)).findings).toMatchObject([{ eventCount: 3 }]);
});

test("an event with more values than the limit is counted as cut, once per rule", () => {
  const many = (count: number) => Array.from({ length: count }, (_, n) => `192.0.2.${n}`);
  engine.setRule(bruteForce);
  engine.process([failure({ src_ip: many(16) })]);
  expect(engine.metrics()["values_cut"]).toBe(0);
  engine.process([failure({ src_ip: many(17) })]);
  const distinct = { ...bruteForce.threshold!, group_by: ["raw.user", "raw.host"], distinct: "raw.src_ip" };
  engine.setRule(rule({ ...bruteForce, id: "rule_distinct", threshold: distinct }));
  engine.process([failure({ src_ip: many(17), user: "root", host: "a" })]);
  engine.process([failure({ src_ip: "192.0.2.1", user: many(5), host: many(4) })]);
  expect(engine.metrics()["values_cut"]).toBe(4);
  engine.removeRule("rule_distinct");
  expect(engine.metrics()["values_cut"]).toBe(4);
});

test("steps with the group value under different paths make one finding", () => {
  engine.setRule(
    rule({
      conditions: [],
      window: "10m",
      groupBy: "raw.zone",
      sequence: [
        {
          name: "denied",
          conditions: [{ field: "type", equals: "access_denied" }],
          count: 1,
          group_by: "raw.door_zone",
        },
        { name: "person", conditions: [{ field: "type", equals: "person" }], count: 1 },
        {
          name: "device",
          conditions: [{ field: "type", equals: "new_device" }],
          count: 1,
          group_by: "raw.switch_zone",
        },
      ],
    }),
  );
  const denied = failure({ door_zone: "lab" }, 0, "access_denied");
  const person = failure({ zone: "lab" }, MINUTE_MS, "person");
  const device = failure({ switch_zone: "lab" }, 2 * MINUTE_MS, "new_device");
  const elsewhere = failure({ switch_zone: "hall" }, 2 * MINUTE_MS, "new_device");
  const { findings, matches } = engine.process([device, elsewhere, person, denied]);
  expect(findings).toMatchObject([{ eventCount: 3, dedupKey: '["lab"]', group: { field: "raw.zone", value: "lab" } }]);
  expect(matches.reduce((sum, { timesMs }) => sum + timesMs.length, 0)).toBe(4);
});

describe("an event of several groups with one deduplication key counts once", () => {
  const shared = (count: number) =>
    rule({ window: "5m", threshold: { count, group_by: "raw.arr" }, dedup: { period: "1h", by: "raw.h" } });
  const first = () => failure({ arr: ["x", "y"], h: 1 });
  const second = () => failure({ arr: ["x", "y", "z"], h: 1 }, 1000);
  const countsOf = (batches: readonly (readonly Event[])[]) =>
    batches.map((batch) => engine.process(batch).findings.map(({ eventCount, events }) => [eventCount, events.length]));

  test.each([
    ["one by one", 1, [[[1, 1]], [[1, 1]]]],
    ["one by one, when two are enough", 2, [[], [[2, 2]]]],
  ])("%s", (_, count, wanted) => {
    engine.setRule(shared(count));
    expect(countsOf([[first()], [second()]])).toEqual(wanted);
  });

  test.each([1, 2])("in one batch, with a threshold of %s", (count) => {
    engine.setRule(shared(count));
    expect(countsOf([[first(), second()]])).toEqual([[[2, 2]]]);
  });

  test("if another of its groups fires later, before and after a start", () => {
    engine.setRule(shared(2));
    const events = [first(), failure({ arr: "x", h: 1 }, 1000), failure({ arr: "y", h: 1 }, 2000)] as const;
    expect(countsOf(events.map((event) => [event]))).toEqual([[], [[2, 2]], [[1, 1]]]);
    engine = new DetectionEngine({ now: () => now });
    engine.setRule(shared(2));
    engine.warm("rule_1", events.slice(0, 2));
    expect(countsOf([[events[2]]])).toEqual([[[1, 1]]]);
  });

  test("and more of them than an alert shows", () => {
    engine.setRule(shared(200));
    const events = Array.from({ length: 200 }, (_, i) => failure({ arr: ["x", "y"], h: 1 }, i));
    expect(countsOf([events])).toEqual([[[200, 50]]]);
  });

  test("in sequences that share it", () => {
    const leads = { conditions: [{ field: "type", equals: "login_failure" }], count: 1 };
    const sequence = [
      { name: "to", ...leads },
      { name: "from", ...leads, group_by: "raw.src" },
    ];
    engine.setRule(rule({ window: "5m", groupBy: "raw.dst", sequence, dedup: { period: "1h", by: "type" } }));
    const events = ["AB", "BC", "CD"].map(([src, dst], i) => failure({ src: src!, dst: dst! }, i * 1000));
    const { findings } = engine.process(events);
    expect(findings).toMatchObject([{ eventCount: 3, events: events.toReversed().map(({ id }) => ({ id })) }]);
  });

  test("but in each alert that it belongs to", () => {
    engine.setRule(shared(2));
    const events = [first(), failure({ arr: "x", h: 1 }, 1000), failure({ arr: "y", h: 2 }, 2000)];
    expect(countsOf([events])).toEqual([
      [
        [2, 2],
        [2, 2],
      ],
    ]);
  });
});

const silence = rule({ absence: "5m", groupBy: "raw.camera", title: "{{raw.camera}} is silent" });

test("an absence is reported once, until the group is seen again", () => {
  engine.setRule(silence);
  expect(engine.tick(now + HOUR_MS).findings).toEqual([]);
  const { findings, seen } = engine.process([failure({ camera: "gate" }, -HOUR_MS)]);
  expect(findings).toEqual([]);
  const last = {
    type: "login_failure",
    source: "custom",
    class: "security",
    severity: "low",
    timestamp: formatTime(START_MS - HOUR_MS),
  };
  expect(seen).toEqual([{ ruleId: "rule_1", group: expect.any(String), atMs: START_MS, last }]);
  expect(engine.tick(START_MS + 5 * MINUTE_MS).findings).toEqual([]);
  const outcome = engine.tick(START_MS + 5 * MINUTE_MS + 1);
  expect(outcome.findings).toMatchObject([
    {
      title: "gate is silent",
      source: "custom",
      eventCount: 0,
      firstEventMs: START_MS - HOUR_MS,
      lastEventMs: START_MS - HOUR_MS,
      events: [],
    },
  ]);
  expect(outcome.seen).toEqual([{ ...seen[0], atMs: 0, last: null }]);
  expect(engine.tick(START_MS + HOUR_MS).findings).toEqual([]);
  now = START_MS + 2 * HOUR_MS;
  engine.process([failure({ camera: "gate" })]);
  expect(engine.tick(now + 5 * MINUTE_MS + 1).findings).toHaveLength(1);
});

test("downtime does not count as absence, and a reported absence is not reported again", () => {
  engine.setRule(silence);
  const { seen } = engine.process([failure({ camera: "gate" }), failure({ camera: "hall" })]);
  const restarted = new DetectionEngine({ now: () => now });
  restarted.setRule(silence);
  const startMs = START_MS + HOUR_MS;
  // Two minutes of the absence precede the first outage, one lies between the two.
  const outages = [
    { fromMs: START_MS - HOUR_MS, toMs: START_MS - MINUTE_MS },
    { fromMs: START_MS + 2 * MINUTE_MS, toMs: START_MS + 4 * MINUTE_MS },
    { fromMs: START_MS + 5 * MINUTE_MS, toMs: startMs },
  ];
  restarted.warmAbsence([seen[0]!, { ...seen[1]!, atMs: 0 }, { ...seen[0]!, ruleId: "rule_gone" }], outages);
  expect(restarted.tick(startMs + 2 * MINUTE_MS).findings).toEqual([]);
  expect(restarted.tick(startMs + 2 * MINUTE_MS + 1).findings).toMatchObject([
    { group: { value: "gate" }, source: "custom", lastEventMs: START_MS },
  ]);
});

test("an absence has the type and source of the last event", () => {
  engine.setRule({ ...silence, title: "{{raw.camera}}: no {{type}} of {{source}} since {{timestamp}}, {{raw.zone}}" });
  engine.process([failure({ camera: "gate", zone: "north" })]);
  expect(engine.tick(START_MS + 6 * MINUTE_MS).findings).toMatchObject([
    { title: "gate: no login_failure of custom since 2026-11-15T12:00:00.000Z, (none)" },
  ]);
});

test("an edit that keeps the absence continues the wait; one of its groups restarts it", () => {
  engine.setRule(silence);
  const { seen } = engine.process([failure({ camera: "gate" })]);
  engine.setRule({ ...silence, severity: "low" });
  expect(engine.metrics()["absences_waited_for"]).toBe(1);
  engine.setRule({ ...silence, groupBy: "raw.zone" });
  engine.warmAbsence(seen, []);
  expect(engine.metrics()["absences_waited_for"]).toBe(0);
});

test("a clock that is set back does not prolong the wait", () => {
  engine.setRule(silence);
  engine.process([failure({ camera: "gate" })]);
  now = START_MS - HOUR_MS;
  expect(engine.tick(now).findings).toEqual([]);
  expect(engine.tick(now + 5 * MINUTE_MS + 1).findings).toHaveLength(1);
});

test("only rules with memory need warm-up", () => {
  expect(memoryMsOf(rule({}))).toBe(0);
  expect(memoryMsOf(bruteForce)).toBe(HOUR_MS + 10 * MINUTE_MS);
  expect(memoryMsOf(silence)).toBe(0);
});
