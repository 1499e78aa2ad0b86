import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changed, openTestServer, type TestServer } from "../../../test/api-server.ts";
import { alertsOf, eventually, uniqueType } from "../../../test/detection.ts";

// From missing events to an alert, over the real server, store and threads.

describe("an absence", () => {
  let shift = 0;
  let shifted: TestServer;
  beforeAll(async () => {
    shifted = await openTestServer({ now: () => Date.now() + shift });
  });
  afterAll(() => shifted.close());

  const waitFor = async (type: string, more: object = {}) => {
    const body = {
      name: `test.${uniqueType()}`,
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
  const alertsFor = (rule: { name: string }) => alertsOf(shifted, rule);
  const missed = (rule: { name: string }) =>
    eventually(
      () => alertsFor(rule),
      (alerts) => expect(alerts).toHaveLength(1),
    );
  /** Absence is measured by processed events. */
  const lookedAt = (rule: { id: string }, count: number) =>
    eventually(
      async () => (await shifted.call("GET", `/v1/rules/${rule.id}`)).body.data.stats,
      (stats) => expect(stats.matches_7d).toBe(count),
    );

  test("continues across a restart, and its alert names the last event and its time", async () => {
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

  test("that a rule no longer waits for is not reported after a restart", async () => {
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

  test("that recurs soon joins its alert, and the timeline shows it", async () => {
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

test("an absence that cannot be stored is reported later, and the log and the metrics show the retries", async () => {
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
      () => alertsOf(troubled, body),
      (alerts) => expect(alerts).toHaveLength(1),
    );
    const reported = troubled.log.filter(({ msg }) => msg === "absences and deadlines cannot be reported; retrying");
    expect(reported).toMatchObject([{ level: "warn", err: { message: "torn" } }]);
    expect((await troubled.call("GET", "/metrics")).text).toMatch(/^tocsin_detection_retries_total 2$/m);
  } finally {
    await troubled.close();
  }
});
