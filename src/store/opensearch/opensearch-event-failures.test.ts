import { createServer, connect, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import type { Condition } from "../../model/condition.ts";
import type { Event, EventDraft } from "../../model/event.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { dailyIndexName } from "./daily-index.ts";
import { openEventsUnderTest, withEventEngines, type EventsUnderTest } from "./opensearch-events.fixture.ts";

const DAY = startOfDay(Date.UTC(2026, 4, 20));

const draft = (more: Partial<EventDraft> = {}): EventDraft => ({
  type: "login_failure",
  source: "custom",
  severity: "info",
  class: "security",
  timestampMs: DAY + 1000,
  raw: {},
  enrichment: {},
  ...more,
});
const equals = (field: string, value: string): Condition => ({
  kind: "test",
  field,
  operator: "equals",
  value,
  ignoreCase: false,
});

/** A connection to OpenSearch that can be cut, and that can lose answers. */
async function openGate(url: string) {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  const state = { isCut: false, losesAnswers: 0 };
  const server = createServer((near) => {
    if (state.isCut) return near.destroy();
    const far = connect(Number(target.port), target.hostname);
    let isBulk = false;
    near.on("data", (part) => {
      isBulk = part.includes("POST /_bulk") || (isBulk && !part.includes("HTTP/1.1"));
      far.write(part);
    });
    far.on("data", (part) => {
      if (isBulk && state.losesAnswers > 0) {
        state.losesAnswers--;
        near.destroy();
      } else near.write(part);
    });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    state,
    cut: () => {
      state.isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

await withEventEngines("failures of OpenSearch while events are stored", (url) => {
  let node: EventsUnderTest;
  let gate: Awaited<ReturnType<typeof openGate>>;

  beforeAll(async () => {
    gate = await openGate(url);
    node = await openEventsUnderTest(gate.url, { retriesMax: 1 });
  });
  afterAll(async () => {
    await node.end();
    gate.close();
  });

  const send = (method: "PUT", path: string, body: object) =>
    node.client.send({ operation: "test" }, { method, path, body });
  const store = async (more: Partial<EventDraft>, idempotencyToken?: string) =>
    (await node.events.append([{ draft: draft(more), idempotencyToken }]))[0]!;
  const search = (condition: Condition) => node.events.search({ condition, sort: [], limit: 10, aggs: [] });
  const idsOf = (items: readonly string[]) => items.map((text) => (JSON.parse(text) as Event).id);

  describe("an index with other mappings", () => {
    test("an event whose words it refuses is stored without them, and found by reading it", async () => {
      const timestampMs = DAY - 86_400_000;
      const mappings = { properties: { words: { type: "integer" } } };
      await send("PUT", `/${dailyIndexName(`${node.prefix}-events`, timestampMs)}`, { mappings });
      const poisoned = await store({ type: "poisoned", raw: { user: "ada" }, timestampMs });
      const healthy = await store({ type: "poisoned", raw: { user: "ada" } });
      expect(await node.events.get(poisoned.id)).toBe(poisoned.text);
      const found = await search({ kind: "all", of: [equals("type", "poisoned"), equals("raw.user", "ada")] });
      expect(idsOf(found.items)).toEqual([healthy.id, poisoned.id]);
      expect(found.total).toBe(2);
      expect((await search({ kind: "not", of: equals("raw.user", "ada") })).items).toEqual([]);
    });

    test("an event that it refuses altogether is unavailable, with the index in words", async () => {
      const timestampMs = DAY - 2 * 86_400_000;
      const index = dailyIndexName(`${node.prefix}-events`, timestampMs);
      await send("PUT", `/${index}`, { mappings: { properties: { severity_rank: { type: "ip" } } } });
      const refused = store({ timestampMs });
      await expect(refused).rejects.toBeInstanceOf(StoreUnavailable);
      await expect(refused).rejects.toThrow(index);
    });
  });

  describe("a day that cannot be read", () => {
    const OLD = DAY - 30 * DAY_MS;
    const indexOf = (ms: number) => dailyIndexName(`${node.prefix}-events`, ms);
    const here = equals("type", "here");
    const terms = [{ name: "users", aggregation: { kind: "terms", field: "raw.user", size: 5, aggs: [] } as const }];
    const answers = async (range: { fromMs?: number } = {}) => {
      const listed = await node.events.list({ type: "here", ...range }, { mode: "page", page: 1, size: 10 });
      const missing = (await node.days.missing(range)).map(({ day, rows }) => [day, rows]);
      const found = await node.events.search({ condition: here, ...range, sort: [], limit: 10, aggs: terms });
      const scanned: string[] = [];
      for await (const texts of node.events.scan({ condition: here, ...range }, new AbortController().signal))
        scanned.push(...texts);
      return { counts: [listed.total, found.total, scanned.length], missing };
    };
    beforeAll(async () => {
      for (const timestampMs of [OLD, OLD + DAY_MS, DAY])
        await store({ type: "here", raw: { user: "ada" }, timestampMs });
    });

    test("because it is closed is left out and reported, and back once it is open", async () => {
      expect(await answers()).toEqual({ counts: [3, 3, 3], missing: [] });
      await node.client.send({ operation: "test" }, { method: "POST", path: `/${indexOf(OLD)}/_close` });
      const withoutIt = { counts: [2, 2, 2], missing: [[OLD, 1]] };
      expect(await answers()).toEqual(withoutIt);
      expect(await answers({ fromMs: OLD })).toEqual(withoutIt);
      expect(await answers({ fromMs: OLD + DAY_MS })).toEqual({ counts: [2, 2, 2], missing: [] });
      expect((await node.events.entities({ search: "ada", fromMs: OLD, toMs: DAY + 1, limit: 5 })).isComplete).toBe(
        true,
      );
      expect((await node.events.fields({ type: "here" })).total).toBe(2);
      await node.client.send({ operation: "test" }, { method: "POST", path: `/${indexOf(OLD)}/_open` });
      await expect.poll(() => answers()).toEqual({ counts: [3, 3, 3], missing: [] });
    });

    test("because no node has its shard is left out and reported, beside one that is closed", async () => {
      const red = OLD + 2 * DAY_MS;
      const settings = { "index.routing.allocation.require._name": "nobody", number_of_replicas: 0 };
      const query = { wait_for_active_shards: 0 };
      const kind = { operation: "test" };
      await node.client.send(kind, { method: "PUT", path: `/${indexOf(red)}`, query, body: { settings } });
      expect(await answers()).toEqual({ counts: [3, 3, 3], missing: [[red, 0]] });
      await node.client.send(kind, { method: "POST", path: `/${indexOf(OLD)}/_close` });
      expect(await answers()).toEqual({
        counts: [2, 2, 2],
        missing: [
          [OLD, 1],
          [red, 0],
        ],
      });
      await node.client.send(kind, { method: "DELETE", path: `/${indexOf(red)},${indexOf(OLD)}` });
      expect(await answers()).toEqual({ counts: [2, 2, 2], missing: [] });
    });
  });

  test("a read-only block is a full disk, and ends with it", async () => {
    const index = dailyIndexName(`${node.prefix}-events`, DAY);
    await store({});
    const block = (isOn: boolean) =>
      send("PUT", `/${index}/_settings`, { "index.blocks.read_only_allow_delete": isOn ? true : null });
    await block(true);
    await expect(store({})).rejects.toMatchObject({ name: "StoreUnavailable", reason: "disk_full" });
    await block(false);
    await expect(store({})).resolves.toBeDefined();
  });

  test("an engine that is gone is unavailable, and whatever comes after it is back is stored and read", async () => {
    gate.cut();
    await expect(store({ type: "gone" })).rejects.toMatchObject({ name: "StoreUnavailable", retryAfterSeconds: 5 });
    await expect(search(equals("type", "gone"))).rejects.toBeInstanceOf(StoreUnavailable);
    gate.state.isCut = false;
    await expect.poll(() => store({ type: "gone" }).then(Boolean, () => false)).toBe(true);
    expect((await search(equals("type", "gone"))).total).toBe(1);
    const last = await node.events.lastArrival();
    expect(last).toBe(await node.events.lastArrivalBefore(Date.now() + 60_000));
    expect(await node.registry.getSingleMetricAsString("tocsin_opensearch_failures_total")).toContain("unreachable");
  });

  test("who follows events waits while the engine is gone, and misses none", async () => {
    const leader = await openEventsUnderTest(url);
    const { prefix, database } = leader;
    const follower = await openEventsUnderTest(gate.url, { prefix, database, isFollower: true, retriesMax: 1 });
    const followed: string[] = [];
    const stop = new AbortController();
    const following = (async () => {
      for await (const chunk of follower.events.arrivals(null, stop.signal))
        followed.push(...chunk.map(({ id }) => id));
    })();
    const [first] = await leader.events.append([{ draft: draft() }]);
    await expect.poll(() => followed).toEqual([first!.id]);
    gate.cut();
    const [second] = await leader.events.append([{ draft: draft() }]);
    const failures = () => follower.registry.getSingleMetricAsString("tocsin_opensearch_failures_total");
    await expect.poll(failures).toContain('operation="arrivals",reason="unreachable"');
    gate.state.isCut = false;
    await expect.poll(() => followed).toEqual([first!.id, second!.id]);
    stop.abort();
    await following;
    await follower.close();
    await leader.end();
  });

  test("an event whose storing was answered into the void is stored once", async () => {
    gate.state.losesAnswers = 1;
    const stored = await store({ type: "answer_lost" });
    expect(gate.state.losesAnswers).toBe(0);
    expect(idsOf((await search(equals("type", "answer_lost"))).items)).toEqual([stored.id]);
  });

  test("of attempts with the same token on two nodes one is stored, and both get it", async () => {
    const other = await openEventsUnderTest(url, { prefix: node.prefix, database: node.database, isFollower: true });
    const events = [{ draft: draft({ type: "token" }), idempotencyToken: "same" }];
    const [[first], [second]] = await Promise.all([node.events.append(events), other.events.append(events)]);
    expect(second).toEqual(first);
    expect((await search(equals("type", "token"))).total).toBe(1);
    expect(await other.events.findByToken("same")).toEqual(first);
    expect(await other.events.lastArrival()).toBe(await node.events.lastArrival());
    await other.close();
  });
});
