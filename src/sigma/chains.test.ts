import { describe, expect, test } from "vitest";
import { START_MS } from "../detection/testing/arbitrary-rules.ts";
import { DetectionEngine } from "../detection/detection-engine.ts";
import { Playback } from "../detection/simulation/playback.ts";
import { toSimulatedRule } from "../detection/simulation/simulation.ts";
import { idMaker } from "../lib/id.ts";
import { formatTime } from "../lib/time.ts";
import { compileCondition } from "../model/condition.ts";
import type { Event, JsonObject } from "../model/event.ts";
import { fieldReader, OBJECT } from "../model/field.ts";
import { inputConditions, ruleCondition } from "../model/rule.ts";
import { importText } from "./testing/imported.ts";
import type { SigmaOutcome } from "./import.ts";

// Correlations of correlations, and aliases, in the engine and in a simulation on stored values.

const EVENTS = `
title: Failed
name: failed
logsource: { category: login }
detection: { s: { result: fail }, condition: s }
---
title: Succeeded
name: succeeded
logsource: { category: login }
detection: { s: { result: ok }, condition: s }
---
title: Changed
name: changed
logsource: { category: config }
detection: { s: { what: rights }, condition: s }
`;

/** The outcome of the last of these correlations, which are named a, b and so on. */
function importLast(...correlations: string[]): SigmaOutcome {
  const documents = correlations.map(
    (correlation, i) => `title: ${"abcd"[i]}\nname: ${"abcd"[i]}\nlevel: high\ncorrelation: ${correlation}`,
  );
  return importText(`${EVENTS}---${BOTH}---\n${documents.join("\n---\n")}`).at(-1)!;
}

/** Seconds, and the event: `fail ann web` is a failed login of ann at web. */
type Seen = readonly [seconds: number, text: string];

const BOTH = `
title: Any login
name: login
logsource: { category: login }
detection: { s: { host: "*" }, condition: s }
`;

const TYPES: Readonly<Record<string, string>> = { fail: "login", ok: "login", rights: "config" };

function eventsOf(seen: readonly Seen[]): Event[] {
  const nextId = idMaker("evt_", () => START_MS);
  return seen.map(([seconds, text]): Event => {
    const [word, user, host, from] = text.split(" ") as [string, ...string[]];
    const raw: JsonObject =
      word === "rights" ? { what: word, actor: user!, host: host! } : { result: word, user: user!, host: host! };
    return {
      id: nextId(),
      type: TYPES[word]!,
      source: "custom",
      class: "security",
      severity: "info",
      timestamp: formatTime(START_MS + seconds * 1000),
      raw: { ...raw, ...(from !== undefined && { from }) },
      enrichment: {},
    };
  });
}

/** Event counts of the engine's alerts, and the number of alerts of a simulation. */
function run(outcome: SigmaOutcome, seen: readonly Seen[]): { live: number[]; simulated: number } {
  if (!outcome.rule) throw new Error(JSON.stringify(outcome.reasons));
  const rule = toSimulatedRule({ ...outcome.rule, dedup: { period: "1s" } }, START_MS);
  const events = eventsOf(seen);
  const engine = new DetectionEngine({ now: () => START_MS });
  engine.setRule(rule);
  const endMs = START_MS + 1e8;
  const live = [...events.flatMap((event) => engine.process([event]).findings), ...engine.tick(endMs).findings];
  const playback = new Playback(rule, undefined);
  const matching = events.filter(compileCondition(ruleCondition(rule, START_MS)));
  const tests = inputConditions(rule).map(compileCondition);
  playback.take(
    matching.map((event, key) => ({
      key,
      timestampMs: Date.parse(event.timestamp),
      values: playback.fields.map((path) => fieldReader(path)(event).filter((value) => value !== OBJECT)),
      steps: tests.reduce((bits, holds, i) => (holds(event) ? bits | (1 << i) : bits), 0),
    })),
  );
  playback.end(endMs);
  return { live: live.map(({ eventCount }) => eventCount), simulated: playback.alerts };
}

const times = (count: number, text: (n: number) => string, from = 0): Seen[] =>
  Array.from({ length: count }, (_, n) => [from + n, text(n)] as const);

describe("a chain", () => {
  const many = "{ type: event_count, rules: [failed], group-by: [user], timespan: 1m, condition: { gte: 5 } }";
  const spray =
    "{ type: value_count, rules: [failed], group-by: [host], timespan: 1m, condition: { field: user, gte: 3 } }";

  test("many failed logins followed by a success, each with its own timespan", () => {
    const rule = importLast(many, "{ type: temporal_ordered, rules: [a, succeeded], group-by: [user], timespan: 1h }");
    const failures = times(5, () => "fail ann web");
    expect(run(rule, [...failures, [1800, "ok ann web"]])).toEqual({ live: [6], simulated: 1 });
    expect(run(rule, [...failures, [1800, "ok ben web"]])).toEqual({ live: [], simulated: 0 });
    expect(run(rule, [[0, "ok ann web"], ...times(5, () => "fail ann web", 10)])).toEqual({ live: [], simulated: 0 });
    // Five failures, but not within their minute.
    const slow = failures.map(([second, text]) => [second * 60, text] as const);
    expect(run(rule, [...slow, [1800, "ok ann web"]])).toEqual({ live: [], simulated: 0 });
    // The failures go on for so long that only the last ones lie within an hour of the success.
    const long = Array.from({ length: 400 }, (_, n) => [n * 10, "fail ann web"] as const);
    expect(run(rule, [...long, [7400, "ok ann web"]]).live).toHaveLength(1);
  });

  test("a temporal correlation over a value_count", () => {
    const rule = importLast(spray, "{ type: temporal, rules: [a, changed], group-by: [host], timespan: 10m }");
    const sprayed = times(3, (n) => `fail user${n} web`);
    expect(run(rule, [...sprayed, [60, "rights eve web"]])).toEqual({ live: [4], simulated: 1 });
    expect(run(rule, [[0, "rights eve web"], ...times(3, (n) => `fail user${n} web`, 60)]).live).toEqual([4]);
    expect(run(rule, [...times(3, () => "fail ann web"), [60, "rights eve web"]]).live).toEqual([]);
    expect(run(rule, [...sprayed, [60, "rights eve mail"]]).live).toEqual([]);
  });

  test("an event_count over a value_count counts occurrences that share no event", () => {
    const rule = importLast(
      spray,
      "{ type: event_count, rules: [a], group-by: [host], timespan: 1h, condition: { gte: 2 } }",
    );
    expect(
      run(
        rule,
        times(5, (n) => `fail user${n} web`),
      ),
    ).toEqual({ live: [], simulated: 0 });
    expect(
      run(
        rule,
        times(6, (n) => `fail user${n} web`),
      ),
    ).toEqual({ live: [6], simulated: 1 });
    const hosts = times(6, (n) => `fail user${n % 3} ${n < 3 ? "web" : "mail"}`);
    expect(run(rule, hosts).live).toEqual([]);
    const anywhere = importLast(spray, "{ type: event_count, rules: [a], timespan: 1h, condition: { gte: 2 } }");
    expect(run(anywhere, hosts)).toEqual({ live: [6], simulated: 1 });
  });

  test("a value_count over a temporal correlation", () => {
    const guessed = "{ type: temporal_ordered, rules: [failed, succeeded], group-by: [user, host], timespan: 1m }";
    const rule = importLast(
      guessed,
      "{ type: value_count, rules: [a], group-by: [user], timespan: 1h, condition: { field: host, gte: 2 } }",
    );
    const pair = (at: number, host: string): Seen[] => [
      [at, `fail ann ${host}`],
      [at + 1, `ok ann ${host}`],
    ];
    expect(run(rule, [...pair(0, "web"), ...pair(60, "mail")])).toEqual({ live: [4], simulated: 1 });
    expect(run(rule, [...pair(0, "web"), ...pair(60, "web")])).toEqual({ live: [], simulated: 0 });
  });

  test("three nested correlations, and events beside a correlation", () => {
    const rule = importLast(
      many,
      "{ type: temporal_ordered, rules: [a, succeeded], group-by: [user], timespan: 1h }",
      "{ type: event_count, rules: [b, changed], timespan: 1h, condition: { gte: 3 } }",
    );
    const guessed = (user: string, at: number): Seen[] => [
      ...times(5, () => `fail ${user} web`, at),
      [at + 30, `ok ${user} web`],
    ];
    const both = [...guessed("ann", 0), ...guessed("ben", 60)];
    expect(run(rule, both)).toEqual({ live: [], simulated: 0 });
    expect(run(rule, [...both, [120, "rights eve web"]])).toEqual({ live: [13], simulated: 1 });
  });

  test("an event_count that must not precede", () => {
    const rule = importLast(
      many,
      "{ type: temporal_ordered, rules: [a, succeeded], group-by: [user], timespan: 1h, condition: not a and succeeded }",
    );
    expect(run(rule, [...times(5, () => "fail ann web"), [60, "ok ann web"]]).live).toEqual([]);
    expect(run(rule, [...times(4, () => "fail ann web"), [60, "ok ann web"]]).live).toEqual([1]);
  });

  test.each([
    [
      "an upper bound",
      [many.replace("gte: 5", "lt: 5"), "{ type: temporal, rules: [a, succeeded], timespan: 1h }"],
      "correlation.rules[0]",
      /a has an upper bound/,
    ],
    [
      "a rule that must not follow",
      [
        "{ type: temporal_ordered, rules: [failed, succeeded], timespan: 1m, condition: failed and not succeeded }",
        "{ type: event_count, rules: [a], timespan: 1h, condition: { gte: 2 } }",
      ],
      "correlation.rules[0]",
      /the clock decides/,
    ],
    [
      "a sum of a field that occurrences lack",
      [many, "{ type: value_sum, rules: [a], timespan: 1h, condition: { field: bytes, gte: 2 } }"],
      "correlation.condition.field",
      /bytes is not in the group-by of a/,
    ],
    [
      "a group that occurrences lack",
      [many, "{ type: event_count, rules: [a], group-by: [host], timespan: 1h, condition: { gte: 2 } }"],
      "correlation.group-by",
      /host is not in the group-by of a/,
    ],
  ])("with %s is refused with the reason", (_, correlations, place, message) => {
    expect(importLast(...correlations).reasons).toEqual([{ place, message: expect.stringMatching(message) }]);
  });
});

test("an alias stands for a field of the rule that matched the event", () => {
  const aliases = "aliases: { who: { failed: user, changed: actor, succeeded: from } }";
  const rule = importLast(
    `{ type: event_count, rules: [failed, changed, succeeded], group-by: [who], timespan: 1m, condition: { gte: 3 }, ${aliases} }`,
  );
  expect(rule.remarks).toEqual([]);
  const seen: Seen[] = [
    [0, "fail ann web"],
    [1, "rights ann web"],
    [2, "ok ben web ann"],
  ];
  expect(run(rule, seen)).toEqual({ live: [3], simulated: 1 });
  expect(run(rule, [...seen.slice(0, 2), [2, "ok ann web ben"]])).toEqual({ live: [], simulated: 0 });
});

test("an event of two rules with different fields counts in both groups, but once if the groups are equal", () => {
  const aliases = "aliases: { who: { failed: user, login: from } }";
  const rule = importLast(
    `{ type: event_count, rules: [failed, login], group-by: [who], timespan: 1m, condition: { gte: 2 }, ${aliases} }`,
  );
  const both: Seen = [0, "fail ann web ben"];
  expect(run(rule, [both, [1, "fail ann web carl"]])).toEqual({ live: [2], simulated: 1 });
  expect(run(rule, [both, [1, "ok carl web ben"]])).toEqual({ live: [2], simulated: 1 });
  expect(run(rule, [[0, "fail ann web ann"]])).toEqual({ live: [], simulated: 0 });
});

test("rules of different sources keep their sources in the parts that count events", () => {
  const mapping = `
logsources:
  - { category: login, source: platform_network, conditions: [{ field: type, equals: login }] }
  - { category: config, source: custom, conditions: [{ field: type, equals: config }] }`;
  const content = `${EVENTS}---
title: a\nname: a
correlation: { type: event_count, rules: [failed], group-by: [user], timespan: 1m, condition: { gte: 5 } }
---
title: b\nname: b
correlation: { type: event_count, rules: [a], group-by: [user], timespan: 1h, condition: { gte: 2 } }
---
title: c\nlevel: high
correlation: { type: temporal, rules: [b, changed], timespan: 1h }`;
  const { rule, reasons } = importText(content, mapping).at(-1)!;
  expect(reasons).toEqual([]);
  const source = { field: "source", equals: "platform_network" };
  expect(rule).toMatchObject({
    source: "any",
    parts: [
      { name: "a", conditions: [source, { field: "type", equals: "login" }, {}] },
      { name: "b", conditions: [], threshold: { inputs: [{ part: "a" }] } },
    ],
    sequence: [{ part: "b" }, { conditions: [{ field: "source", equals: "custom" }, {}, {}] }],
  });
});
