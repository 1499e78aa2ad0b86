import { afterAll, beforeAll, expect, test } from "vitest";
import { createRule } from "../../src/api/rule-endpoints.fixture.ts";
import { submitEvent } from "../../src/api/stream.fixture.ts";
import { threadHeaps } from "../../src/lib/thread.ts";
import { withEventEngines } from "../../src/store/opensearch/opensearch-events.fixture.ts";
import { openTestServer, type TestServer } from "../api-server.ts";
import { clusterOf } from "./cluster-of-folder.ts";
import { cuttableProxy, type CuttableProxy } from "./cuttable-proxy.ts";

await withEventEngines("a node that is cut off from an engine", () => {
  let whole: TestServer;
  let cut: TestServer;
  let postgres: CuttableProxy;
  let openSearch: CuttableProxy;

  beforeAll(async () => {
    whole = await openTestServer({ usesCluster: true });
    const cluster = await clusterOf(whole.dataDir);
    const database = new URL(cluster.postgresUrl);
    postgres = await cuttableProxy({ host: database.hostname, port: Number(database.port) });
    database.host = `127.0.0.1:${postgres.port}`;
    const engine = new URL(cluster.openSearchUrl);
    openSearch = await cuttableProxy({ host: engine.hostname, port: Number(engine.port) });
    const addresses = [`http://127.0.0.1:${openSearch.port}`];
    cut = await openTestServer({
      usesCluster: false,
      settingsFrom: (defaults) => {
        const settings = cluster.settings(defaults);
        return {
          ...settings,
          postgres: { ...settings.postgres, url: database.href, connectSeconds: 2 },
          opensearch: { ...settings.opensearch, addresses, retriesMax: 0 },
        };
      },
    });
  });
  afterAll(async () => {
    postgres?.restore();
    openSearch?.restore();
    await cut?.close();
    await whole?.close();
    postgres?.close();
    openSearch?.close();
  });

  const readiness = async (server: TestServer) => {
    const { status, body } = await server.call("GET", "/readyz");
    return status === 200 ? "ready" : (body.error.message as string);
  };

  test("says which it lacks, while the others are ready; what it missed it reads afterwards", async () => {
    expect(await readiness(cut)).toBe("ready");
    openSearch.cut();
    await expect.poll(() => readiness(cut)).toMatch(/^this node lacks OpenSearch \(/);
    openSearch.restore();
    await expect.poll(() => readiness(cut)).toBe("ready");

    const revoked = await whole.addKey({ name: "revoked meanwhile" });
    expect((await cut.call("GET", "/v1/rules", { key: revoked.secret })).status).toBe(200);
    postgres.cut();
    await expect
      .poll(() => readiness(cut))
      .toMatch(/^this node lacks PostgreSQL \(.*\) and the notices of other nodes/);
    expect(await readiness(whole)).toBe("ready");
    const rule = await createRule(whole, { conditions: [{ field: "type", equals: "missed" }] });
    const body = { name: "missed_list", description: "", kind: "addresses", entries: [{ value: "198.51.100.9" }] };
    expect((await whole.call("POST", "/v1/lists", { body })).status).toBe(201);
    expect((await whole.call("DELETE", `/v1/keys/${revoked.key.id}`)).status).toBe(200);
    postgres.restore();
    await expect.poll(() => readiness(cut)).toBe("ready");
    expect((await cut.call("GET", "/v1/rules", { key: revoked.secret })).status).toBe(401);
    await expect.poll(async () => (await cut.call("GET", `/v1/rules/${rule.id}`)).status).toBe(200);
    await expect.poll(async () => (await cut.call("GET", "/v1/lists/missed_list")).status).toBe(200);
    const id = await submitEvent(cut, { data: { src_ip: "198.51.100.9" } });
    expect((await whole.call("GET", `/v1/events/${id}`)).body.data.enrichment.lists).toEqual(["missed_list"]);
  });

  test("leaves its roles to another while it is cut off, and can take them again", async () => {
    const roles = async (server: TestServer) =>
      ((await server.call("GET", "/readyz")).body.data?.roles ?? []) as readonly string[];
    // Of both nodes, which are one process here.
    const detectors = async () => (await threadHeaps()).filter(({ thread }) => thread === "detection").length;
    const before = await detectors();
    const { name } = await createRule(cut, { conditions: [{ field: "type", equals: "taken_again" }] });
    const fired = async () => {
      const [alert] = (await whole.call("GET", `/v1/alerts?rule_name=${name}`)).body.data;
      return alert?.event_count ?? 0;
    };
    // The one that waits takes over while the other starts again.
    whole = await whole.restart();
    await expect.poll(() => roles(cut)).toEqual(expect.arrayContaining(["detector", "notifier"]));
    await submitEvent(cut, { type: "taken_again" });
    postgres.cut();
    await expect.poll(() => roles(whole)).toEqual(expect.arrayContaining(["detector", "notifier"]));
    await submitEvent(whole, { type: "taken_again" });
    await expect.poll(fired).toBe(2);
    postgres.restore();
    await expect.poll(() => readiness(cut)).toBe("ready");
    whole = await whole.restart();
    await expect.poll(() => roles(cut)).toEqual(expect.arrayContaining(["detector", "notifier"]));
    await submitEvent(cut, { type: "taken_again" });
    await expect.poll(fired).toBe(3);
    expect(await detectors()).toBe(before);
  });
});
