import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { alertsOf, eventually, uniqueType } from "../../test/detection.ts";
import { createRule } from "./rule-endpoints.fixture.ts";

// Why an alert fired, on the real server with real detection.

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer();
});
afterAll(() => server.close());

const submit = async (...events: { type: string; raw: object; timestamp?: string }[]) => {
  for (const { raw, ...event } of events) {
    const answer = await server.call("POST", "/v1/events", {
      body: { source: "custom", severity: "low", data: raw, ...event },
    });
    expect(answer.status, answer.text).toBe(201);
  }
};
const alertOf = async (rule: { name: string }, eventCount: number) => {
  const [alert] = await eventually(
    () => alertsOf(server, rule),
    ([found]) => expect(found?.event_count).toBe(eventCount),
  );
  return (await server.call("GET", `/v1/alerts/${alert.id}`)).body.data;
};
const inMinute = (minute: number) => new Date(Date.now() - 3_600_000 + minute * 60_000).toISOString();
const stepsOf = (alert: any) =>
  alert.match.events.map(({ part, step, step_number }: any) => [part, step, step_number]).toReversed();

describe("the match of an alert", () => {
  test("names the fields of a rule on single events, with the values that matched", async () => {
    const type = uniqueType();
    const rule = await createRule(server, {
      conditions: [
        { field: "type", equals: type },
        {
          any: [
            { field: "raw.user", in: ["root", "admin"] },
            { field: "raw.port", gte: 1000 },
          ],
        },
      ],
    });
    await submit({ type, raw: { user: "admin", port: 22 } });
    const alert = await alertOf(rule, 1);
    expect(alert.match).toEqual({
      rule_as: "stored",
      kind: "single",
      window: null,
      group_by: [],
      threshold: null,
      order: null,
      steps_min: null,
      steps: [],
      absence: null,
      parts: [],
      events: [
        {
          event_id: alert.related_events[0].id,
          part: null,
          step: null,
          step_number: null,
          fields: [
            { field: "type", operator: "equals", value: type, expected: type },
            { field: "raw.user", operator: "in", value: "admin", expected: "admin" },
          ],
          complete: true,
        },
      ],
    });
  });

  test("has window, count and group of a threshold", async () => {
    const type = uniqueType();
    const rule = await createRule(server, {
      conditions: [{ field: "type", equals: type }],
      window: "5m",
      threshold: { count: 2, group_by: "raw.src_ip", distinct: "raw.user" },
    });
    await submit({ type, raw: { src_ip: "192.0.2.1", user: "a" } }, { type, raw: { src_ip: "192.0.2.1", user: "b" } });
    const { match } = await alertOf(rule, 2);
    expect(match).toMatchObject({ kind: "threshold", window: "5m", group_by: ["raw.src_ip"], steps: [] });
    expect(match.threshold).toMatchObject({ count: 2, distinct: ["raw.user"], gte: null });
    expect(match.events.map(({ fields }: any) => fields.length)).toEqual([1, 1]);
  });

  test("assigns the events of a sequence to its steps", async () => {
    const type = uniqueType();
    const rule = await createRule(server, {
      conditions: [{ field: "type", equals: type }],
      sequence: [
        { name: "refused", count: 2, conditions: [{ field: "raw.result", equals: "denied" }] },
        { name: "entered", conditions: [{ field: "raw.result", in: ["granted", "denied"] }] },
      ],
      group_by: "raw.door",
      window: "30m",
    });
    const at = (minute: number, result: string) => ({
      type,
      raw: { door: "Dock", result },
      timestamp: inMinute(minute),
    });
    await submit(at(0, "denied"), at(1, "denied"), at(2, "granted"), at(3, "denied"), at(4, "denied"), at(5, "denied"));
    const alert = await alertOf(rule, 6);
    expect(alert.match).toMatchObject({
      kind: "sequence",
      order: "in_order",
      steps: [
        { number: 1, name: "refused", count: 2, absent: false, part: null },
        { number: 2, name: "entered", count: 1, absent: false, part: null },
      ],
    });
    const once = [
      [null, "refused", 1],
      [null, "refused", 1],
      [null, "entered", 2],
    ];
    expect(stepsOf(alert)).toEqual([...once, ...once]);
    expect(alert.match.events.at(-3).fields.map(({ field, value }: any) => [field, value])).toEqual([
      ["type", type],
      ["raw.result", "granted"],
    ]);
    expect(alert.match.events.map(({ event_id }: any) => event_id)).toEqual(
      alert.related_events.map(({ id }: any) => id),
    );
  });

  test("names the part of a chain that counted an event", async () => {
    const [failure, success] = [uniqueType(), uniqueType()];
    const rule = await createRule(server, {
      conditions: [],
      parts: [
        {
          name: "many failures",
          conditions: [{ field: "type", equals: failure }],
          window: "10m",
          threshold: { count: 2, group_by: "raw.user" },
        },
      ],
      sequence: [
        { name: "failures", part: "many failures" },
        { name: "success", conditions: [{ field: "type", equals: success }] },
      ],
      group_by: "raw.user",
      window: "1h",
    });
    const raw = { user: "ada" };
    await submit(
      { type: failure, raw, timestamp: inMinute(1) },
      { type: failure, raw, timestamp: inMinute(2) },
      { type: success, raw, timestamp: inMinute(3) },
    );
    const alert = await alertOf(rule, 3);
    expect(stepsOf(alert)).toEqual([
      ["many failures", null, null],
      ["many failures", null, null],
      [null, "success", 2],
    ]);
    expect(alert.match.steps[0]).toMatchObject({ name: "failures", part: "many failures" });
    expect(alert.match.parts).toMatchObject([{ name: "many failures", kind: "threshold", window: "10m" }]);
  });

  test("is that of the rule at its last match, also after an edit, its deletion and a restart", async () => {
    const type = uniqueType();
    const conditions = [{ field: "type", equals: type }];
    const { id, ...rule } = await createRule(server, { conditions });
    await submit({ type, raw: {} });
    const before = await alertOf(rule, 1);
    const { name, description, severity, actions } = rule;
    const replaced = await server.call("PUT", `/v1/rules/${id}`, {
      body: {
        name,
        description,
        severity,
        enabled: true,
        actions,
        conditions: [...conditions, { field: "raw.x", equals: 1 }],
      },
    });
    expect(replaced.status, replaced.text).toBe(200);
    expect((await alertOf(rule, 1)).match).toEqual(before.match);
    await submit({ type, raw: { x: 1 } });
    const joined = await alertOf(rule, 2);
    // The first event does not meet the rule as it is now.
    expect(joined.match.events.map(({ fields }: any) => fields.length)).toEqual([2, 0]);
    expect((await server.call("DELETE", `/v1/rules/${id}`)).status).toBe(200);
    server = await server.restart();
    expect((await alertOf(rule, 2)).match).toEqual(joined.match);
  });

  test("of an alert without a stored definition is that of its rule, unless the rule has changed since", async () => {
    const type = uniqueType();
    const rule = await createRule(server, { conditions: [{ field: "type", equals: type }] });
    await submit({ type, raw: {} });
    const { id } = await alertOf(rule, 1);
    const { definitionId, ...stored } = (await server.store.alerts.get(id))!;
    expect(definitionId).toMatch(/^def_/);
    const older = { ...stored, version: stored.version + 1 };
    expect(await server.store.alerts.commit({ alerts: [older], timeline: [] })).toEqual([]);
    const matchOf = async () => (await server.call("GET", `/v1/alerts/${id}`)).body.data.match;
    expect(await matchOf()).toMatchObject({ rule_as: "current", kind: "single", events: [{ complete: true }] });
    await server.call("PATCH", `/v1/rules/${rule.id}`, { body: { severity: "high" } });
    expect(await matchOf()).toBeNull();
    await server.call("DELETE", `/v1/rules/${rule.id}`);
    expect(await matchOf()).toBeNull();
  });
});
