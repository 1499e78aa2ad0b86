import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ownPrefix, sharedOpenSearch } from "../../../test/cluster/shared-opensearch.ts";
import { createDocuments, type NewDocument } from "./bulk.ts";
import { listDailyIndices } from "./daily-index.ts";
import { putIndexTemplate } from "./index-template.ts";
import { OpenSearchClient } from "./opensearch-client.ts";

const shared = await sharedOpenSearch();
const log = pino({ level: "silent" });

describe.skipIf("missing" in shared)(
  `documents in OpenSearch${"missing" in shared ? ` (skipped: ${shared.missing})` : ""}`,
  () => {
    const registry = new Registry();
    let client: OpenSearchClient;
    const name = `${ownPrefix()}-things`;
    const index = `${name}-2026.11.17`;
    const documents = (ids: readonly string[], value: unknown = 1): NewDocument[] =>
      ids.map((id) => ({ index, id, text: JSON.stringify({ n: value }) }));
    const count = async () => {
      await client.send({ operation: "refresh" }, { method: "POST", path: `/${index}/_refresh` });
      return (await client.send<{ count: number }>({ operation: "count" }, { method: "GET", path: `/${index}/_count` }))
        .count;
    };
    const metric = async (metricName: string, labels: object) =>
      (await registry.getSingleMetric(metricName)!.get()).values.find(
        (value) => JSON.stringify(value.labels) === JSON.stringify(labels),
      )?.value;

    beforeAll(async () => {
      client = new OpenSearchClient({ addresses: ["url" in shared ? shared.url : ""] }, registry);
      const settings = { number_of_shards: 2, number_of_replicas: 0 };
      const mappings = { dynamic: "strict", properties: { n: { type: "long" } } };
      await putIndexTemplate(client, { name, version: 2, settings, mappings }, log);
      // An older node does not undo it.
      await putIndexTemplate(client, { name, version: 1, settings, mappings: {} }, log);
    });
    afterAll(async () => {
      const kind = { operation: "cleanup" };
      await client.send(kind, { method: "DELETE", path: `/${name}-*` });
      await client.send(kind, { method: "DELETE", path: `/_index_template/${name}` });
      await client.close();
    });

    test("a document that is sent twice is stored once", async () => {
      const first = await createDocuments(client, documents(["a", "b"]), { kind: "things" });
      expect(first.map(({ status }) => status)).toEqual(["stored", "stored"]);
      const second = await createDocuments(client, documents(["b", "c", "a"]), { kind: "things" });
      expect(second.map(({ status }) => status)).toEqual(["duplicate", "stored", "duplicate"]);
      expect(await count()).toBe(3);
      expect(await metric("tocsin_opensearch_documents_total", { kind: "things", outcome: "duplicate" })).toBe(2);
    });

    test("a document that cannot be stored keeps no other from being stored, and says why", async () => {
      const all = [...documents(["good1"]), ...documents(["bad"], "no number"), ...documents(["good2"])];
      const outcomes = await createDocuments(client, all, { kind: "things" });
      expect(outcomes.map(({ status }) => status)).toEqual(["stored", "refused", "stored"]);
      expect(outcomes[1]).toMatchObject({
        reason: "mapping",
        detail: expect.stringContaining("mapper_parsing_exception"),
      });
      expect(await metric("tocsin_opensearch_failures_total", { operation: "bulk", reason: "mapping" })).toBe(1);
    });

    test("more documents than fit into a request keep their order", async () => {
      const ids = Array.from({ length: 12_001 }, (_, nth) => `many${nth}`);
      const outcomes = await createDocuments(client, documents(ids), { kind: "things" });
      expect(outcomes).toHaveLength(ids.length);
      expect(outcomes.every(({ status }) => status === "stored")).toBe(true);
    });

    test("what is visible is found at once", async () => {
      await createDocuments(client, documents(["seen"]), { kind: "things", isVisible: true });
      const answer = await client.send<{ hits: { total: { value: number } } }>(
        { operation: "search", isQuery: true },
        { method: "POST", path: `/${index}/_search`, body: { query: { ids: { values: ["seen"] } } } },
      );
      expect(answer.hits.total.value).toBe(1);
    });

    test("indices that do not hold full days are not listed", async () => {
      await client.send({ operation: "cleanup" }, { method: "PUT", path: `/${name}-2-other` });
      expect(await listDailyIndices(client, name)).toEqual([{ index, day: Date.UTC(2026, 10, 17), shards: 2 }]);
      expect(await listDailyIndices(client, name, { fromMs: Date.UTC(2026, 10, 18) })).toEqual([]);
    });

    test("an index that accepts no writes is a full disk", async () => {
      const setBlock = (value: boolean | null) =>
        client.send(
          { operation: "cleanup" },
          {
            method: "PUT",
            path: `/${index}/_settings`,
            body: { "index.blocks.read_only_allow_delete": value },
          },
        );
      await setBlock(true);
      const refused = createDocuments(client, documents(["blocked"]), { kind: "things" });
      await expect(refused).rejects.toMatchObject({
        name: "StoreUnavailable",
        reason: "disk_full",
        retryAfterSeconds: 30,
      });
      expect(await metric("tocsin_opensearch_failures_total", { operation: "bulk", reason: "read_only" })).toBe(1);
      await setBlock(null);
      const [outcome] = await createDocuments(client, documents(["blocked"]), { kind: "things" });
      expect(outcome).toMatchObject({ status: "stored" });
    });

    test("a closed index is unavailable until it is opened", async () => {
      await client.send({ operation: "cleanup" }, { method: "POST", path: `/${index}/_close` });
      const refused = createDocuments(client, documents(["closed"]), { kind: "things" });
      await expect(refused).rejects.toMatchObject({ name: "StoreUnavailable", reason: "failed" });
      await expect(client.check(`${index}*`)).rejects.toMatchObject({ name: "StoreUnavailable" });
      // The block of another index says nothing about these.
      await client.check(`${name}-none-*`);
      await client.send({ operation: "cleanup" }, { method: "POST", path: `/${index}/_open` });
      expect(await metric("tocsin_opensearch_failures_total", { operation: "bulk", reason: "index_closed" })).toBe(1);
    });

    test("the room of the nodes and the health of the indices are known", async () => {
      const { totalBytes, freeBytes, usedBytes } = await client.space(`${name}-2*`);
      expect(usedBytes).toBeGreaterThan(0);
      expect(freeBytes).toBeGreaterThan(0);
      expect(totalBytes).toBeGreaterThanOrEqual(freeBytes);
      await client.check(`${name}-2*`);
      await client.check(`${name}-none-*`);
      // A shard that no node may hold.
      const body = { settings: { number_of_replicas: 0, "index.routing.allocation.require._name": "nobody" } };
      await client.send(
        { operation: "cleanup" },
        {
          method: "PUT",
          path: `/${name}-2026.11.18`,
          query: { wait_for_active_shards: 0 },
          body,
        },
      );
      await expect(client.check(`${name}-2*`)).rejects.toMatchObject({ name: "StoreUnavailable", reason: "failed" });
      await client.send({ operation: "cleanup" }, { method: "DELETE", path: `/${name}-2026.11.18` });
    });

    test("addresses that do not answer are skipped while another does", async () => {
      const addresses = ["http://127.0.0.1:9", "url" in shared ? shared.url : ""];
      const own = new OpenSearchClient({ addresses, retriesMax: 3 }, new Registry());
      for (let nth = 0; nth < 6; nth++) await own.send({ operation: "ping" }, { method: "GET", path: "/" });
      await own.close();
    });

    test("without any node that answers, calls fail in terms of the store, and name no address", async () => {
      const ownRegistry = new Registry();
      const own = new OpenSearchClient({ addresses: ["http://127.0.0.1:9"], retriesMax: 1 }, ownRegistry);
      const failed = own.send({ operation: "ping" }, { method: "GET", path: "/" });
      await expect(failed).rejects.toMatchObject({ name: "StoreUnavailable", reason: "failed", retryAfterSeconds: 5 });
      await expect(failed).rejects.not.toMatchObject({ message: expect.stringContaining("127.0.0.1") });
      const retries = (await ownRegistry.getSingleMetric("tocsin_opensearch_retries_total")!.get()).values;
      expect(retries).toMatchObject([{ value: 1, labels: { operation: "ping", reason: "unreachable" } }]);
      await own.close();
    });
  },
);
