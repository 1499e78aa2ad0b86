import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changed, openTestServer, type TestServer } from "../../test/api-server.ts";
import type { Projection } from "../store/ports/projection.ts";
import { projectEvents } from "../detection/simulation/project-events.ts";
import type { Store } from "../store/ports/store.ts";

const DAY_MS = 86_400_000;
const now = Date.parse("2026-11-15T12:00:00Z");
const iso = (ms: number) => new Date(ms).toISOString();

/** Wraps the store and blocks projections while requested. */
let held: Promise<void> | undefined;
let begun = 0;
let aborted = 0;
const around = (store: Store): Store => {
  async function* project(projection: Projection, signal: AbortSignal) {
    signal.addEventListener("abort", () => aborted++);
    begun++;
    await held;
    yield* projectEvents(store.events, projection, signal);
  }
  return changed(store, { events: changed(store.events, { project }) });
};

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ now: () => now, around, settings: { rateLimits: false } });
  const at = (hours: number, minutes = 0) => iso(now - hours * 3_600_000 + minutes * 60_000);
  const logins = (hours: number, count: number, src_ip: string) =>
    Array.from({ length: count }, (_, i) => ({
      type: "login_failure",
      source: "custom",
      timestamp: at(hours, i),
      data: { src_ip, user: "alice", n: i },
    }));
  const body = [...logins(30, 6, "192.0.2.1"), ...logins(6, 5, "192.0.2.2"), ...logins(5, 4, "192.0.2.3")];
  const answer = await server.call("POST", "/v1/events/batch", { body });
  expect(answer.body.data.accepted).toBe(body.length);
});
afterAll(() => server.close());

const rule = {
  name: "site.logins",
  description: "Failed logins from one address",
  severity: "high",
  conditions: [{ field: "type", equals: "login_failure" }],
  window: "10m",
  threshold: { count: 5, group_by: "raw.src_ip" },
  actions: [{ alert: { channels: [] } }],
};
const week = { from: iso(now - 7 * DAY_MS), to: iso(now) };
const simulate = (body: unknown, key?: string) =>
  server.call("POST", "/v1/rules/simulate", { body, ...(key !== undefined && { key }) });

describe("POST /v1/rules/simulate", () => {
  test("counts over parts and inputs, and compares parts of a time, as live detection does", async () => {
    const { conditions, actions, ...head } = rule;
    const many = {
      name: "many",
      conditions,
      window: "2m",
      threshold: { count: 2, group_by: ["raw.src_ip", "raw.user"] },
    };
    const threshold = { count: 3, group_by: "raw.user", inputs: [{ part: "many" }] };
    const chained = { ...head, actions, conditions: [], parts: [many], window: "30m", threshold };
    const figures = async (tried: object) => (await simulate({ rule: tried, time_range: week })).body.data;
    // Six, five and four events make three, two and two pairs; only the three lie within half an hour.
    expect(await figures(chained)).toMatchObject({ matches: 15, alerts: 1 });
    const renamed = { conditions: [{ field: "raw.n", gte: 3 }], group_by: "raw.src_ip" };
    const inputs = [{ conditions: [{ field: "raw.n", lt: 3 }] }, renamed];
    const counting = { ...rule, threshold: { count: 3, group_by: "raw.user", inputs } };
    expect(await figures(counting)).toMatchObject({ matches: 15, alerts: 3 });
    const at = (time_part: string) => ({
      ...head,
      actions,
      conditions: [{ field: "timestamp", time_part }],
      window: null,
      threshold: null,
    });
    expect(await figures(at("hour 6-7"))).toMatchObject({ matches: 15 });
    expect(await figures(at("day 14"))).toMatchObject({ matches: 6 });
  });

  test("reports the effect of the rule and changes nothing", async () => {
    const { status, body } = await simulate({ rule, time_range: week });
    expect(status).toBe(200);
    const { sample_events, by_day, ...figures } = body.data;
    expect(figures).toEqual({
      matches: 15,
      alerts: 2,
      estimated_alerts_per_day: 2 / 7,
      false_positive_estimate: "low",
    });
    expect(sample_events.length).toBe(10);
    expect(sample_events[0]).toMatchObject({ type: "login_failure", raw: { src_ip: "192.0.2.3", n: 3 } });
    const times = sample_events.map(({ timestamp }: { timestamp: string }) => timestamp);
    expect(times).toEqual([...times].sort().reverse());
    expect(by_day.length).toBe(8);
    expect(by_day.slice(-2)).toEqual([
      { day: "2026-11-14", matches: 6, alerts: 1 },
      { day: "2026-11-15", matches: 9, alerts: 1 },
    ]);
    const rules = await server.call("GET", "/v1/rules?search=site.logins");
    expect(rules.body.pagination.total).toBe(0);
  });

  test("accepts the name of an existing rule, and exceptions", async () => {
    const made = await server.call("POST", "/v1/rules", { body: { ...rule, name: "site.taken" } });
    expect(made.status).toBe(201);
    const exceptions = [{ conditions: [{ field: "raw.src_ip", equals: "192.0.2.1" }], reason: "the scanner" }];
    const { status, body } = await simulate({ rule: { ...rule, name: "site.taken", exceptions }, time_range: week });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ matches: 9, alerts: 1 });
  });

  test("accepts exceptions as they are read", async () => {
    const exception = { conditions: [{ field: "raw.src_ip", equals: "192.0.2.1" }], reason: "the scanner" };
    const made = await server.call("POST", "/v1/rules", {
      body: { ...rule, name: "site.read", exceptions: [exception] },
    });
    const { exceptions } = (await server.call("GET", `/v1/rules/${made.body.data.id}`)).body.data;
    expect(exceptions).toMatchObject([{ id: expect.any(String), author: "test", created_at: expect.any(String) }]);
    for (const name of ["site.read", "site.copy_of_it"]) {
      const { status, body, text } = await simulate({ rule: { ...rule, name, exceptions }, time_range: week });
      expect(status, text).toBe(200);
      expect(body.data).toMatchObject({ matches: 9, alerts: 1 });
    }
    const wrong = await simulate({
      rule: { ...rule, exceptions: [{ ...exceptions[0], colour: 1 }] },
      time_range: week,
    });
    expect(wrong.body.error.details).toMatchObject([{ field: "rule.exceptions[0].colour" }]);
  });

  test("requires both scopes, because it returns events", async () => {
    for (const scope of ["rules:read", "events:read"] as const) {
      const { secret } = await server.addKey({ scopes: [scope] });
      expect((await simulate({ rule, time_range: week }, secret)).status).toBe(403);
    }
    const { secret } = await server.addKey({ scopes: ["rules:read", "events:read"] });
    expect((await simulate({ rule, time_range: week }, secret)).status).toBe(200);
  });

  test.each([
    ["7 days and a millisecond", { time_range: { from: iso(now - 7 * DAY_MS - 1), to: iso(now) } }, "time_range"],
    ["a reversed range", { time_range: { from: iso(now), to: iso(now - 1) } }, "time_range.from"],
    ["no range", {}, "time_range"],
    ["half a range", { time_range: { from: iso(now) } }, "time_range.to"],
    ["an invalid time", { time_range: { from: "yesterday", to: iso(now) } }, "time_range.from"],
    ["no rule", { rule: undefined, time_range: week }, "rule"],
    ["a rule without conditions", { rule: { ...rule, conditions: [] }, time_range: week }, "rule.conditions"],
    [
      "a fault deep in the rule",
      { rule: { ...rule, conditions: [{ any: [{ field: "raw.x", cidr: "10" }] }] }, time_range: week },
      "rule.conditions[0].any[0].cidr",
    ],
    ["another field", { time_range: week, more: 1 }, "more"],
  ])("refuses %s with its path", async (_, body, field) => {
    const answer = await simulate({ rule, ...body });
    expect(answer.status).toBe(400);
    expect(answer.body.error.details.map((fault: { field: string }) => fault.field)).toContain(field);
  });

  test("accepts ranges of exactly 7 days and of zero length", async () => {
    expect((await simulate({ rule, time_range: week })).status).toBe(200);
    const { status, body } = await simulate({ rule, time_range: { from: iso(now), to: iso(now) } });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ matches: 0, estimated_alerts_per_day: 0, by_day: [] });
  });

  test("refuses simulations past the limit with Retry-After", async () => {
    let release = () => {};
    held = new Promise((resolve) => (release = resolve));
    const before = begun;
    const by = ({ secret }: { secret: string }) =>
      server.call("POST", "/v1/rules/simulate", { body: { rule, time_range: week }, key: secret });
    const running = [by(server.key)];
    await expect.poll(() => begun).toBe(before + 1);
    // One key runs one at a time, so that others get a slot.
    const second = await by(server.key);
    expect([second.status, second.body.error.code]).toEqual([429, "rate_limited"]);
    expect(Number(second.headers["retry-after"])).toBeGreaterThan(0);
    running.push(by(await server.addKey()));
    await expect.poll(() => begun).toBe(before + 2);
    const third = await by(await server.addKey());
    expect(third.status).toBe(503);
    expect(third.body.error.code).toBe("unavailable");
    expect(Number(third.headers["retry-after"])).toBeGreaterThan(0);
    held = undefined;
    release();
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test("aborts when the client disconnects, and frees its slot", async () => {
    let release = () => {};
    held = new Promise((resolve) => (release = resolve));
    const before = { begun, aborted };
    for (let i = 1; i <= 2; i++) {
      const sent = httpRequest({
        host: "127.0.0.1",
        port: server.port,
        method: "POST",
        path: "/v1/rules/simulate",
        headers: { authorization: `Bearer ${(await server.addKey()).secret}`, "content-type": "application/json" },
      });
      sent.on("error", () => undefined);
      sent.end(JSON.stringify({ rule, time_range: week }));
      await expect.poll(() => begun).toBe(before.begun + i);
      sent.destroy();
    }
    await expect.poll(() => aborted).toBe(before.aborted + 2);
    held = undefined;
    release();
    await expect.poll(async () => (await simulate({ rule, time_range: week })).status).toBe(200);
  });
});
