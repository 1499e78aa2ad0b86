import { afterAll, beforeAll, expect, test } from "vitest";
import { openGate } from "../../../test/cluster/gate.ts";
import { DAY_MS } from "../../lib/time.ts";
import { flowRowsOf } from "../../model/flow-rows.ts";
import { dailyIndexName } from "./daily-index.ts";
import { openFlowsUnderTest, withOpenSearch, type FlowsUnderTest } from "./opensearch-store.fixture.ts";

const START = Date.UTC(2026, 5, 15);
const NEWEST = { sort: "timestamp", descending: true } as const;

function sampleOf(windowStartMs: number) {
  return {
    windowStartMs,
    src: "10.0.0.1",
    dst: "192.0.2.9",
    srcPort: 0,
    dstPort: 443,
    protocol: 6,
    tcpFlags: 0,
    bytes: 1n,
    packets: 1n,
    firstSeenMs: windowStartMs,
    lastSeenMs: windowStartMs,
    exporter: "192.0.2.1",
    version: 9,
  };
}

const rows = (count: number, startMs = START) =>
  flowRowsOf(Array.from({ length: count }, (_, nth) => ({ ...sampleOf(startMs), srcPort: nth })));

await withOpenSearch("flows while OpenSearch fails", (url) => {
  let opened: FlowsUnderTest;
  beforeAll(async () => void (opened = await openFlowsUnderTest(url)));
  afterAll(() => opened.end());

  const setIndex = (index: string, body: object) =>
    opened.client.send({ operation: "test" }, { method: "PUT", path: `/${index}/_settings`, body });
  const indexOf = (ms: number) => dailyIndexName(`${opened.prefix}-flows`, ms);
  const failures = async (operation: string, reason: string, from = opened) => {
    const { values } = await from.registry.getSingleMetric("tocsin_opensearch_failures_total")!.get();
    return values.find(({ labels }) => labels["operation"] === operation && labels["reason"] === reason)?.value ?? 0;
  };
  const countOf = async (ms: number) =>
    (await opened.flows.list({ fromMs: ms, toMs: ms + DAY_MS }, NEWEST, 0, 1)).total;

  test("a batch that met a read-only day is stored once when it is repeated", async () => {
    await opened.flows.append(rows(5, START + DAY_MS), "first");
    await setIndex(indexOf(START + DAY_MS), { "index.blocks.read_only_allow_delete": true });
    // The other day of the batch accepts its rows.
    const both = flowRowsOf([
      { ...sampleOf(START), srcPort: 1 },
      { ...sampleOf(START + DAY_MS), srcPort: 2 },
    ]);
    const refused = opened.flows.append(both, "second");
    await expect(refused).rejects.toMatchObject({
      name: "StoreUnavailable",
      reason: "disk_full",
      retryAfterSeconds: 30,
    });
    expect(await failures("bulk", "read_only")).toBeGreaterThan(0);
    await setIndex(indexOf(START + DAY_MS), { "index.blocks.read_only_allow_delete": null });
    await opened.flows.append(both, "second");
    expect(await countOf(START)).toBe(1);
    expect(await countOf(START + DAY_MS)).toBe(6);
  });

  test("an index with other mappings refuses its rows until it is replaced, and none is lost", async () => {
    const day = START + 10 * DAY_MS;
    const mappings = { dynamic: "strict", properties: { timestamp: { type: "date" }, src_ip: { type: "integer" } } };
    const kind = { operation: "test" };
    // Named like a day, and created before the template could be applied.
    await opened.client.send(kind, { method: "DELETE", path: `/_index_template/${opened.prefix}-flows` });
    await opened.client.send(kind, { method: "PUT", path: `/${indexOf(day)}`, body: { mappings } });
    const again = await openFlowsUnderTest(url, { prefix: opened.prefix });
    const refused = again.flows.append(rows(3, day), "conflict");
    await expect(refused).rejects.toMatchObject({ reason: "failed", message: expect.stringContaining(indexOf(day)) });
    expect(await failures("bulk", "mapping", again)).toBe(3);
    await opened.client.send(kind, { method: "DELETE", path: `/${indexOf(day)}` });
    await again.flows.append(rows(3, day), "conflict");
    expect(await countOf(day)).toBe(3);
    await again.client.close();
  });

  test("days that another node creates and removes are in the next answer, or no longer", async () => {
    const day = START + 15 * DAY_MS;
    const range = { fromMs: day, toMs: day + 3 * DAY_MS };
    const query = { filter: range, dimension: "src", by: "bytes", limit: 5 } as const;
    const answers = async () => {
      const [talker] = await opened.flows.topTalkers(query);
      return [(await opened.flows.list(range, NEWEST, 0, 1)).total, talker?.flowCount];
    };
    const other = await openFlowsUnderTest(url, { prefix: opened.prefix });
    expect(await answers()).toEqual([0, undefined]);
    await opened.flows.append(rows(1, day), "own");
    expect(await answers()).toEqual([1, 1]);
    await other.flows.append(rows(2, day + DAY_MS), "other");
    expect(await answers()).toEqual([3, 3]);
    await other.client.send({ operation: "test" }, { method: "DELETE", path: `/${indexOf(day)}` });
    expect(await answers()).toEqual([2, 2]);
    await other.client.send({ operation: "test" }, { method: "DELETE", path: `/${indexOf(day + DAY_MS)}` });
    expect(await answers()).toEqual([0, undefined]);
    await other.client.close();
  });

  test("a closed day fails questions about it, and no others", async () => {
    const day = START + 20 * DAY_MS;
    await opened.flows.append(rows(2, day), "closed");
    const kind = { operation: "test" };
    await opened.client.send(kind, { method: "POST", path: `/${indexOf(day)}/_close` });
    const query = { filter: { fromMs: day }, dimension: "src", by: "bytes", limit: 5 } as const;
    await expect(opened.flows.topTalkers(query)).rejects.toMatchObject({ name: "StoreUnavailable", reason: "failed" });
    await expect(opened.flows.count()).rejects.toMatchObject({ message: expect.stringContaining("closed") });
    expect(await failures("search", "index_closed")).toBeGreaterThan(0);
    expect(await countOf(START + DAY_MS)).toBe(6);
    expect(await opened.flows.removeBefore(day + 2 * DAY_MS)).toMatchObject({ days: 4 });
  });

  test("a day without a shard fails questions about it within seconds, and no others", async () => {
    const day = START + 30 * DAY_MS;
    const settings = { "index.routing.allocation.require._name": "nobody", number_of_replicas: 0 };
    const query = { wait_for_active_shards: 0 };
    const path = `/${indexOf(day)}`;
    await opened.client.send({ operation: "test" }, { method: "PUT", path, query, body: { settings } });
    await opened.flows.append(rows(2, day + DAY_MS), "beside");
    await expect(countOf(day)).rejects.toMatchObject({ name: "StoreUnavailable", reason: "failed" });
    expect(await failures("search", "no_shard")).toBeGreaterThan(0);
    expect(await countOf(day + DAY_MS)).toBe(2);
    await setIndex(indexOf(day), { "index.routing.allocation.require._name": null });
    expect(await countOf(day)).toBe(0);
  });

  test("a server that is gone fails calls in terms of the store, and is used again when it is back", async () => {
    const gate = await openGate(url);
    const through = await openFlowsUnderTest(gate.url, { retriesMax: 1 });
    await through.flows.append(rows(3), "before");
    gate.cut();
    const gone = { name: "StoreUnavailable", reason: "failed", message: expect.stringContaining("cannot be reached") };
    await expect(through.flows.append(rows(3), "while")).rejects.toMatchObject(gone);
    await expect(through.flows.count()).rejects.toMatchObject(gone);
    expect(await failures("bulk", "unreachable", through)).toBe(1);
    gate.open();
    await through.flows.append(rows(3), "while");
    await through.flows.append(rows(3), "before");
    expect(await through.flows.count()).toBe(6);
    await through.end();
    gate.close();
  });

  test("a query that its caller gives up while it waits for an answer ends with the caller's reason", async () => {
    const gate = await openGate(url);
    const through = await openFlowsUnderTest(gate.url);
    gate.stall();
    const reason = new Error("the client has gone");
    const controller = new AbortController();
    const stopped = through.flows.list({}, NEWEST, 0, 10, { client: "key", signal: controller.signal });
    setTimeout(() => controller.abort(reason), 100);
    // An exception that nobody catches would fail the run.
    await expect(stopped).rejects.toBe(reason);
    gate.open();
    await through.end();
    gate.close();
  });

  test("a query that its caller gives up ends with the caller's reason", async () => {
    const reason = new Error("the client has gone");
    const controller = new AbortController();
    const query = opened.flows.count();
    const stopped = opened.flows.list({}, NEWEST, 0, 10, { client: "key", signal: controller.signal });
    controller.abort(reason);
    await expect(stopped).rejects.toBe(reason);
    await query;
  });
});
