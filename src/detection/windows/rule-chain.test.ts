import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/api-server.ts";
import { alertsOf, eventually } from "../../../test/detection.ts";
import type { Part } from "../../model/rule.ts";
import { plainRule } from "../../model/rule.fixture.ts";
import { createRuleMemory } from "./rule-chain.ts";
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
