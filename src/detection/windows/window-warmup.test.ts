import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changed, openTestServer, type TestServer } from "../../../test/api-server.ts";
import { alertsOf, eventually, uniqueType } from "../../../test/detection.ts";
import { QueryRefused, StoreUnavailable } from "../../store/ports/store-errors.ts";

// Warm-up of rules after a start, over the real server, store and threads.

test("events that arrive during warm-up wait, and the lag shows it", async () => {
  const gate = Promise.withResolvers<void>();
  let isShut = false;
  let slow = await openTestServer({
    around: (store) => ({
      ...store,
      events: changed(store.events, {
        async *scanLast(...parameters) {
          if (isShut) await gate.promise;
          yield* store.events.scanLast(...parameters);
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

describe("a store that fails during warm-up", () => {
  const busy = () => new StoreUnavailable("queue_full", "too many queries are waiting");
  /** Number of refusals of each kind after the next start. */
  const refusals = { scanLast: 0, lastArrivalBefore: 0, arrivals: 0 };
  let refusal: () => Error;
  /** Only queries about events of this type are refused. */
  let refused: string;
  let troubled: TestServer;
  beforeEach(async () => {
    refusal = busy;
    refused = "";
    troubled = await openTestServer({
      around: (store) => ({
        ...store,
        events: changed(store.events, {
          async *scanLast(...parameters) {
            const isMeant = JSON.stringify(parameters[0].condition).includes(refused);
            yield* store.events.scanLast(...parameters);
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
    (await alertsOf(troubled, ruleOf(type))).map(({ event_count }) => event_count as number);

  test("is queried again until it answers, and events read before the refusal do not count twice", async () => {
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

  test("is retried without limit while overloaded: detection reports it, and the service can be stopped", async () => {
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
      (lines) => expect(lines).toContain("earlier matches of rules cannot be read; retrying"),
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

  test("leaves only the affected rule without its earlier matches if it never answers", async () => {
    for (const failure of [
      () => new StoreUnavailable("failed", "the query failed"),
      () => new QueryRefused("query", "took longer than 30 s"),
    ]) {
      const [lost, kept] = [`lost_${uniqueType()}`, `kept_${uniqueType()}`];
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
      const reported = troubled.log.filter(({ msg }) => (msg as string).startsWith("warm-up failed"));
      expect(reported.map(({ rule }) => rule)).toEqual([`test.${lost}`]);
      for (const type of [lost, lost]) await send(type);
      await eventually(
        () => counts(lost),
        (found) => expect(found).toEqual([4]),
      );
      refusals.scanLast = 0;
    }
  });
});
