import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { changed, openTestServer, type TestServer } from "../../test/api-server.ts";
import { QuestionRefused, StoreUnavailable } from "../store/store.ts";

// From a submitted event to an alert, over the real server, store and threads.

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer();
});
afterAll(() => server.close());

const PATIENCE_MS = 15_000;

/** Asks again until the answer holds: detection runs beside the requests. */
async function eventually<Value>(ask: () => Promise<Value>, holds: (value: Value) => void): Promise<Value> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await ask();
    try {
      holds(value);
      return value;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(20);
    }
  }
}

let made = 0;
const uniqueType = () => `kind_${++made}`;

async function makeRule(type: string, more: object = {}): Promise<{ id: string; name: string }> {
  const body = {
    name: `test.${type}_${++made}`,
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

const alertsOf = async ({ name }: { name: string }, from = server) =>
  (await from.call("GET", `/v1/alerts?rule_name=${name}`)).body.data as any[];
const detail = async (id: string) => (await server.call("GET", `/v1/alerts/${id}`)).body.data;
const statsOf = async ({ id }: { id: string }) => (await server.call("GET", `/v1/rules/${id}`)).body.data.stats;

describe("an event that matches", () => {
  test("becomes an alert that is filled from it, and counts for the rule", async () => {
    const type = uniqueType();
    const rule = await makeRule(type, { title: "Trouble at {{raw.host}} by {{raw.user}}" });
    const before = Date.now();
    const id = await submit(type, { host: "gate-1", user: "{{raw.host}}<b>" });
    const [alert] = await eventually(
      () => alertsOf(rule),
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

  test("is added to the alert that its attack has already, and not to another group's", async () => {
    const type = uniqueType();
    const rule = await makeRule(type, { dedup: { by: "raw.user" } });
    for (const user of ["ann", "bob", "ann", "ann"]) await submit(type, { user });
    const alerts = await eventually(
      () => alertsOf(rule),
      (found) => expect(found.map(({ event_count }) => event_count).sort()).toEqual([1, 3]),
    );
    expect(alerts).toHaveLength(2);
  });

  test("of long ago counts for seven days, not for one", async () => {
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
  test("fires at the last of its events, in whatever order they come, and goes on counting", async () => {
    const type = uniqueType();
    const rule = await makeRule(type, { window: "1m", threshold: { count: 3, group_by: "raw.ip" } });
    const at = Date.now() - 600_000;
    await submit(type, { ip: "a" }, at + 50_000);
    await submit(type, { ip: "b" }, at + 40_000);
    await submit(type, { ip: "a" }, at);
    await submit(type, {}, at);
    await submit(type, { ip: "a" }, at + 20_000);
    const [alert] = await eventually(
      () => alertsOf(rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([3]),
    );
    expect((await detail(alert.id)).group).toEqual({ field: "raw.ip", value: "a" });
    await submit(type, { ip: "a" }, at + 55_000);
    await eventually(
      () => alertsOf(rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([4]),
    );
    expect((await statsOf(rule)).matches_24h).toBe(6);
  });

  test("remembers over a restart what it has counted", async () => {
    const type = uniqueType();
    const rule = await makeRule(type, { window: "1h", threshold: { count: 3, group_by: "raw.ip" } });
    await submit(type, { ip: "a" });
    await submit(type, { ip: "a" });
    server = await server.restart();
    await submit(type, { ip: "a" });
    await eventually(
      () => alertsOf(rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([3]),
    );
    server = await server.restart();
    await submit(type, { ip: "a" });
    await eventually(
      () => alertsOf(rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([4]),
    );
  });
});

describe("what came late is remembered as well", () => {
  const at = Date.now() - 3 * 3_600_000;
  type Rule = { id: string; name: string };
  const steps: [string, (rule: Rule) => Promise<unknown>][] = [
    ["over a restart", async () => (server = await server.restart())],
    [
      "over a change of the severity",
      ({ id }) => server.call("PATCH", `/v1/rules/${id}`, { body: { severity: "low" } }),
    ],
    [
      "when an exception is made",
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
      () => alertsOf(rule),
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
      () => alertsOf(rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([2]),
    );
  });
});

describe("what an exception has stopped stays uncounted", () => {
  test.each([
    ["and a restart", async () => (server = await server.restart())],
    [
      "and a change of the severity",
      ({ id }: { id: string }) => server.call("PATCH", `/v1/rules/${id}`, { body: { severity: "low" } }),
    ],
  ])("after its end %s", async (_, step) => {
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
    expect(await alertsOf(rule)).toEqual([]);
    await submit(type, { g: "a", user: "ann" });
    await eventually(
      () => alertsOf(rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([3]),
    );
  });
});

test("a sequence across kinds of events fires once, when its steps have happened in order", async () => {
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
    () => alertsOf(rule),
    (alerts) => expect(alerts).toHaveLength(1),
  );
  expect(alert).toMatchObject({ event_count: 2 });
  expect((await detail(alert.id)).group).toEqual({ field: "raw.site", value: "north" });
});

describe("a change of a rule", () => {
  test("is in force for the next event: disabled, enabled again, excepted, deleted", async () => {
    const type = uniqueType();
    const rule = await makeRule(type, { dedup: { by: "raw.n" } });
    const counted = async () => (await alertsOf(rule)).length;
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
      () => alertsOf(witness),
      (alerts) => expect(alerts).toHaveLength(1),
    );
    expect(await counted()).toBe(2);
  });

  test("begins anew: what came before an edit is not counted by what came after", async () => {
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
      () => alertsOf(rule),
      (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([2]),
    );
  });
});

describe("an absence", () => {
  let shift = 0;
  let shifted: TestServer;
  beforeAll(async () => {
    shifted = await openTestServer({ now: () => Date.now() + shift });
  });
  afterAll(() => shifted.close());

  const waitFor = async (type: string, more: object = {}) => {
    const body = {
      name: `test.${type}_${++made}`,
      description: "Something is missed",
      title: "No {{type}} from {{raw.host}}",
      severity: "high",
      conditions: [{ field: "type", equals: type }],
      group_by: "raw.host",
      absence: "1m",
      actions: [{ alert: { channels: [] } }],
      ...more,
    };
    const answer = await shifted.call("POST", "/v1/rules", { body });
    expect(answer.status, answer.text).toBe(201);
    return answer.body.data as { id: string; name: string };
  };
  const see = async (type: string, timestamp?: string) => {
    const body = { type, source: "custom", data: { host: "gate" }, ...(timestamp && { timestamp }) };
    const answer = await shifted.call("POST", "/v1/events", { body });
    expect(answer.status, answer.text).toBe(201);
  };
  const alertsFor = (rule: { name: string }) => alertsOf(rule, shifted);
  const missed = (rule: { name: string }) =>
    eventually(
      () => alertsFor(rule),
      (alerts) => expect(alerts).toHaveLength(1),
    );
  /** A silence is measured by what has been looked at. */
  const lookedAt = (rule: { id: string }, count: number) =>
    eventually(
      async () => (await shifted.call("GET", `/v1/rules/${rule.id}`)).body.data.stats,
      (stats) => expect(stats.matches_7d).toBe(count),
    );

  test("goes on over a restart, and says what was last seen and when that happened", async () => {
    const type = uniqueType();
    const rule = await waitFor(type);
    const timestamp = new Date(Date.now() + shift - 600_000).toISOString();
    await see(type, timestamp);
    await lookedAt(rule, 1);
    shift += 40_000;
    shifted = await shifted.restart();
    shift += 30_000;
    const [alert] = await missed(rule);
    expect(alert).toMatchObject({
      title: `No ${type} from gate`,
      source: "custom",
      event_count: 0,
      first_event_at: timestamp,
      last_event_at: timestamp,
    });
  });

  test("that a rule was told to forget is not missed after a restart", async () => {
    const type = uniqueType();
    const [edited, switched, witness] = [await waitFor(type), await waitFor(type), await waitFor(type)];
    await see(type);
    await lookedAt(witness, 1);
    const { body } = await shifted.call("GET", `/v1/rules/${edited.id}`);
    const { name, description, severity, actions, absence, group_by, enabled } = body.data;
    const conditions = [{ field: "type", equals: uniqueType() }];
    const put = { name, description, severity, actions, absence, group_by, enabled, conditions };
    expect((await shifted.call("PUT", `/v1/rules/${edited.id}`, { body: put })).status).toBe(200);
    for (const on of [false, true]) await shifted.call("PATCH", `/v1/rules/${switched.id}`, { body: { enabled: on } });
    shifted = await shifted.restart();
    shift += 120_000;
    await missed(witness);
    expect(await alertsFor(edited)).toEqual([]);
    expect(await alertsFor(switched)).toEqual([]);
  });

  test("that comes again soon is added to its alert, and the timeline says so", async () => {
    const type = uniqueType();
    const rule = await waitFor(type);
    await see(type);
    await lookedAt(rule, 1);
    shift += 70_000;
    const [alert] = await missed(rule);
    const timestamp = new Date(Date.now() + shift).toISOString();
    await see(type, timestamp);
    await lookedAt(rule, 2);
    shift += 70_000;
    const whole = await eventually(
      async () => (await shifted.call("GET", `/v1/alerts/${alert.id}`)).body.data,
      ({ timeline }) => expect(timeline).toHaveLength(2),
    );
    expect(whole.timeline[1]).toMatchObject({ kind: "events_added", count: 0, silent_since: timestamp });
    expect(whole.last_event_at).toBe(timestamp);
  });
});

test("a silence that cannot be told of is told of later, and the log and the metrics say that it had to be tried again", async () => {
  let shift = 0;
  let failures = 0;
  const troubled = await openTestServer({
    now: () => Date.now() + shift,
    around: (store) => ({
      ...store,
      alerts: changed(store.alerts, {
        async commit(changes) {
          if (changes.alerts.length > 0 && failures-- > 0) throw new Error("torn");
          return store.alerts.commit(changes);
        },
      }),
    }),
  });
  try {
    const body = {
      name: "test.silence",
      description: "Something is missed",
      severity: "high",
      conditions: [{ field: "type", equals: "sign" }],
      absence: "1m",
      actions: [{ alert: { channels: [] } }],
    };
    expect((await troubled.call("POST", "/v1/rules", { body })).status).toBe(201);
    await troubled.call("POST", "/v1/events", { body: { type: "sign", source: "custom", data: {} } });
    await eventually(
      async () => (await troubled.call("GET", "/v1/rules?search=test.silence")).body.data[0].stats.matches_7d as number,
      (matches) => expect(matches).toBe(1),
    );
    failures = 2;
    shift = 120_000;
    await eventually(
      () => alertsOf(body, troubled),
      (alerts) => expect(alerts).toHaveLength(1),
    );
    const told = troubled.log.filter(({ msg }) => msg === "silences cannot be told of; trying again");
    expect(told).toMatchObject([{ level: "warn", err: { message: "torn" } }]);
    expect((await troubled.call("GET", "/metrics")).text).toMatch(/^tocsin_detection_retries_total 2$/m);
  } finally {
    await troubled.close();
  }
});

test("a rule that is deleted while it fires leaves its alert as it is, and the others go on", async () => {
  const type = uniqueType();
  const rule = await makeRule(type);
  const other = await makeRule(type);
  const headers = { "content-type": "application/x-ndjson" };
  const body = `${JSON.stringify({ type, source: "custom", data: {} })}\n`.repeat(1000);
  const sending = Promise.all([1, 2, 3, 4, 5].map(() => server.call("POST", "/v1/events/batch", { body, headers })));
  await eventually(
    () => alertsOf(rule),
    (alerts) => expect(alerts).toHaveLength(1),
  );
  expect((await server.call("DELETE", `/v1/rules/${rule.id}`)).status).toBe(200);
  const [{ event_count: counted }] = await alertsOf(rule);
  await sending;
  await eventually(
    () => alertsOf(other),
    (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([5000]),
  );
  const left = await alertsOf(rule);
  expect(left).toHaveLength(1);
  expect(left[0]).toMatchObject({ event_count: counted, status: "open" });
});

test("what comes while rules are filled again waits, and the lag says how long", async () => {
  const gate = Promise.withResolvers<void>();
  let isShut = false;
  let slow = await openTestServer({
    around: (store) => ({
      ...store,
      events: changed(store.events, {
        async *scanLast(...question) {
          if (isShut) await gate.promise;
          yield* store.events.scanLast(...question);
        },
      }),
    }),
  });
  try {
    const body = { type: "slow_start", source: "custom", data: {} };
    const counted = {
      name: "test.slow_start",
      description: "Slow",
      severity: "low",
      conditions: [{ field: "type", equals: body.type }],
      window: "1h",
      threshold: { count: 2 },
      actions: [{ alert: { channels: [] } }],
    };
    expect((await slow.call("POST", "/v1/rules", { body: counted })).status).toBe(201);
    const matches = async () =>
      (await slow.call("GET", "/v1/rules?search=slow_start")).body.data[0].stats.matches_24h as number;
    await slow.call("POST", "/v1/events", { body });
    await eventually(matches, (count) => expect(count).toBe(1));
    isShut = true;
    slow = await slow.restart();
    const detection = async () => (await slow.call("GET", "/readyz")).body.data.detection;
    expect(await detection()).toEqual({ status: "warming_up", lag_seconds: 0 });
    await slow.call("POST", "/v1/events", { body });
    const { lag_seconds: before } = await eventually(detection, (now) => expect(now.lag_seconds).toBeGreaterThan(0));
    await eventually(detection, (now) => expect(now.lag_seconds).toBeGreaterThan(before));
    gate.resolve();
    await eventually(matches, (count) => expect(count).toBe(2));
    await eventually(detection, (now) => expect(now).toEqual({ status: "running", lag_seconds: 0 }));
  } finally {
    gate.resolve();
    await slow.close();
  }
});

describe("a store that is in trouble when rules are filled again", () => {
  const busy = () => new StoreUnavailable("queue_full", "too many questions are waiting");
  /** How often each of these refuses from the next start on. */
  const refusals = { scanLast: 0, lastArrivalBefore: 0, arrivals: 0 };
  let refusal: () => Error;
  /** Questions about events of this type are refused; the others are not. */
  let refused: string;
  let troubled: TestServer;
  beforeEach(async () => {
    refusal = busy;
    refused = "";
    troubled = await openTestServer({
      around: (store) => ({
        ...store,
        events: changed(store.events, {
          async *scanLast(...question) {
            const isMeant = JSON.stringify(question[0].condition).includes(refused);
            yield* store.events.scanLast(...question);
            if (isMeant && refusals.scanLast-- > 0) throw refusal();
          },
          async lastArrivalBefore(ms) {
            if (refusals.lastArrivalBefore-- > 0) throw refusal();
            return store.events.lastArrivalBefore(ms);
          },
          async *arrivals(...from) {
            if (refusals.arrivals-- > 0) throw refusal();
            yield* store.events.arrivals(...from);
          },
        }),
      }),
    });
  });
  afterEach(async () => {
    Object.assign(refusals, { scanLast: 0, lastArrivalBefore: 0, arrivals: 0 });
    await troubled.close();
  });

  const send = async (type: string) => {
    const body = { type, source: "custom", data: {} };
    expect((await troubled.call("POST", "/v1/events", { body })).status).toBe(201);
  };
  const ruleOf = (type: string) => ({
    name: `test.${type}`,
    description: "Counts",
    severity: "low",
    conditions: [{ field: "type", equals: type }],
    window: "1h",
    threshold: { count: 4 },
    actions: [{ alert: { channels: [] } }],
  });
  const lookedAt = (type: string, count: number) =>
    eventually(
      async () => (await troubled.call("GET", `/v1/rules?search=${type}`)).body.data[0].stats.matches_24h as number,
      (matches) => expect(matches).toBe(count),
    );
  const countTwo = async (type: string) => {
    expect((await troubled.call("POST", "/v1/rules", { body: ruleOf(type) })).status).toBe(201);
    for (let i = 0; i < 2; i++) await send(type);
    await lookedAt(type, 2);
  };
  const detection = async () => (await troubled.call("GET", "/readyz")).body.data.detection;
  const running = () => eventually(detection, (now) => expect(now).toEqual({ status: "running", lag_seconds: 0 }));
  const counts = async (type: string) =>
    (await alertsOf(ruleOf(type), troubled)).map(({ event_count }) => event_count as number);

  test("is asked again until it answers, and what it gave before it refused does not count twice", async () => {
    await countTwo("tried_again");
    refused = "tried_again";
    Object.assign(refusals, { scanLast: 2, lastArrivalBefore: 1, arrivals: 2 });
    troubled = await troubled.restart();
    await running();
    await send("tried_again");
    await lookedAt("tried_again", 3);
    expect(await counts("tried_again")).toEqual([]);
    await send("tried_again");
    await eventually(
      () => counts("tried_again"),
      (found) => expect(found).toEqual([4]),
    );
    const metrics = (await troubled.call("GET", "/metrics")).text;
    expect(metrics).toMatch(/^tocsin_detection_retries_total 5$/m);
    expect(metrics).toMatch(/^tocsin_detection_memory_cut_total 0$/m);
  });

  test("is waited for while it has too much to do, however long: detection says so, and the service can be ended", async () => {
    await countTwo("waiting");
    refusals.scanLast = Infinity;
    troubled = await troubled.restart();
    await send("waiting");
    await eventually(detection, (now) => {
      expect(now.status).toBe("warming_up");
      expect(now.lag_seconds).toBeGreaterThan(0);
    });
    await eventually(
      async () => troubled.log.map(({ msg }) => msg as string),
      (lines) => expect(lines).toContain("what rules have seen cannot be read; trying again"),
    );
    const change = await troubled.call("POST", "/v1/rules", { body: ruleOf("other") });
    expect([change.status, change.body.error.code]).toEqual([503, "unavailable"]);
    const { log } = troubled;
    troubled = await troubled.restart();
    expect(log.filter(({ msg }) => msg === "not closed cleanly")).toEqual([]);
    refusals.scanLast = 0;
    await running();
    await lookedAt("waiting", 3);
  });

  test("keeps one rule from what it had seen, and no other, where it never answers", async () => {
    for (const failure of [
      () => new StoreUnavailable("failed", "the question could not be answered"),
      () => new QuestionRefused("query", "took longer than 30 s"),
    ]) {
      const [lost, kept] = [`lost_${++made}`, `kept_${made}`];
      for (const type of [lost, kept]) await countTwo(type);
      refusal = failure;
      refused = lost;
      refusals.scanLast = Infinity;
      troubled = await troubled.restart();
      await running();
      for (const type of [lost, lost, kept, kept]) await send(type);
      await eventually(
        () => counts(kept),
        (found) => expect(found).toEqual([4]),
      );
      expect(await counts(lost)).toEqual([]);
      expect((await troubled.call("GET", "/metrics")).text).toMatch(/^tocsin_detection_memory_cut_total 1$/m);
      const told = troubled.log.filter(({ msg }) => (msg as string).endsWith("it begins anew"));
      expect(told.map(({ rule }) => rule)).toEqual([`test.${lost}`]);
      for (const type of [lost, lost]) await send(type);
      await eventually(
        () => counts(lost),
        (found) => expect(found).toEqual([4]),
      );
      refusals.scanLast = 0;
    }
  });
});

test("a clock that goes back stops nothing: every event is looked at, and each alert has an id of its own", async () => {
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
    const list = () => alertsOf({ name: "test.clock" }, shifted);
    const alerts = await eventually(list, (found) => expect(found).toHaveLength(3));
    expect(new Set(alerts.map(({ id }) => id)).size).toBe(3);
  } finally {
    await shifted.close();
  }
});

test("a false positive makes an exception of its rule in the same call", async () => {
  const type = uniqueType();
  const rule = await makeRule(type, { dedup: { by: "raw.host" } });
  await submit(type, { host: "lab" });
  const [alert] = await eventually(
    () => alertsOf(rule),
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
    () => alertsOf(rule),
    (alerts) => expect(alerts).toHaveLength(2),
  );
  const { exceptions } = (await server.call("GET", `/v1/rules/${rule.id}`)).body.data;
  expect(exceptions).toMatchObject([exception]);
  expect(resolved.body.data.timeline.at(-1)).toMatchObject({
    kind: "resolved",
    exception: { id: exceptions[0].id, reason: "a test bench" },
  });
});

test("a rule that matches everything folds: every event is counted, and there is one alert", async () => {
  const type = uniqueType();
  const rule = await makeRule(type);
  const event = JSON.stringify({ type, source: "custom", data: { text: "all of it" } });
  const body = Array.from({ length: 5000 }, () => event).join("\n");
  const headers = { "content-type": "application/x-ndjson" };
  const answers = await Promise.all([1, 2, 3, 4].map(() => server.call("POST", "/v1/events/batch", { body, headers })));
  expect(answers.map(({ body: { data } }) => data.accepted)).toEqual([5000, 5000, 5000, 5000]);
  const [alert] = await eventually(
    () => alertsOf(rule),
    (alerts) => expect(alerts.map(({ event_count }) => event_count)).toEqual([20_000]),
  );
  const { related_events, related_events_total, timeline } = await detail(alert.id);
  expect(related_events).toHaveLength(50);
  expect(related_events_total).toBe(20_000);
  expect(timeline.map(({ kind }: { kind: string }) => kind)).toEqual(["created", "events_added"]);
  expect((await statsOf(rule)).matches_24h).toBe(20_000);
});

test("the readiness call and the metrics say how far detection has come", async () => {
  const ready = await server.call("GET", "/readyz");
  expect(ready.body.data).toMatchObject({ status: "ready", detection: { lag_seconds: expect.any(Number) } });
  const { text } = await server.call("GET", "/metrics");
  expect(text).toMatch(/^tocsin_detection_lag_seconds \d/m);
  expect(text).toMatch(/^tocsin_detection_events_total [1-9]/m);
});
