import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { flowRowsOf } from "../../src/model/flow-rows.ts";
import { openFlowsUnderTest } from "../../src/store/opensearch/opensearch-store.fixture.ts";
import { CannotInstall } from "../cluster/opensearch-install.ts";
import { startOpenSearch } from "../cluster/opensearch.ts";

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

test("an OpenSearch that is overloaded, killed and started again has every batch once", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-opensearch-"));
  // Requests in flight may take so few bytes that a batch is too much.
  const settings = { "indexing_pressure.memory.limit": "20kb" };
  const cluster = await startOpenSearch({ folder, settings }).catch((error: unknown) => {
    if (error instanceof CannotInstall) return context.skip(`there is no OpenSearch: ${error.message}`);
    throw error;
  });
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
    await cluster.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
