import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/api-server.ts";
import { alertsOf, eventually, uniqueType } from "../../../test/detection.ts";
import type { Part, Rule } from "../../model/rule.ts";
import { plainRule } from "../../model/rule.fixture.ts";
import { createRuleMemory } from "./rule-chain.ts";
import type { Firing } from "./tracked-match.ts";
import { WindowMemoryLimit } from "./window-memory-limit.ts";

test("the events of the oldest of very many occurrences are dropped and counted", () => {
  const pair: Part = {
    name: "pair",
    conditions: [],
    window: "1h",
    threshold: { count: 2 },
    sequence_order: "in_order",
  };
  const rule = plainRule({ window: "1h", threshold: { count: 2100, inputs: [{ part: "pair" }] }, parts: [pair] });
  const chain = createRuleMemory<number>(rule, { seed: { first: 1, second: 2 }, memoryLimit: new WindowMemoryLimit() });
  const counts: number[] = [];
  for (let key = 0; key < 4200; key++) {
    chain.add([{ key, timestampMs: key, values: [], steps: 1 }], undefined, ([firing]) => counts.push(firing!.count));
  }
  // Two thousand pairs, and of the hundred before them only the completing event.
  expect(counts).toEqual([4100]);
  expect(chain.dropped).toBe(100);
});

describe("of several occurrences that one event completes, an alert has the events of its own", () => {
  const pairOf = (name: string, field: string): Part => ({
    name,
    conditions: [],
    window: "1h",
    threshold: { count: 2, group_by: field },
    sequence_order: "in_order",
  });
  interface Row {
    readonly values: string[][];
    readonly steps: number;
    readonly timestampMs?: number;
  }
  /** Each row is an event, a second after the one before. Returns the keys and the count of each firing. */
  const play = (rule: Rule, rows: readonly Row[]) => {
    const chain = createRuleMemory<number>(rule, {
      seed: { first: 1, second: 2 },
      memoryLimit: new WindowMemoryLimit(),
    });
    const fired: Firing<number>[] = [];
    for (const [key, row] of rows.entries())
      chain.add([{ key, timestampMs: key * 1000, ...row }], undefined, (firings) => fired.push(...firings));
    return fired.map(({ marks, count }) => ({ keys: marks.map(({ id }) => id), count }));
  };

  test("in two groups", () => {
    const rule = plainRule({
      window: "1h",
      parts: [pairOf("pair", "raw.user")],
      sequence: [
        { name: "pair", part: "pair", count: 1 },
        { name: "end", conditions: [], count: 1 },
      ],
      groupBy: "raw.user",
    });
    const fired = play(rule, [
      { values: [["ann"]], steps: 0b01 },
      { values: [["ben"]], steps: 0b01 },
      { values: [["ann", "ben"]], steps: 0b01 },
      { values: [["ben"]], steps: 0b10 },
      { values: [["ann"]], steps: 0b10 },
    ]);
    expect(fired).toEqual([
      { keys: [3, 2, 1], count: 3 },
      { keys: [4, 2, 0], count: 3 },
    ]);
  });

  test("of two parts", () => {
    const rule = plainRule({
      window: "1h",
      parts: [pairOf("one", "raw.user"), pairOf("other", "raw.user")],
      sequence: [
        { name: "one", part: "one", count: 1 },
        { name: "end", conditions: [], count: 1 },
        { name: "other", part: "other", count: 1 },
      ],
      groupBy: "raw.user",
    });
    const fired = play(rule, [
      { values: [["ann"]], steps: 0b001 },
      { values: [["ann"]], steps: 0b010 },
      { values: [["ann"]], steps: 0b011 },
      { values: [["ann"]], steps: 0b100 },
      // A further match of the other part is an occurrence of its own.
      { values: [["ann"]], steps: 0b010 },
    ]);
    expect(fired).toEqual([{ keys: [4, 3, 2, 0], count: 4 }]);
  });

  test("of two parts whose groups a threshold counts as values", () => {
    const rule = plainRule({
      window: "1h",
      parts: [pairOf("one", "raw.user"), pairOf("other", "raw.user")],
      threshold: { count: 1, distinct: "raw.user", inputs: [{ part: "one" }, { part: "other" }] },
    });
    const fired = play(rule, [
      { values: [["ann"]], steps: 0b01 },
      { values: [["ann"]], steps: 0b10 },
      { values: [["ann"]], steps: 0b11 },
    ]);
    expect(fired).toEqual([
      { keys: [2, 0], count: 2 },
      { keys: [2, 1], count: 2 },
    ]);
    // The occurrences of a late event have the times of their newest events, and differ in them.
    const late = play(rule, [
      { values: [["ann"]], steps: 0b01, timestampMs: 9000 },
      { values: [["ann"]], steps: 0b10, timestampMs: 4000 },
      { values: [["ann"]], steps: 0b11, timestampMs: 3000 },
    ]);
    expect(late).toEqual([
      { keys: [0, 2], count: 2 },
      { keys: [1, 2], count: 2 },
    ]);
  });

  test("and of an event that is also an input itself", () => {
    const rule = plainRule({
      window: "1h",
      parts: [pairOf("pair", "raw.user")],
      threshold: {
        count: 2,
        group_by: "raw.host",
        inputs: [{ part: "pair", group_by: "raw.user" }, { conditions: [] }],
      },
    });
    const fired = play(rule, [
      { values: [["ann"], []], steps: 0b01 },
      { values: [["ann"], ["web"]], steps: 0b11 },
      { values: [[], ["web"]], steps: 0b10 },
    ]);
    expect(fired).toEqual([{ keys: [2, 1], count: 2 }]);
  });
});

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer();
});
afterAll(() => server.close());

test("an imported chain continues across a restart and raises one alert with all its events", async () => {
  const content = `
title: Failed
name: failed
logsource: { category: chain_login }
detection: { s: { result: fail }, condition: s }
---
title: Succeeded
name: succeeded
logsource: { category: chain_login }
detection: { s: { result: ok }, condition: s }
---
title: Many failed
name: many_failed
correlation: { type: event_count, rules: [failed], group-by: [user, host], timespan: 5m, condition: { gte: 3 } }
---
title: Guessed
level: high
correlation: { type: temporal_ordered, rules: [many_failed, succeeded], group-by: [user], timespan: 1h }
`;
  const imported = await server.call("POST", "/v1/rules/import", { body: { format: "sigma", content } });
  expect(imported.body.data).toMatchObject({ imported: [{ name: "sigma.guessed" }], refused: [] });
  const send = async (result: string, user: string, host: string) => {
    const body = { type: "chain_login", source: "custom", data: { result, user, host } };
    expect((await server.call("POST", "/v1/events", { body })).status).toBe(201);
  };
  for (const user of ["ann", "ben", "ann", "ben"]) await send("fail", user, "web");
  server = await server.restart();
  await send("fail", "ann", "web");
  await send("fail", "ben", "mail");
  server = await server.restart();
  await send("ok", "ben", "web");
  await send("ok", "ann", "mail");
  const [alert, ...others] = await eventually(
    () => alertsOf(server, { name: "sigma.guessed" }),
    (alerts) => expect(alerts.length).toBeGreaterThan(0),
  );
  expect(others).toEqual([]);
  expect(alert.event_count).toBe(4);
});

test("alerts of two groups whose occurrences one event completed have their own events, live, over a restart and in a simulation", async () => {
  const type = uniqueType();
  const only = (result: string) => [
    { field: "type", equals: type },
    { field: "raw.result", equals: result },
  ];
  const rule = {
    name: "test.shared",
    description: "Guessed",
    severity: "high",
    conditions: [],
    parts: [{ name: "failed", conditions: only("fail"), window: "35m", threshold: { count: 2, group_by: "raw.user" } }],
    window: "1h",
    sequence: [
      { name: "failed", part: "failed" },
      { name: "succeeded", conditions: only("ok") },
    ],
    group_by: "raw.user",
    dedup: { period: "10m" },
    actions: [{ alert: { channels: [] } }],
  };
  const startMs = Date.now() - 3_600_000;
  const send = async (minute: number, result: string, user: string | string[]) => {
    const timestamp = new Date(startMs + minute * 60_000).toISOString();
    const body = { type, source: "custom", timestamp, data: { result, user } };
    expect((await server.call("POST", "/v1/events", { body })).status).toBe(201);
  };
  expect((await server.call("POST", "/v1/rules", { body: rule })).status).toBe(201);
  await send(0, "fail", "ben");
  await send(1, "fail", "ben");
  await send(2, "ok", "ben");
  await send(10, "fail", "ann");
  await send(40, "fail", "ben");
  await send(41, "fail", ["ann", "ben"]);
  await send(42, "ok", "ann");
  server = await server.restart();
  await send(43, "ok", "ben");
  // With the events of the other group, the second alert of the one would join its first.
  const time_range = { from: new Date(startMs).toISOString(), to: new Date().toISOString() };
  const simulated = await server.call("POST", "/v1/rules/simulate", { body: { rule, time_range } });
  expect(simulated.body.data).toMatchObject({ matches: 8, alerts: 3 });
  const alerts = await eventually(
    () => alertsOf(server, rule),
    (found) => expect(found).toHaveLength(3),
  );
  expect(alerts.map(({ event_count }) => event_count)).toEqual([3, 3, 3]);
});

test("one event that completes two parts whose values a threshold counts raises an alert, and detection goes on", async () => {
  const type = uniqueType();
  const part = (name: string, count: number) => ({
    name,
    conditions: [
      { field: "type", equals: type },
      { field: "raw.kinds", equals: name },
    ],
    window: "1h",
    threshold: { count, group_by: "raw.user" },
  });
  const rule = {
    name: "test.both",
    description: "Both",
    severity: "high",
    conditions: [],
    parts: [part("pair", 2), part("single", 1)],
    window: "1h",
    threshold: { count: 1, distinct: "raw.user", inputs: [{ part: "pair" }, { part: "single" }] },
    actions: [{ alert: { channels: [] } }],
  };
  expect((await server.call("POST", "/v1/rules", { body: rule })).status).toBe(201);
  const send = async (kinds: string[], minutesAgo: number) => {
    const timestamp = new Date(Date.now() - minutesAgo * 60_000).toISOString();
    const body = { type, source: "custom", timestamp, data: { kinds, user: "ann" } };
    expect((await server.call("POST", "/v1/events", { body })).status).toBe(201);
  };
  await send(["pair"], 1);
  // Late, so that its two occurrences differ in time: the pair ends with the event before.
  await send(["pair", "single"], 2);
  await send(["single"], 0);
  await eventually(
    () => alertsOf(server, rule),
    (found) => expect(found).toMatchObject([{ event_count: 3 }]),
  );
});
