import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRule, rule } from "../../src/api/rule-endpoints.fixture.ts";
import { openReader } from "../../src/api/stream.fixture.ts";
import { withEventEngines } from "../../src/store/opensearch/opensearch-events.fixture.ts";
import { KEY, startAbusePeer, type AbusePeer } from "../abuse-ipdb.ts";
import { openNodes, type Node, type Nodes } from "./nodes.ts";

// Three equal nodes. The tests build on each other: the last ones stop and kill nodes.

const ROLES = ["analyst", "backfill", "detector", "exports", "notifier", "retention"];
/** A role goes to another node within this time; a machine that is busy with other tests takes longer. */
const TAKEN_OVER_MS_MAX = 10_000;

await withEventEngines("three nodes of one service", () => {
  let nodes: Nodes;
  let [a, b, c]: Node[] = [];
  let hook: Server;
  let abuse: AbusePeer;
  const messages: any[] = [];

  beforeAll(async () => {
    hook = createServer((request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      request.on("end", () => {
        messages.push(JSON.parse(text));
        response.end();
      });
    }).listen(0, "127.0.0.1");
    await once(hook, "listening");
    abuse = await startAbusePeer();
    nodes = await openNodes({
      TOCSIN_ENRICHMENT_ABUSEIPDB_KEY: KEY,
      TOCSIN_ENRICHMENT_ABUSEIPDB_URL: abuse.url,
      TOCSIN_NOTIFICATIONS_WEBHOOK_URL: `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`,
      TOCSIN_NOTIFICATIONS_WEBHOOK_SECRET: "a secret of some length",
      TOCSIN_NOTIFICATIONS_PRIVATE_ADDRESSES: "on",
      TOCSIN_NOTIFICATIONS_BUILTIN_FROM: "off",
      TOCSIN_ANALYSIS_AUTOMATIC_FROM: "critical",
    });
    a = await nodes.start("a");
    [b, c] = await Promise.all([nodes.start("b"), nodes.start("c")]);
  });
  afterAll(async () => {
    await nodes?.end();
    hook?.close();
    await abuse?.close();
  });

  const submit = async (node: Node, type: string, data: object = {}, headers: Record<string, string> = {}) => {
    const answer = await node.call("POST", "/v1/events", { body: { type, source: "custom", data }, headers });
    expect(answer.status, answer.text).toBe(201);
    return answer.body.data.id as string;
  };
  const alertsOf = async (node: Node, name: string) => {
    const answer = await node.call("GET", `/v1/alerts?rule_name=${name}&limit=100`);
    expect(answer.status, answer.text).toBe(200);
    return answer.body.data as { id: string; event_count: number; ai_analysis: object | null }[];
  };
  /** A rule that raises one alert for each number. */
  const ruleByNumber = (node: Node, type: string, more: object = {}) =>
    createRule(node, {
      conditions: [{ field: "type", equals: type }],
      dedup: { period: "1h", by: ["raw.n"] },
      ...more,
    });
  const holderOf = async (role: string, among: readonly Node[]) => {
    for (const node of among) if ((await node.roles()).includes(role)) return node;
    return undefined;
  };

  test("each role is that of one node, which says so", async () => {
    expect([...(await a!.roles())].sort()).toEqual(ROLES);
    expect([await b!.roles(), await c!.roles()]).toEqual([[], []]);
    expect((await a!.call("GET", "/metrics")).text).toContain('tocsin_role_active{role="detector"} 1');
    expect((await b!.call("GET", "/metrics")).text).toContain('tocsin_role_active{role="detector"} 0');
    for (const node of [a!, b!]) {
      const { detection, retention } = (await node.call("GET", "/readyz")).body.data;
      expect({ detection, retention }).toMatchObject({
        detection: { status: "running" },
        retention: { status: "running" },
      });
    }
  });

  test("an event that is sent to two nodes with one token is stored once", async () => {
    const token = { "idempotency-key": "once-for-all" };
    const ids = await Promise.all([b!, c!].map((node) => submit(node, "node_token", { n: 1 }, token)));
    expect(new Set(ids).size).toBe(1);
    expect((await a!.call("GET", "/v1/events?type=node_token")).body.data).toHaveLength(1);
  });

  test("a rule that any node stored applies to the next event of any other, and streams of any node tell of both", async () => {
    const { name } = await ruleByNumber(b!, "node_rule");
    const readers = await Promise.all(
      [a!, b!].map((node) => openReader(node, { query: "?type=node_rule", key: nodes.key })),
    );
    const id = await submit(c!, "node_rule", { n: 1 });
    for (const reader of readers) {
      const found = await reader.until(
        (seen) => seen.some(({ event }) => event === "event") && seen.some(({ event }) => event === "alert"),
      );
      expect(found.find(({ event }) => event === "event")!.data.id).toBe(id);
      reader.close();
    }
    for (const node of [a!, b!, c!]) expect(await alertsOf(node, name)).toHaveLength(1);
    const listed = await c!.call("GET", "/v1/rules?limit=100");
    expect(listed.text).toContain(name);
  });

  test("an exception and a change by different nodes hold for all, and none is lost", async () => {
    const made = await ruleByNumber(a!, "node_exception");
    const path = `/v1/rules/${made.id}`;
    const excepted = await Promise.all(
      [a!, b!, c!].map((node, i) =>
        node.call("POST", `${path}/exceptions`, {
          body: { conditions: [{ field: "raw.n", equals: i }], reason: node.name },
        }),
      ),
    );
    expect(excepted.map(({ status }) => status)).toEqual([201, 201, 201]);
    for (let n = 0; n < 4; n++) await submit([a!, b!, c!][n % 3]!, "node_exception", { n });
    await expect.poll(async () => (await alertsOf(b!, made.name)).length).toBe(1);
    for (const node of [a!, b!, c!]) {
      await expect.poll(async () => (await node.call("GET", path)).body.data.exceptions.length).toBe(3);
    }
    expect((await c!.call("DELETE", path)).status).toBe(200);
    await expect.poll(async () => (await a!.call("GET", path)).status).toBe(404);
  });

  test("a key that one node revokes is refused by all, and a list that one node changes is used by all", async () => {
    const { key, id } = (
      await a!.call("POST", "/v1/keys", { body: { name: "to revoke", scopes: ["events:read"], plan: "pro" } })
    ).body.data;
    for (const node of [b!, c!]) expect((await node.call("GET", "/v1/events?limit=1", { key })).status).toBe(200);
    const revoked = await b!.call("DELETE", `/v1/keys/${id}`);
    const at = performance.now();
    expect(revoked.status, revoked.text).toBe(200);
    await expect.poll(async () => (await c!.call("GET", "/v1/events?limit=1", { key })).status).toBe(401);
    await expect.poll(async () => (await a!.call("GET", "/v1/events?limit=1", { key })).status).toBe(401);
    expect(performance.now() - at, "with time for a busy machine").toBeLessThan(5000);

    const list = await c!.call("POST", "/v1/lists", {
      body: { name: "node_list", description: "", kind: "addresses", entries: [{ value: "203.0.113.7" }] },
    });
    expect(list.status, list.text).toBe(201);
    await expect.poll(async () => (await b!.call("GET", "/v1/lists/node_list")).status).toBe(200);
    const event = await submit(b!, "node_listed", { src_ip: "203.0.113.7" });
    expect((await a!.call("GET", `/v1/events/${event}`)).body.data.enrichment.lists).toEqual(["node_list"]);
  });

  test("a session, its views and its end are those of all nodes", async () => {
    const signedIn = await a!.call("POST", "/v1/session", { body: { key: nodes.key } });
    expect(signedIn.status, signedIn.text).toBe(201);
    const headers = { cookie: signedIn.headers.get("set-cookie")!.split(";")[0]! };
    expect((await b!.call("GET", "/v1/session", { headers })).status).toBe(200);
    const view = await b!.call("POST", "/v1/views", {
      body: { name: "mine", screen: "alerts", search: "severity=high" },
    });
    expect(view.status, view.text).toBe(201);
    expect((await c!.call("GET", "/v1/views?screen=alerts", { headers })).text).toContain("mine");
    const origin = { "sec-fetch-site": "same-origin" };
    expect((await c!.call("DELETE", "/v1/session", { headers: { ...headers, ...origin } })).status).toBe(200);
    await expect.poll(async () => (await b!.call("GET", "/v1/session", { headers })).status).toBe(401);
  });

  test("the limit of a key is that of all nodes together, to the request", async () => {
    const key = await nodes.createKey("--name", "limited", "--plan", "starter");
    const all = [a!, b!, c!];
    const asked = Array.from({ length: 75 }, (_, i) => all[i % 3]!.call("GET", "/v1/session", { key }));
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(60);
    expect(statuses.filter((status) => status === 429)).toHaveLength(15);
    const resets = await Promise.all(
      all.map(async (node) => (await node.call("GET", "/v1/session", { key })).headers.get("x-ratelimit-reset")),
    );
    expect(new Set(resets).size).toBe(1);
  });

  test("an export that one node takes is run by another, and any node has its file", async () => {
    await submit(a!, "node_export");
    const range = { from: "now-1h", to: "now" };
    const query = { bool: { must: [{ field: "type", equals: "node_export" }] } };
    const made = await b!.call("POST", "/v1/events/export", { body: { format: "ndjson", time_range: range, query } });
    expect(made.status, made.text).toBe(201);
    const path = `/v1/events/exports/${made.body.data.id}`;
    await expect.poll(async () => (await c!.call("GET", path)).body.data.status).toBe("completed");
    for (const node of [a!, b!, c!]) expect((await node.call("GET", `${path}/download`)).text).toContain("node_export");
    expect((await b!.call("DELETE", path)).status).toBe(200);
    expect((await a!.call("GET", path)).status).toBe(404);
  });

  test("a notification is sent once, an alert analysed once, and every node knows of it", async () => {
    const made = await ruleByNumber(c!, "node_notify", {
      severity: "critical",
      actions: [{ alert: { channels: ["webhook"] } }],
    });
    await submit(b!, "node_notify", { n: 1 });
    await expect.poll(() => messages.length).toBe(1);
    const [alert] = await alertsOf(b!, made.name);
    await expect.poll(async () => (await alertsOf(b!, made.name))[0]!.ai_analysis).not.toBeNull();
    const timeline = (await c!.call("GET", `/v1/alerts/${alert!.id}`)).body.data.timeline as { kind: string }[];
    expect(timeline.filter(({ kind }) => kind === "notified")).toHaveLength(1);
    expect(timeline.filter(({ kind }) => kind === "analysed")).toHaveLength(1);
    for (const node of [a!, b!]) {
      const channel = async () =>
        (await node.call("GET", "/v1/channels")).body.data.find(({ name }: { name: string }) => name === "webhook");
      await expect.poll(async () => (await channel()).state).toBe("working");
    }
    expect(messages).toHaveLength(1);
  });

  test("a reputation that one node looked up is that of events and alerts of all", async () => {
    const made = await ruleByNumber(b!, "node_reputation");
    const reputationOf = async (path: string) => (await b!.call("GET", path)).body.data.enrichment.abuse_ipdb;
    await submit(c!, "node_reputation", { n: 1, src_ip: "45.33.32.156" });
    await expect.poll(async () => (await alertsOf(b!, made.name)).length).toBe(1);
    const [alert] = await alertsOf(b!, made.name);
    await expect.poll(() => reputationOf(`/v1/alerts/${alert!.id}`)).toBeDefined();
    const asked = abuse.asked.length;
    const id = await submit(b!, "node_reputation_later", { src_ip: "45.33.32.156" });
    await expect.poll(() => reputationOf(`/v1/events/${id}`)).toBeDefined();
    expect(abuse.asked, "the second node asks the store").toHaveLength(asked);
  });

  test("a node that is paused loses its roles, and writes nothing when it goes on", async () => {
    const made = await ruleByNumber(b!, "node_paused");
    await submit(a!, "node_paused", { n: 0 });
    await expect.poll(async () => (await alertsOf(b!, made.name)).length).toBe(1);
    a!.signal("SIGSTOP");
    const pausedAt = performance.now();
    for (let n = 1; n <= 6; n++) await submit([b!, c!][n % 2]!, "node_paused", { n });
    await expect.poll(async () => (await alertsOf(c!, made.name)).length, { interval: 100 }).toBe(7);
    expect(performance.now() - pausedAt).toBeLessThan(2 * TAKEN_OVER_MS_MAX);
    const epoch = await detectorEpoch(nodes);
    await submit(c!, "node_paused", { n: 7 });
    a!.signal("SIGCONT");
    await expect.poll(() => a!.roles()).not.toContain("detector");
    await expect.poll(async () => (await alertsOf(a!, made.name)).length).toBe(8);
    await sleep(500);
    const alerts = await alertsOf(b!, made.name);
    expect(alerts).toHaveLength(8);
    expect(alerts.every((alert) => alert.event_count === 1)).toBe(true);
    expect(await detectorEpoch(nodes), "the one that was paused did not take it back").toBe(epoch);
    expect((await a!.call("GET", "/readyz")).status).toBe(200);
  });

  test("after kill -9 of the detector's node another goes on where it was, with every alert once", async () => {
    const made = await ruleByNumber(a!, "node_killed");
    const all = [a!, b!, c!];
    const holder = (await holderOf("detector", all))!;
    const left = all.filter((node) => node !== holder);
    const acknowledged = new Set<number>();
    let n = 0;
    const submitting = Promise.all(
      left.map(async (node) => {
        while (n < 40) {
          const number = n++;
          await submit(node, "node_killed", { n: number });
          acknowledged.add(number);
        }
      }),
    );
    await expect.poll(() => acknowledged.size, { interval: 10 }).toBeGreaterThan(10);
    await holder.stop("SIGKILL");
    const killedAt = performance.now();
    await expect.poll(() => holderOf("detector", left), { interval: 100 }).toBeDefined();
    expect(performance.now() - killedAt).toBeLessThan(2 * TAKEN_OVER_MS_MAX);
    await submitting;
    await expect.poll(async () => (await alertsOf(left[0]!, made.name)).length).toBe(40);
    const alerts = await alertsOf(left[1]!, made.name);
    expect(alerts.every((alert) => alert.event_count === 1)).toBe(true);
    [b, c] = left;
  });

  test("a node that stops in an orderly way hands its roles over at once", async () => {
    const [holder, other] = (await b!.roles()).includes("detector") ? [b!, c!] : [c!, b!];
    expect(await holder!.stop("SIGTERM")).toBe(0);
    const stoppedAt = performance.now();
    await expect.poll(async () => [...(await other!.roles())].sort(), { interval: 50 }).toEqual(ROLES);
    expect(performance.now() - stoppedAt, "not after the lease has expired").toBeLessThan(5000);
    const { name } = await createRule(other!, { conditions: rule().conditions, name: "node.last_rule" });
    expect(name).toBe("node.last_rule");
  });
});

async function detectorEpoch({ cluster }: Nodes): Promise<number> {
  const client = new Client({ connectionString: cluster.postgresUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ epoch: string }>("SELECT epoch FROM leases WHERE name = 'detector'");
    return Number(rows[0]!.epoch);
  } finally {
    await client.end();
  }
}
