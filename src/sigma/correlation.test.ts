import { describe, expect, test } from "vitest";
import { sourceNames } from "../model/event.ts";
import { importSigma, type SigmaOutcome } from "./import.ts";
import { parseMapping } from "./mapping.ts";

const BASE = `
title: Failed
name: failed
level: low
logsource: { category: login }
detection: { s: { result: fail }, condition: s }
---
title: Succeeded
name: succeeded
level: low
logsource: { category: session }
detection: { s: { result: ok }, condition: s }
`;

function correlate(correlation: string, mapping = ""): SigmaOutcome[] {
  const content = `${BASE}---\ntitle: Together\nlevel: high\ncorrelation: ${correlation}`;
  const parsed = parseMapping(mapping);
  if ("faults" in parsed) throw new Error(JSON.stringify(parsed.faults));
  return importSigma([{ name: "all.yml", content }], { sources: sourceNames("platform"), mapping: parsed.mapping });
}

const FAILED = [
  { field: "type", equals: "login" },
  { field: "raw.result", equals: "fail", ignore_case: true },
];
const SUCCEEDED = [
  { field: "type", equals: "session" },
  { field: "raw.result", equals: "ok", ignore_case: true },
];

describe("a correlation", () => {
  test("event_count becomes a threshold; the counted rule raises no alerts by itself", () => {
    const [failed, succeeded, together] = correlate(
      "{ type: event_count, rules: [failed], group-by: [user, host], timespan: 5m, condition: { gte: 10 } }",
    );
    expect(together).toMatchObject({
      kind: "taken",
      rule: {
        name: "sigma.together",
        severity: "high",
        conditions: FAILED,
        window: "5m",
        threshold: { count: 10, group_by: ["raw.user", "raw.host"] },
      },
    });
    expect(failed).toMatchObject({
      kind: "part",
      rule: null,
      remarks: [{ message: expect.stringMatching(/Together/) }],
    });
    expect(succeeded!.kind).toBe("taken");
  });

  test("generate: true keeps the rules that it is made of", () => {
    const outcomes = correlate(
      "{ type: event_count, rules: failed, timespan: 1h, condition: { gt: 10 }, generate: true }",
    );
    expect(outcomes.map(({ kind }) => kind)).toEqual(["taken", "taken", "taken"]);
    expect(outcomes[2]!.rule).toMatchObject({ threshold: { count: 11 }, window: "1h" });
    expect(outcomes[2]!.rule!.threshold).not.toHaveProperty("group_by");
  });

  test("generate is also read next to level, as the specification has it", () => {
    const shape = "{ type: event_count, rules: failed, timespan: 1h, condition: { gt: 10 } }";
    const kinds = (generate: string) => correlate(`${shape}\n${generate}`).map(({ kind }) => kind);
    expect(kinds("generate: true")).toEqual(["taken", "taken", "taken"]);
    expect(kinds("generate: false")).toEqual(["part", "taken", "taken"]);
  });

  test.each([
    ["{ gt: 100, lte: 200 }", { count: 101, lte: 200 }],
    ["{ lt: 5 }", { lt: 5 }],
    ["{ eq: 3 }", { count: 3, lte: 3 }],
  ])("event_count with %s is decided when its window ends, with a remark", (condition, threshold) => {
    const { rule, remarks } = correlate(
      `{ type: event_count, rules: [failed], timespan: 5m, condition: ${condition} }`,
    )[2]!;
    expect(rule!.threshold).toEqual(threshold);
    expect(remarks).toEqual([
      { place: "correlation.condition", message: expect.stringMatching(/fixed windows of 5m/) },
    ]);
  });

  test.each([
    ["value_sum", "{ field: bytes, gt: 1000.5 }", { sum: "raw.bytes", gt: 1000.5 }],
    ["value_avg", "{ field: bytes, gte: 10, lt: 20 }", { avg: "raw.bytes", gte: 10, lt: 20 }],
    [
      "value_percentile",
      "{ field: bytes, gte: 10, percentile: 95 }",
      { percentile: { of: "raw.bytes", rank: 95 }, gte: 10 },
    ],
    ["value_median", "{ field: bytes, gte: 10 }", { percentile: { of: "raw.bytes", rank: 50 }, gte: 10 }],
  ])("%s with %s is a threshold on numbers", (type, condition, threshold) => {
    const { rule } = correlate(
      `{ type: ${type}, rules: [failed], group-by: [host], timespan: 1h, condition: ${condition} }`,
    )[2]!;
    expect(rule!.threshold).toEqual({ ...threshold, group_by: "raw.host" });
  });

  test("event_count over several rules counts events of any of them", () => {
    const together = correlate(
      "{ type: event_count, rules: [failed, succeeded], group-by: user, timespan: 1w, condition: { gte: 2 } }",
    )[2]!;
    expect(together.rule).toMatchObject({
      window: "7d",
      conditions: [{ any: [{ all: FAILED }, { all: SUCCEEDED }] }],
    });
  });

  test("value_count counts distinct values", () => {
    const together = correlate(
      "{ type: value_count, rules: [failed], group-by: [host], timespan: 1d, condition: { field: user, gte: 5 } }",
    )[2]!;
    expect(together.rule!.threshold).toEqual({ count: 5, group_by: "raw.host", distinct: "raw.user" });
  });

  test("value_count over several fields counts distinct combinations", () => {
    const together = correlate(
      "{ type: value_count, rules: [failed], group-by: [host], timespan: 1d, condition: { field: [user, domain], gte: 5 } }",
    )[2]!;
    expect(together.rule!.threshold).toEqual({
      count: 5,
      group_by: "raw.host",
      distinct: ["raw.user", "raw.domain"],
    });
  });

  test("temporal with fewer than all rules becomes a sequence with a minimum number of steps", () => {
    const shape = "rules: [failed, succeeded], group-by: [user], timespan: 10m";
    expect(correlate(`{ type: temporal, ${shape}, condition: { gte: 1 } }`)[2]!.rule).toMatchObject({
      sequence_order: "any",
      sequence_min: 1,
      sequence: [{ name: "failed" }, { name: "succeeded" }],
    });
    expect(correlate(`{ type: temporal, ${shape}, condition: { gte: 2 } }`)[2]!.rule!.sequence_min).toBeUndefined();
    for (const [type, least] of [
      ["temporal", 3],
      ["temporal_ordered", 1],
    ] as const) {
      expect(correlate(`{ type: ${type}, ${shape}, condition: { gte: ${least} } }`)[2]!.reasons).toEqual([
        { place: "correlation.condition", message: expect.any(String) },
      ]);
    }
  });

  test("a rule that must not match becomes an absent step", () => {
    const shape = "rules: [failed, succeeded], group-by: [user], timespan: 10m";
    const absent = { name: "succeeded", conditions: SUCCEEDED, absent: true };
    const temporal = correlate(`{ type: temporal, ${shape}, condition: failed and not succeeded }`)[2]!;
    expect(temporal.rule).toMatchObject({
      sequence_order: "in_order",
      group_by: "raw.user",
      sequence: [{ ...absent, name: "succeeded before" }, { name: "failed", conditions: FAILED }, absent],
    });
    const ordered = correlate(`{ type: temporal_ordered, ${shape}, condition: failed and not succeeded }`)[2]!;
    expect(ordered.rule!.sequence).toMatchObject([{ name: "failed", conditions: FAILED }, absent]);
  });

  test("temporal is a sequence in any order, temporal_ordered one in order; aliases are paths of a step", () => {
    const aliases = "aliases: { who: { failed: user, succeeded: account } }";
    const shape = `rules: [failed, succeeded], group-by: [who], timespan: 10m, ${aliases}`;
    const temporal = correlate(`{ type: temporal, ${shape} }`)[2]!;
    expect(temporal.rule).toMatchObject({
      conditions: [],
      sequence_order: "any",
      window: "10m",
      group_by: "raw.user",
      sequence: [
        { name: "failed", conditions: FAILED },
        { name: "succeeded", conditions: SUCCEEDED, group_by: "raw.account" },
      ],
    });
    expect(correlate(`{ type: temporal_ordered, ${shape} }`)[2]!.rule!.sequence_order).toBe("in_order");
  });

  test("rules of different sources get a condition on the source", () => {
    const mapping = `
logsources:
  - { category: login, source: platform_network, conditions: [{ field: type, equals: login }] }
  - { category: session, source: custom, conditions: [{ field: type, equals: session }] }`;
    const { rule } = correlate("{ type: temporal, rules: [failed, succeeded], timespan: 10m }", mapping)[2]!;
    expect(rule).toMatchObject({
      source: "any",
      sequence: [
        { conditions: [{ field: "source", equals: "platform_network" }, ...FAILED] },
        { conditions: [{ field: "source", equals: "custom" }, ...SUCCEEDED] },
      ],
    });
  });

  test.each([
    ["{ type: event_count, rules: [failed], timespan: 5m, condition: { lt: 1 } }", "correlation.condition.lt"],
    ["{ type: temporal, rules: [failed, succeeded], timespan: 5m, condition: { lt: 2 } }", "correlation.condition.lt"],
    [
      "{ type: value_percentile, rules: [failed], timespan: 5m, condition: { field: a, gte: 3 } }",
      "correlation.condition.percentile",
    ],
    [
      "{ type: value_sum, rules: [failed], timespan: 5m, condition: { field: [a, b], gte: 3 } }",
      "correlation.condition.field",
    ],
    ["{ type: value_sum, rules: [failed], timespan: 5m, condition: { field: a } }", "correlation.condition"],
    ["{ type: event_count, rules: [failed], timespan: 5m, condition: { neq: 3 } }", "correlation.condition.neq"],
    [
      "{ type: event_count, rules: [failed], timespan: 5m, condition: { gte: 3, lte: 2 } }",
      "correlation.condition.lte",
    ],
    ["{ type: event_count, rules: [failed], timespan: 5m, condition: { gt: 3, gte: 9 } }", "correlation.condition"],
    ["{ type: event_count, rules: [failed], timespan: 5m, condition: { gte: 0 } }", "correlation.condition.gte"],
    ["{ type: event_count, rules: [failed], timespan: 5m, condition: { about: 3 } }", "correlation.condition.about"],
    ["{ type: event_count, rules: [failed], timespan: 5m }", "correlation.condition"],
    ["{ type: event_count, rules: [failed], condition: { gte: 3 } }", "correlation.timespan"],
    ["{ type: event_count, rules: [failed], timespan: 3M, condition: { gte: 3 } }", "correlation.timespan"],
    ["{ type: event_count, rules: [failed], timespan: soon, condition: { gte: 3 } }", "correlation.timespan"],
    ["{ type: event_count, rules: [nobody], timespan: 5m, condition: { gte: 3 } }", "correlation.rules[0]"],
    ["{ type: event_count, rules: [], timespan: 5m, condition: { gte: 3 } }", "correlation.rules"],
    ["{ type: value_count, rules: [failed], timespan: 5m, condition: { gte: 3 } }", "correlation.condition.field"],
    ["{ type: value_sum, rules: [failed], timespan: 5m, condition: { gte: 3 } }", "correlation.condition.field"],
    ["{ type: value_mode, rules: [failed], timespan: 5m, condition: { gte: 3 } }", "correlation.type"],
    ["{ type: temporal, rules: [failed], timespan: 5m }", "correlation.rules"],
  ])("%s is refused", (correlation, place) => {
    const outcomes = correlate(correlation);
    expect(outcomes[2]).toMatchObject({ kind: "refused", rule: null });
    expect(outcomes[2]!.reasons).toEqual([{ place, message: expect.any(String) }]);
  });

  test.each([
    ["an empty range", "{ type: event_count, rules: [failed], timespan: 5m, condition: { gte: 20, lt: 20 } }"],
    ["a sum without a field", "{ type: value_sum, rules: [failed], timespan: 5m, condition: { gte: 20 } }"],
    ["an expression", "{ type: temporal, rules: [failed, gone], timespan: 5m, condition: failed and not gone }"],
    ["a long timespan", "{ type: event_count, rules: [failed], timespan: 30d, condition: { gte: 20 } }"],
    ["no type", "{ rules: [failed], timespan: 5m, condition: { gte: 20 } }"],
    [
      "six groups",
      "{ type: event_count, rules: failed, timespan: 5m, condition: { gte: 2 }, group-by: [a,b,c,d,e,f] }",
    ],
  ])("the rules of a correlation that is refused for %s are imported disabled", (_, correlation) => {
    const [failed, succeeded, together] = correlate(correlation);
    expect(together!.kind).toBe("refused");
    expect(failed).toMatchObject({
      kind: "taken",
      rule: { name: "sigma.failed", enabled: false },
      remarks: [{ place: "", message: expect.stringMatching(/^imported disabled: it is part of "Together"/) }],
    });
    expect(succeeded).toMatchObject({ kind: "taken", rule: { enabled: true }, remarks: [] });
    const generating = correlate(correlation.replace(/}$/, ", generate: true }"));
    expect(generating[0]).toMatchObject({ kind: "taken", rule: { enabled: true }, remarks: [] });
  });

  test("a rule of two correlations, one of them refused, is part of the other", () => {
    const counting = (title: string, condition: string) =>
      `title: ${title}\ncorrelation: { type: event_count, rules: [failed], timespan: 5m, condition: ${condition} }`;
    const [taken, refused] = [counting("Many", "{ gte: 20 }"), counting("Few", "{ neq: 20 }")];
    for (const both of [`${taken}\n---\n${refused}`, `${refused}\n---\n${taken}`]) {
      const content = `${BASE}---\n${both}`;
      const [failed] = importSigma([{ name: "a.yml", content }], { sources: sourceNames("platform") });
      expect(failed).toMatchObject({
        kind: "part",
        remarks: [{ message: expect.stringMatching(/part of "Many"/) }],
      });
    }
  });

  test("an event_count that only a refused correlation uses is imported disabled", () => {
    const content = `${BASE}---
title: Many failed\nname: many_failed
correlation: { type: event_count, rules: [failed], group-by: [user], timespan: 5m, condition: { gte: 10 } }
---
title: Guessed\nlevel: critical
correlation: { type: temporal_ordered, rules: [many_failed, succeeded], timespan: 10m, condition: many_failed or succeeded }`;
    const outcomes = importSigma([{ name: "a.yml", content }], { sources: sourceNames("platform") });
    expect(outcomes.map(({ kind, rule }) => [kind, rule?.enabled])).toEqual([
      ["part", undefined],
      ["taken", false],
      ["taken", false],
      ["refused", undefined],
    ]);
  });

  test("many of one thing, then another: an event_count is a part, with its own groups and timespan", () => {
    const content = `${BASE}---
title: Many failed\nname: many_failed
correlation: { type: event_count, rules: [failed], group-by: [user, host], timespan: 5m, condition: { gte: 10 } }
---
title: Guessed\nlevel: critical
correlation: { type: temporal_ordered, rules: [many_failed, succeeded], group-by: [user], timespan: 10m }`;
    const outcomes = importSigma([{ name: "a.yml", content }], { sources: sourceNames("platform") });
    expect(outcomes.map(({ kind }) => kind)).toEqual(["part", "part", "part", "taken"]);
    expect(outcomes[3]!.rule).toMatchObject({
      window: "10m",
      group_by: "raw.user",
      parts: [
        {
          name: "many_failed",
          conditions: FAILED,
          window: "5m",
          threshold: { count: 10, group_by: ["raw.user", "raw.host"] },
        },
      ],
      sequence: [
        { name: "many_failed", part: "many_failed" },
        { name: "succeeded", conditions: SUCCEEDED },
      ],
    });
    expect(outcomes[3]!.remarks).toEqual([]);
  });

  test("a part without the outer group-by fields is regrouped by them, with a remark", () => {
    const content = `${BASE}---
title: Many failed\nname: many_failed
correlation: { type: event_count, rules: [failed], group-by: [host], timespan: 10m, condition: { gte: 10 } }
---
title: Guessed\nlevel: critical
correlation: { type: temporal_ordered, rules: [many_failed, succeeded], group-by: [user], timespan: 10m }`;
    const { rule, remarks } = importSigma([{ name: "a.yml", content }], { sources: sourceNames("platform") })[3]!;
    expect(rule).toMatchObject({ group_by: "raw.user", parts: [{ threshold: { count: 10, group_by: "raw.user" } }] });
    expect(remarks).toEqual([
      { place: "correlation.rules[0]", message: expect.stringMatching(/by raw\.user.* instead of raw\.host/) },
    ]);
  });

  test("a value that the rules have under different names is counted under each", () => {
    const shape =
      "rules: [failed, succeeded], timespan: 5m, group-by: [w], aliases: { w: { failed: a, succeeded: b } }";
    expect(correlate(`{ type: event_count, ${shape}, condition: { gte: 3 } }`)[2]!.rule).toMatchObject({
      conditions: [],
      threshold: {
        count: 3,
        group_by: "raw.a",
        inputs: [{ conditions: FAILED }, { conditions: SUCCEEDED, group_by: "raw.b" }],
      },
    });
    const mapping = "logsources: [{ category: session, source: any, fields: { user: raw.account } }]";
    const counting =
      "{ type: value_count, rules: [failed, succeeded], timespan: 5m, condition: { field: user, gte: 3 } }";
    expect(correlate(counting, mapping)[2]!.rule!.threshold).toMatchObject({
      distinct: "raw.user",
      inputs: [{}, { value: "raw.account" }],
    });
  });

  test("temporal rules that one event may meet together get a remark", () => {
    const remarksOf = (type: string, ofSecond: string) => {
      const content = `${BASE.replace(/session[^]*$/, ofSecond)}
---
title: Together\nlevel: high\ncorrelation: { type: ${type}, rules: [failed, succeeded], timespan: 5m }`;
      return importSigma([{ name: "a.yml", content }], { sources: sourceNames("platform") })[2]!.remarks;
    };
    const same = "login }\ndetection: { s: { user: root }, condition: s }";
    expect(remarksOf("temporal", same)).toEqual([
      { place: "correlation.rules", message: expect.stringMatching(/both failed and succeeded counts for one/) },
    ]);
    expect(remarksOf("temporal_ordered", same)).toEqual([]);
    expect(remarksOf("temporal", "login }\ndetection: { s: { result: OK }, condition: s }")).toEqual([]);
    expect(remarksOf("temporal", "login }\ndetection: { s: { result: Fail }, condition: s }")).toHaveLength(1);
    expect(remarksOf("temporal", "session }\ndetection: { s: { user: root }, condition: s }")).toEqual([]);
  });

  test("temporal with its rules joined by and is the same as without a condition", () => {
    const shape = "{ type: temporal, rules: [failed, succeeded], timespan: 5m, condition:";
    expect(correlate(`${shape} failed and succeeded }`)[2]!.kind).toBe("taken");
    for (const condition of ["not failed and not succeeded", "failed or succeeded", "failed", "failed and failed"]) {
      expect(correlate(`${shape} ${condition} }`)[2]!.reasons).toEqual([
        { place: "correlation.condition", message: expect.any(String) },
      ]);
    }
  });

  test("a correlation over a refused rule, or in a circle, is refused", () => {
    const over = (name: string, rule: string) =>
      `title: ${name}\nname: ${name}\ncorrelation: { type: event_count, rules: [${rule}], timespan: 5m, condition: { gte: 3 } }`;
    const content = [
      "title: Bad\nname: bad\nlogsource: { category: x }\ndetection: { s: { a|nope: 1 }, condition: s }",
      over("first", "bad"),
      over("second", "first"),
      over("third", "fourth"),
      over("fourth", "third"),
    ].join("\n---\n");
    const outcomes = importSigma([{ name: "a.yml", content }], { sources: sourceNames("platform") });
    expect(outcomes.map(({ reasons }) => reasons[0]?.message)).toEqual([
      expect.stringMatching(/unknown modifier/),
      ...Array.from({ length: 4 }, () => expect.stringMatching(/could not be imported/)),
    ]);
  });
});

test.each([
  ["count() by host > 10", { count: 11, group_by: "raw.host" }],
  ["count(user) by host, net >= 3", { count: 3, group_by: ["raw.host", "raw.net"], distinct: "raw.user" }],
  ["count() > 4", { count: 5 }],
])("an aggregation of the older kind: %s", (aggregation, threshold) => {
  const content = `title: A\nlevel: low\nlogsource: { category: x }\ndetection: { s: { a: 1 }, timeframe: 5m, condition: 's | ${aggregation}' }`;
  const [outcome] = importSigma([{ name: "a.yml", content }], { sources: sourceNames("platform") });
  expect(outcome!.rule).toMatchObject({ window: "5m", threshold });
});
