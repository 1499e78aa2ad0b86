import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { rule } from "../../src/api/rule-endpoints.fixture.ts";
import { withEventEngines } from "../../src/store/opensearch/opensearch-events.fixture.ts";
import { makeFolder, startTocsin, tocsin } from "../tocsin.ts";
import { clusterOf } from "./cluster-of-folder.ts";

const SUBMITTED = 40;

await withEventEngines("a service on PostgreSQL and OpenSearch that is killed", () => {
  test("loses and doubles nothing that it acknowledged, and raises every alert once", async () => {
    const dataDir = makeFolder();
    const { openSearchUrl, postgresUrl, indexPrefix, end } = await clusterOf(dataDir);
    const env = {
      TOCSIN_STORE_CASES: "postgres",
      TOCSIN_STORE_DATA: "opensearch",
      TOCSIN_POSTGRES_URL: postgresUrl,
      TOCSIN_OPENSEARCH_ADDRESSES: openSearchUrl,
      TOCSIN_OPENSEARCH_REPLICAS: "0",
      TOCSIN_INDEX_PREFIX: indexPrefix,
      TOCSIN_DATA_DIR: dataDir,
    };
    const created = await tocsin(["keys", "create", "--name", "ci", "--scopes", "all", "--json"], env);
    expect(created, created.stderr).toMatchObject({ code: 0 });
    const { key } = JSON.parse(created.stdout) as { key: string };
    let server = await startTocsin(dataDir, { env });
    const call = async (method: string, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const answer = await fetch(`${server.address}${path}`, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: (await answer.json()) as any };
    };
    try {
      const conditions = [{ field: "type", equals: "crash" }];
      const made = await call("POST", "/v1/rules", rule({ conditions, dedup: { period: "1h", by: ["raw.n"] } }));
      expect(made.status, JSON.stringify(made.body)).toBe(201);
      const acknowledged = new Set<string>();
      const over = new AbortController();
      const submitting = (async () => {
        for (let n = 0; n < SUBMITTED && !over.signal.aborted; n++) {
          const answer = await call("POST", "/v1/events", { type: "crash", source: "custom", data: { n } }).catch(
            () => undefined,
          );
          if (answer?.status === 201) acknowledged.add(answer.body.data.id);
        }
      })();
      await expect.poll(() => acknowledged.size, { interval: 10 }).toBeGreaterThan(8);
      await server.stop("SIGKILL");
      over.abort();
      await submitting;
      server = await startTocsin(dataDir, { env });
      const listed = (await call("GET", "/v1/events?type=crash&limit=100")).body.data as {
        id: string;
        raw: { n: number };
      }[];
      const ids = listed.map(({ id }) => id);
      expect(ids).toEqual(expect.arrayContaining([...acknowledged]));
      expect(new Set(listed.map(({ raw }) => raw.n)).size).toBe(listed.length);
      const alerts = async () =>
        (await call("GET", `/v1/alerts?rule_name=${made.body.data.name}&limit=100`)).body.data as {
          event_count: number;
        }[];
      await expect.poll(async () => (await alerts()).length).toBe(listed.length);
      expect((await alerts()).every(({ event_count: count }) => count === 1)).toBe(true);
    } finally {
      await server.stop();
      await end();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test("a store that cannot be reached is told in words", async () => {
    const dataDir = makeFolder();
    const { postgresUrl, end } = await clusterOf(dataDir);
    const env = {
      TOCSIN_STORE_CASES: "postgres",
      TOCSIN_STORE_DATA: "opensearch",
      TOCSIN_POSTGRES_URL: postgresUrl,
      TOCSIN_OPENSEARCH_ADDRESSES: "http://127.0.0.1:1",
      TOCSIN_OPENSEARCH_RETRIES_MAX: "0",
      TOCSIN_DATA_DIR: dataDir,
    };
    try {
      const refused = await tocsin(["serve", "--port", "0"], env);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toMatch(/OpenSearch cannot be reached at any of opensearch\.addresses \(ECONNREFUSED\)/);
      expect(refused.stderr).toMatch(/Check opensearch\.addresses/);
      const wrong = await tocsin(["check"], { ...env, TOCSIN_STORE_CASES: "embedded" });
      expect(wrong.stdout + wrong.stderr).toMatch(/store\.cases.*must be postgres with store\.data: opensearch/);
    } finally {
      await end();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});
