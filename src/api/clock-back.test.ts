import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { DAY_MS } from "../lib/time.ts";

let server: TestServer;
let nowMs = Date.parse("2026-11-17T06:00:00Z");
beforeAll(async () => void (server = await openTestServer({ now: () => nowMs })));
afterAll(() => server.close());

/** The id of the alert that a rule of this name creates from one event. */
async function alertOf(name: string): Promise<string> {
  const rule = {
    name: `clock.${name}`,
    description: "one is enough",
    severity: "low",
    conditions: [{ field: "type", equals: name }],
    actions: [{ alert: { channels: [] } }],
  };
  expect((await server.call("POST", "/v1/rules", { body: rule })).status).toBe(201);
  const event = { type: name, source: "custom", data: {} };
  expect((await server.call("POST", "/v1/events", { body: event })).status).toBe(201);
  const alerts = async () => (await server.call("GET", `/v1/alerts?rule_name=clock.${name}`)).body.data;
  await expect.poll(alerts).toHaveLength(1);
  return (await alerts())[0].id;
}

test("alerts and rules created after the clock was set back over a restart still have greater ids", async () => {
  const before = await alertOf("before");
  nowMs -= DAY_MS;
  server = await server.restart();
  const after = await alertOf("after");
  expect(after > before).toBe(true);
  const rules = (await server.call("GET", "/v1/rules?search=clock")).body.data;
  const idOf = (name: string) => rules.find((rule: { name: string }) => rule.name === name).id;
  expect(idOf("clock.after") > idOf("clock.before")).toBe(true);
});
