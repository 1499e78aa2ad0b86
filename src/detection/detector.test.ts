import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { alertsOf, eventually, uniqueType } from "../../test/detection.ts";

// From a submitted event to an alert, over the real server, store and threads.

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer();
});
afterAll(() => server.close());

async function makeRule(type: string, more: object = {}): Promise<{ id: string; name: string }> {
  const body = {
    name: `test.${uniqueType()}`,
    description: "A rule\n\nmore about it",
    severity: "high",
    conditions: [{ field: "type", equals: type }],
    actions: [{ alert: { channels: [] } }],
    ...more,
  };
  const answer = await server.call("POST", "/v1/rules", { body });
  expect(answer.status, answer.text).toBe(201);
  return answer.body.data;
}

async function submit(type: string, data: object = {}, at?: number): Promise<string> {
  const timestamp = at === undefined ? {} : { timestamp: new Date(at).toISOString() };
  const answer = await server.call("POST", "/v1/events", { body: { type, source: "custom", data, ...timestamp } });
  expect(answer.status, answer.text).toBe(201);
  return answer.body.data.id;
}

const detail = async (id: string) => (await server.call("GET", `/v1/alerts/${id}`)).body.data;
const statsOf = async ({ id }: { id: string }) => (await server.call("GET", `/v1/rules/${id}`)).body.data.stats;

describe("an event that matches", () => {
  test("becomes an alert with its values and counts for the rule", async () => {
    const type = uniqueType();
    const rule = await makeRule(type, { title: "Trouble at {{raw.host}} by {{raw.user}}" });
    const before = Date.now();
    const id = await submit(type, { host: "gate-1", user: "{{raw.host}}<b>" });
    const [alert] = await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts).toHaveLength(1),
    );
    expect(alert).toMatchObject({
      title: "Trouble at gate-1 by {{raw.host}}<b>",
      severity: "high",
      status: "open",
      source: "custom",
      event_count: 1,
    });
    const whole = await detail(alert.id);
    expect(whole.related_events.map((event: { id: string }) => event.id)).toEqual([id]);
    expect(whole.timeline.map(({ kind, actor }: any) => [kind, actor])).toEqual([["created", "system"]]);
    expect(whole.rule).toMatchObject({ id: rule.id, name: rule.name });
    const stats = await statsOf(rule);
    expect(stats).toMatchObject({ matches_24h: 1, matches_7d: 1 });
    expect(Date.parse(stats.last_match)).toBeGreaterThanOrEqual(before);
  });

  test("joins the alert of its incident, and not that of another group", async () => {
    const type = uniqueType();
    const rule = await makeRule(type, { dedup: { by: "raw.user" } });
    for (const user of ["ann", "bob", "ann", "ann"]) await submit(type, { user });
    const alerts = await eventually(
      () => alertsOf(server, rule),
      (found) => expect(found.map(({ event_count }) => event_count).sort()).toEqual([1, 3]),
    );
    expect(alerts).toHaveLength(2);
  });

  test("of several days ago counts in the statistics of seven days, not of one", async () => {
    const type = uniqueType();
    const rule = await makeRule(type);
    await submit(type, {}, Date.now() - 25 * 3_600_000);
    await submit(type);
    await eventually(
      () => statsOf(rule),
      (stats) => expect(stats).toMatchObject({ matches_24h: 1, matches_7d: 2 }),
    );
  });
});

describe("a threshold", () => {
  test("fires at the last of its events, regardless of their order, and continues to count", async () => {
    const type = uniqueType();
    const rule = await makeRule(type, { window: "1m", threshold: { count: 3, group_by: "raw.ip" } });
    const at = Date.now() - 600_000;
    await submit(type, { ip: "a" }, at + 50_000);
    await submit(type, { ip: "b" }, at + 40_000);
    await submit(type, { ip: "a" }, at);
    await submit(type, {}, at);
    await submit(type, { ip: "a" }, at + 20_000);
    const [alert] = await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([3]),
    );
    expect((await detail(alert.id)).group).toEqual({ field: "raw.ip", value: "a" });
    await submit(type, { ip: "a" }, at + 55_000);
    await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([4]),
    );
    expect((await statsOf(rule)).matches_24h).toBe(6);
  });

  test("keeps its counts across a restart", async () => {
    const type = uniqueType();
    const rule = await makeRule(type, { window: "1h", threshold: { count: 3, group_by: "raw.ip" } });
    await submit(type, { ip: "a" });
    await submit(type, { ip: "a" });
    server = await server.restart();
    await submit(type, { ip: "a" });
    await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([3]),
    );
    server = await server.restart();
    await submit(type, { ip: "a" });
    await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([4]),
    );
  });
});

test("an event of several groups counts once in their alert, alone or in a batch, and across a restart", async () => {
  const type = uniqueType();
  const memory = { window: "5m", threshold: { count: 2, group_by: "raw.arr" } };
  const rule = await makeRule(type, { ...memory, dedup: { by: "raw.h" } });
  const counted = (wanted: number[]) =>
    eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count).sort()).toEqual(wanted),
    );
  const ids = [await submit(type, { arr: ["x", "y", "z"], h: 1 }), await submit(type, { arr: ["x", "y"], h: 1 })];
  await counted([2]);
  const body = ["p", "q"].map(() => ({ type, source: "custom", data: { arr: ["p", "q"], h: 2 } }));
  await server.call("POST", "/v1/events/batch", { body });
  await counted([2, 2]);
  server = await server.restart();
  ids.push(await submit(type, { arr: "z", h: 1 }));
  const alerts = await counted([2, 3]);
  const whole = await detail(alerts.find(({ event_count }) => event_count === 3)!.id);
  expect(whole.related_events_total).toBe(3);
  expect(whole.related_events.map(({ id }: { id: string }) => id)).toEqual(ids.toReversed());
});

test("a late event counts with its neighbours after hundreds of others, as in a simulation", async () => {
  const type = uniqueType();
  const more = { window: "60s", threshold: { count: 3, group_by: "raw.g" } };
  const rule = await makeRule(type, more);
  const at = Date.now() - 20 * 3_600_000;
  const times = [0, 30, ...Array.from({ length: 262 }, (_, i) => 3600 + i * 100)];
  const event = (seconds: number) => ({
    type,
    source: "custom",
    data: { g: 1 },
    timestamp: new Date(at + seconds * 1000),
  });
  await server.call("POST", "/v1/events/batch", { body: times.map(event) });
  await server.call("POST", "/v1/events", { body: event(10) });
  await eventually(
    () => alertsOf(server, rule),
    (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([3]),
  );
  const tried = {
    name: rule.name,
    description: "The same",
    severity: "high",
    conditions: [{ field: "type", equals: type }],
    actions: [{ alert: { channels: [] } }],
    ...more,
  };
  const time_range = { from: new Date(at - 1000), to: new Date() };
  const { body } = await server.call("POST", "/v1/rules/simulate", { body: { rule: tried, time_range } });
  expect(body.data).toMatchObject({ matches: 265, alerts: 1 });
});

describe("late events are remembered", () => {
  const at = Date.now() - 3 * 3_600_000;
  type Rule = { id: string; name: string };
  const steps: [string, (rule: Rule) => Promise<unknown>][] = [
    ["across a restart", async () => (server = await server.restart())],
    [
      "across a change of the severity",
      ({ id }) => server.call("PATCH", `/v1/rules/${id}`, { body: { severity: "low" } }),
    ],
    [
      "when an exception is added",
      ({ id }) =>
        server.call("POST", `/v1/rules/${id}/exceptions`, {
          body: { conditions: [{ field: "raw.user", equals: "scanner" }], reason: "ours" },
        }),
    ],
  ];

  test.each(steps)("by a threshold %s", async (_, step) => {
    const type = uniqueType();
    const rule = await makeRule(type, { window: "5m", threshold: { count: 3, group_by: "raw.g" } });
    await submit(type, { g: "a" }, at);
    await submit(type, { g: "a" }, at + 1000);
    await step(rule);
    await submit(type, { g: "a" }, at + 2000);
    await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([3]),
    );
  });

  test.each(steps)("by a sequence %s", async (_, step) => {
    const type = uniqueType();
    const sequence = ["first", "second"].map((name) => ({ name, conditions: [{ field: "raw.step", equals: name }] }));
    const rule = await makeRule(type, { window: "5m", group_by: "raw.g", sequence });
    await submit(type, { g: "a", step: "first" }, at);
    await step(rule);
    await submit(type, { g: "a", step: "second" }, at + 1000);
    await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([2]),
    );
  });
});

describe("excepted events stay uncounted", () => {
  test.each([
    ["and a restart", async () => (server = await server.restart())],
    [
      "and a change of the severity",
      ({ id }: { id: string }) => server.call("PATCH", `/v1/rules/${id}`, { body: { severity: "low" } }),
    ],
  ])("after the exception ends %s", async (_, step) => {
    const type = uniqueType();
    const rule = await makeRule(type, { window: "1h", threshold: { count: 3, group_by: "raw.g" } });
    const { body } = await server.call("POST", `/v1/rules/${rule.id}/exceptions`, {
      body: { conditions: [{ field: "raw.user", equals: "scanner" }], reason: "ours" },
    });
    for (let i = 0; i < 3; i++) await submit(type, { g: "a", user: "scanner" });
    await server.call("DELETE", `/v1/rules/${rule.id}/exceptions/${body.data.id}`);
    await step(rule);
    await submit(type, { g: "a", user: "ann" });
    await submit(type, { g: "a", user: "scanner" });
    await eventually(
      () => statsOf(rule),
      (stats) => expect(stats.matches_24h).toBe(2),
    );
    expect(await alertsOf(server, rule)).toEqual([]);
    await submit(type, { g: "a", user: "ann" });
    await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([3]),
    );
  });
});

test("a sequence across event types fires once, when its steps have happened in order", async () => {
  const [door, camera] = [uniqueType(), uniqueType()];
  const rule = await makeRule(door, {
    conditions: [],
    window: "10m",
    group_by: "raw.site",
    sequence: [
      { name: "door denied", conditions: [{ field: "type", equals: door }] },
      { name: "person seen", conditions: [{ field: "type", equals: camera }] },
    ],
  });
  const at = Date.now() - 3_600_000;
  await submit(camera, { site: "north" }, at);
  await submit(door, { site: "north" }, at + 60_000);
  await submit(camera, { site: "south" }, at + 70_000);
  await submit(camera, { site: "north" }, at + 90_000);
  const [alert] = await eventually(
    () => alertsOf(server, rule),
    (alerts) => expect(alerts).toHaveLength(1),
  );
  expect(alert).toMatchObject({ event_count: 2 });
  expect((await detail(alert.id)).group).toEqual({ field: "raw.site", value: "north" });
});

describe("a change of a rule", () => {
  test("is in force for the next event: disabled, enabled again, excepted, deleted", async () => {
    const type = uniqueType();
    const rule = await makeRule(type, { dedup: { by: "raw.n" } });
    const counted = async () => (await alertsOf(server, rule)).length;
    await submit(type, { n: 1 });
    await server.call("PATCH", `/v1/rules/${rule.id}`, { body: { enabled: false } });
    await submit(type, { n: 2 });
    await server.call("PATCH", `/v1/rules/${rule.id}`, { body: { enabled: true } });
    await submit(type, { n: 3 });
    await server.call("POST", `/v1/rules/${rule.id}/exceptions`, {
      body: { conditions: [{ field: "raw.n", gte: 4 }], reason: "enough" },
    });
    await submit(type, { n: 4 });
    await server.call("DELETE", `/v1/rules/${rule.id}`);
    await submit(type, { n: 1 });
    const witness = await makeRule(uniqueType(), { conditions: [{ field: "raw.witness", equals: type }] });
    await submit(type, { witness: type });
    await eventually(
      () => alertsOf(server, witness),
      (alerts) => expect(alerts).toHaveLength(1),
    );
    expect(await counted()).toBe(2);
  });

  test("clears the memory: events from before an edit do not count with later ones", async () => {
    const type = uniqueType();
    const threshold = { window: "1h", threshold: { count: 2 } };
    const { id, ...rule } = await makeRule(type, threshold);
    await submit(type);
    const body = {
      name: rule.name,
      description: "edited",
      severity: "low",
      enabled: true,
      conditions: [{ field: "type", equals: type }],
      actions: [{ alert: { channels: [] } }],
      ...threshold,
    };
    expect((await server.call("PUT", `/v1/rules/${id}`, { body })).status).toBe(200);
    await submit(type);
    await submit(type);
    await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([2]),
    );
  });
});

test("deleting a rule while it fires keeps its alert, and the other rules continue", async () => {
  const type = uniqueType();
  const rule = await makeRule(type);
  const other = await makeRule(type);
  const headers = { "content-type": "application/x-ndjson" };
  const body = `${JSON.stringify({ type, source: "custom", data: {} })}\n`.repeat(1000);
  const sending = Promise.all([1, 2, 3, 4, 5].map(() => server.call("POST", "/v1/events/batch", { body, headers })));
  await eventually(
    () => alertsOf(server, rule),
    (alerts) => expect(alerts).toHaveLength(1),
  );
  expect((await server.call("DELETE", `/v1/rules/${rule.id}`)).status).toBe(200);
  const [{ event_count: counted }] = await alertsOf(server, rule);
  await sending;
  await eventually(
    () => alertsOf(server, other),
    (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([5000]),
  );
  const left = await alertsOf(server, rule);
  expect(left).toHaveLength(1);
  expect(left[0]).toMatchObject({ event_count: counted, status: "open" });
});

test("a clock that is set back stops nothing: every event is processed, and each alert has a unique id", async () => {
  let shift = 0;
  const shifted = await openTestServer({ now: () => Date.now() + shift });
  try {
    const body = {
      name: "test.clock",
      description: "Each is an alert",
      severity: "low",
      conditions: [{ field: "type", equals: "tick" }],
      dedup: { by: "raw.n" },
      actions: [{ alert: { channels: [] } }],
    };
    expect((await shifted.call("POST", "/v1/rules", { body })).status).toBe(201);
    for (const n of [1, 2, 3]) {
      await shifted.call("POST", "/v1/events", { body: { type: "tick", source: "custom", data: { n } } });
      shift -= 3_600_000;
    }
    const list = () => alertsOf(shifted, { name: "test.clock" });
    const alerts = await eventually(list, (found) => expect(found).toHaveLength(3));
    expect(new Set(alerts.map(({ id }) => id)).size).toBe(3);
  } finally {
    await shifted.close();
  }
});

test("resolving a false positive adds an exception to its rule in the same call", async () => {
  const type = uniqueType();
  const rule = await makeRule(type, { dedup: { by: "raw.host" } });
  await submit(type, { host: "lab" });
  const [alert] = await eventually(
    () => alertsOf(server, rule),
    (alerts) => expect(alerts).toHaveLength(1),
  );
  const exception = { conditions: [{ field: "raw.host", equals: "lab" }], reason: "a test bench" };
  const resolved = await server.call("POST", `/v1/alerts/${alert.id}/resolve`, {
    body: { resolution: "false_positive", exception },
  });
  expect(resolved.status, resolved.text).toBe(200);
  await submit(type, { host: "lab" });
  await submit(type, { host: "gate" });
  await eventually(
    () => alertsOf(server, rule),
    (alerts) => expect(alerts).toHaveLength(2),
  );
  const { exceptions } = (await server.call("GET", `/v1/rules/${rule.id}`)).body.data;
  expect(exceptions).toMatchObject([exception]);
  expect(resolved.body.data.timeline.at(-1)).toMatchObject({
    kind: "resolved",
    exception: { id: exceptions[0].id, reason: "a test bench" },
  });
});

test("concurrent resolutions of a false positive leave one exception on the rule", async () => {
  const type = uniqueType();
  const rule = await makeRule(type);
  await submit(type, { host: "lab" });
  const [alert] = await eventually(
    () => alertsOf(server, rule),
    (alerts) => expect(alerts).toHaveLength(1),
  );
  const answers = await Promise.all(
    ["first", "second", "third", "fourth"].map((reason) => {
      const exception = { conditions: [{ field: "raw.host", equals: reason }], reason };
      const body = { resolution: "false_positive", exception };
      return server.call("POST", `/v1/alerts/${alert.id}/resolve`, { body });
    }),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
  const { timeline } = answers.find(({ status }) => status === 200)!.body.data;
  const { exceptions } = (await server.call("GET", `/v1/rules/${rule.id}`)).body.data;
  expect(exceptions.map(({ id }: { id: string }) => id)).toEqual([timeline.at(-1).exception.id]);
});

test("a rule that matches everything raises one alert that counts every event", async () => {
  const type = uniqueType();
  const rule = await makeRule(type);
  const event = JSON.stringify({ type, source: "custom", data: { text: "all of it" } });
  const body = Array.from({ length: 5000 }, () => event).join("\n");
  const headers = { "content-type": "application/x-ndjson" };
  const answers = await Promise.all([1, 2, 3, 4].map(() => server.call("POST", "/v1/events/batch", { body, headers })));
  expect(answers.map(({ body: { data } }) => data.accepted)).toEqual([5000, 5000, 5000, 5000]);
  const [alert] = await eventually(
    () => alertsOf(server, rule),
    (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([20_000]),
  );
  const { related_events, related_events_total, timeline } = await detail(alert.id);
  expect(related_events).toHaveLength(50);
  expect(related_events_total).toBe(20_000);
  expect(timeline.map(({ kind }: { kind: string }) => kind)).toEqual(["created", "events_added"]);
  expect((await statsOf(rule)).matches_24h).toBe(20_000);
});

test("the readiness check and the metrics show the progress of detection", async () => {
  const ready = await server.call("GET", "/readyz");
  expect(ready.body.data).toMatchObject({ status: "ready", detection: { lag_seconds: expect.any(Number) } });
  const { text } = await server.call("GET", "/metrics");
  expect(text).toMatch(/^tocsin_detection_lag_seconds \d/m);
  expect(text).toMatch(/^tocsin_detection_events_total [1-9]/m);
});
