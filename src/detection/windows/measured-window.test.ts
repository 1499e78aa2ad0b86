import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/api-server.ts";
import { alertsOf, eventually, uniqueType } from "../../../test/detection.ts";
import type { Rule } from "../../model/rule.ts";
import { WindowMemoryLimit } from "./window-memory-limit.ts";
import { ruleFileParser } from "../rules/rule-file.ts";
import { RuleTracker } from "./rule-tracker.ts";

// Thresholds over sums, averages and percentiles, and those with an upper bound.

const HOUR_MS = 3_600_000;

function open(threshold: NonNullable<Rule["threshold"]>, room = new WindowMemoryLimit()) {
  const tracker = new RuleTracker<number>(
    { window: "1h", threshold, sequence: null, sequenceOrder: "in_order", groupBy: null },
    { seed: { first: 1, second: 2 }, memoryLimit: room },
  );
  let key = 0;
  const see = (timestampMs: number, value: number): number => {
    let count = 0;
    tracker.add([{ key: key++, timestampMs, values: [[value]], steps: 0 }], undefined, ([firing]) => {
      count = firing!.count;
    });
    return count;
  };
  return { see, tracker };
}

describe("a group with more matches than entries", () => {
  test("sums all of them, each shifted by at most 1/64 of the window", () => {
    const { see, tracker } = open({ sum: "raw.n", gte: 20_000 });
    const fired = Array.from({ length: 20_000 }, (_, i) => see(i * 100, 1));
    // 20,000 events lie within 2,000 seconds.
    expect(fired.findIndex((count) => count > 0)).toBe(19_999);
    expect(fired.at(-1)).toBe(20_000);
    expect(tracker.dropped).toBe(0);
  });

  test("forgets matches that have left the window", () => {
    const { see } = open({ sum: "raw.n", gte: 20_000 });
    for (let i = 0; i < 15_000; i++) expect(see(i * 100, 1)).toBe(0);
    for (let i = 0; i < 15_000; i++) expect(see(2 * HOUR_MS + i * 100, 1)).toBe(0);
  });

  test("keeps its average and its percentile", () => {
    for (const threshold of [
      { avg: "raw.n", gte: 50, count: 5000 },
      { percentile: { of: "raw.n", rank: 90 }, gte: 90, count: 5000 },
    ]) {
      const { see } = open(threshold);
      const fired = Array.from({ length: 5000 }, (_, i) => see(i * 100, (i % 100) + 1));
      expect(fired.slice(0, -1).every((count) => count === 0)).toBe(true);
      expect(fired.at(-1)).toBe(5000);
    }
  });
});

test("the number of windows with an upper bound is limited, and refused ones are counted", () => {
  const { see, tracker } = open({ lte: 3 }, new WindowMemoryLimit({ deadlinesMax: 2 }));
  for (let hour = 0; hour < 5; hour++) see(hour * HOUR_MS, 1);
  expect([tracker.pending, tracker.refused]).toEqual([2, 3]);
});

test.each([
  ["{ group_by: raw.a }", "threshold.count"],
  ["{ sum: raw.n }", "threshold"],
  ["{ sum: raw.n, avg: raw.n, gte: 1 }", "threshold.avg"],
  ["{ count: 3, gte: 1 }", "threshold.gte"],
  ["{ sum: raw.n, gte: 1, gt: 1 }", "threshold.gt"],
  ["{ count: 3, lte: 2 }", "threshold.lte"],
  ["{ count: 3, lt: 3 }", "threshold.lt"],
  ["{ percentile: { of: raw.n, rank: 101 }, gte: 1 }", "threshold.percentile.rank"],
])("a threshold is refused at its fault: %s", (threshold, path) => {
  const content = `
name: test.rule
description: Much
severity: low
conditions: [{ field: type, equals: a }]
window: 1m
actions: [{ alert: { channels: [] } }]
threshold: ${threshold}`;
  const parse = ruleFileParser({ platform: "platform", timezone: "UTC" });
  expect(parse({ name: "a.yaml", content }).faults.map((fault) => fault.path)).toEqual([path]);
});

describe("over the real server", () => {
  let shift = 0;
  let server: TestServer;
  beforeAll(async () => {
    server = await openTestServer({ now: () => Date.now() + shift });
  });
  afterAll(() => server.close());

  const make = async (type: string, threshold: object) => {
    const body = {
      name: `test.${type}`,
      description: "Measured",
      title: "{{raw.host}}",
      severity: "low",
      conditions: [{ field: "type", equals: type }],
      window: "1m",
      threshold: { ...threshold, group_by: "raw.host" },
      actions: [{ alert: { channels: [] } }],
    };
    const answer = await server.call("POST", "/v1/rules", { body });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.data.threshold).toEqual(body.threshold);
    return answer.body.data as { id: string; name: string };
  };
  const send = async (type: string, host: string, bytes: number) => {
    const answer = await server.call("POST", "/v1/events", { body: { type, source: "custom", data: { host, bytes } } });
    expect(answer.status, answer.text).toBe(201);
  };
  const found = (rule: { name: string }, alerts: readonly (readonly [string, number])[]) =>
    eventually(
      async () => (await alertsOf(server, rule)).map(({ title, event_count }) => [title, event_count] as const).sort(),
      (seen) => expect(seen).toEqual(alerts),
    );

  const nextMinute = () => (shift += 60_000 - ((Date.now() + shift) % 60_000));

  test("a sum continues across a restart", async () => {
    const type = uniqueType();
    const rule = await make(type, { sum: "raw.bytes", gt: 1000 });
    await send(type, "gate", 600);
    await send(type, "roof", 600);
    server = await server.restart();
    await send(type, "gate", 500);
    await found(rule, [["gate", 2]]);
  });

  test("too few events fire once when their window closes, regardless of restarts before and after", async () => {
    const type = uniqueType();
    const rule = await make(type, { count: 2, lte: 3 });
    // The window in which the rule was created is incomplete.
    await send(type, "early", 1);
    await send(type, "early", 1);
    nextMinute();
    for (const host of ["one", "two", "two", "four", "four", "four", "four"]) await send(type, host, 1);
    await eventually(
      async () => (await server.call("GET", `/v1/rules/${rule.id}`)).body.data.stats,
      (stats) => expect(stats.matches_7d).toBe(9),
    );
    server = await server.restart();
    shift += 130_000;
    await found(rule, [["two", 2]]);
    server = await server.restart();
    const witness = await make(uniqueType(), { count: 1, lte: 3 });
    nextMinute();
    await send(witness.name.slice("test.".length), "last", 1);
    shift += 130_000;
    await found(witness, [["last", 1]]);
    await found(rule, [["two", 2]]);
  });
});
