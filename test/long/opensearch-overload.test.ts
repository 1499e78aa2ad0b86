import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadSettings } from "../../src/config/config.ts";
import { flowRowsOf } from "../../src/model/flow-rows.ts";
import { openFlowsUnderTest } from "../../src/store/opensearch/opensearch-store.fixture.ts";
import { openTestServerIn, type Answer } from "../api-server.ts";
import { CannotInstall } from "../cluster/opensearch-install.ts";
import { startOpenSearch, type OpenSearchCluster } from "../cluster/opensearch.ts";
import { postgresPrograms } from "../cluster/postgres.ts";
import { testDatabase } from "../cluster/test-database.ts";

const START = Date.UTC(2026, 5, 15);
const rows = (count: number) =>
  flowRowsOf(
    Array.from({ length: count }, (_, nth) => ({
      windowStartMs: START,
      src: "10.0.0.1",
      dst: "192.0.2.9",
      srcPort: nth,
      dstPort: 443,
      protocol: 6,
      tcpFlags: 0,
      bytes: 1n,
      packets: 1n,
      firstSeenMs: START,
      lastSeenMs: START,
      exporter: "192.0.2.1",
      version: 9,
    })),
  );

const folder = mkdtempSync(join(tmpdir(), "tocsin-opensearch-"));
let cluster: OpenSearchCluster | undefined;
let missing = "";
beforeAll(async () => {
  // Requests in flight may take so few bytes that a batch is too much.
  const settings = { "indexing_pressure.memory.limit": "20kb" };
  cluster = await startOpenSearch({ folder, settings }).catch((error: unknown) => {
    if (!(error instanceof CannotInstall)) throw error;
    missing = `there is no OpenSearch: ${error.message}`;
    return undefined;
  });
});
afterAll(async () => {
  await cluster?.kill();
  rmSync(folder, { recursive: true, force: true });
});

test("an OpenSearch that is overloaded, killed and started again has every batch once", async (context) => {
  if (!cluster) return context.skip(missing);
  const node = cluster.nodes[0]!;
  const { flows, client, registry } = await openFlowsUnderTest(node.url, { retriesMax: 2 });
  const metric = async (name: string, reason: string) =>
    (await registry.getSingleMetric(name)!.get()).values.find(({ labels }) => labels["reason"] === reason)?.value ?? 0;
  try {
    await flows.append(rows(5), "small");
    await expect(flows.append(rows(2000), "large")).rejects.toMatchObject({
      name: "StoreUnavailable",
      reason: "queue_full",
      retryAfterSeconds: 2,
    });
    expect(await metric("tocsin_opensearch_failures_total", "overloaded")).toBeGreaterThan(0);
    expect(await metric("tocsin_opensearch_retries_total", "overloaded")).toBeGreaterThan(0);
    expect(await flows.count()).toBe(5);

    await node.kill();
    await expect(flows.append(rows(6), "next")).rejects.toMatchObject({ reason: "failed" });
    await node.restart();
    await flows.append(rows(6), "next");
    await flows.append(rows(5), "small");
    expect(await flows.count()).toBe(11);
  } finally {
    await client.close();
  }
});

test("a service whose only node is overloaded, paused and killed has every acknowledged event once", async (context) => {
  if (!cluster) return context.skip(missing);
  if (!postgresPrograms()) return context.skip("PostgreSQL is not installed");
  const node = cluster.nodes[0]!;
  const dataDir = mkdtempSync(join(tmpdir(), "tocsin-overload-"));
  const loaded = loadSettings({ environment: {}, workingFolder: dataDir });
  if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
  const { postgres, opensearch } = loaded.settings;
  const server = await openTestServerIn(dataDir, {
    usesCluster: false,
    settings: {
      store: { cases: "postgres", data: "opensearch" },
      postgres: { ...postgres, url: await testDatabase() },
      opensearch: { ...opensearch, addresses: [node.url], replicas: 0, retriesMax: 1, timeoutSeconds: 5 },
    },
  });
  const acknowledged: string[] = [];
  const submit = async (n: number, text = "") => {
    const body = { type: "overload", source: "custom", data: { n, text } };
    const answer = await server.call("POST", "/v1/events", { body, headers: { "idempotency-key": `event-${n}` } });
    if (answer.status < 300) acknowledged.push(answer.body.data.id);
    return answer;
  };
  const expectUnavailable = ({ status, headers, body, text }: Answer, message: RegExp) => {
    expect(status, text).toBe(503);
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    expect(body.error.message).toMatch(message);
  };
  const failures = async (reason: string) => {
    const { text } = await server.call("GET", "/metrics");
    const lines = text.split("\n").filter((line) => line.startsWith("tocsin_opensearch_failures_total"));
    return lines.filter((line) => line.includes(`reason="${reason}"`)).length;
  };
  try {
    expect((await submit(1)).status).toBe(201);
    expectUnavailable(await submit(2, "x".repeat(30_000)), /OpenSearch is overloaded/);
    expect(await failures("overloaded")).toBeGreaterThan(0);
    const some = await Promise.all(Array.from({ length: 20 }, (_, n) => submit(10 + n, "y".repeat(3000))));
    expect(some.every(({ status }) => status === 201 || status === 503)).toBe(true);

    node.signal("SIGSTOP");
    const [paused, ready] = await Promise.all([submit(3), server.call("GET", "/readyz")]);
    expectUnavailable(paused, /OpenSearch did not answer in time/);
    expectUnavailable(ready, /OpenSearch did not answer in time/);
    node.signal("SIGCONT");
    await expect.poll(async () => (await submit(3)).status).toBeLessThan(300);
    expect(await failures("timeout")).toBeGreaterThan(0);

    await node.kill();
    expectUnavailable(await submit(4), /OpenSearch cannot be reached/);
    await node.restart();
    await expect.poll(async () => (await submit(4)).status).toBeLessThan(300);
    const found = await server.call("GET", "/v1/events?type=overload&limit=100");
    const events = found.body.data as { id: string; raw: { n: number } }[];
    expect(events.map(({ id }) => id)).toEqual(expect.arrayContaining(acknowledged));
    expect(new Set(events.map(({ raw }) => raw.n)).size).toBe(events.length);
  } finally {
    await server.close();
  }
});
