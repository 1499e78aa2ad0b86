import { afterAll, beforeAll, expect, test } from "vitest";
import { createRule } from "../../src/api/rule-endpoints.fixture.ts";
import { withEventEngines } from "../../src/store/opensearch/opensearch-events.fixture.ts";
import { openTestServer, type TestServer } from "../api-server.ts";
import { clusterOf } from "./cluster-of-folder.ts";

const HOUR_MS = 3_600_000;

await withEventEngines("two nodes whose clocks are an hour apart", () => {
  let right: TestServer;
  let ahead: TestServer;

  beforeAll(async () => {
    right = await openTestServer({ usesCluster: true });
    const cluster = await clusterOf(right.dataDir);
    ahead = await openTestServer({
      usesCluster: false,
      settingsFrom: (defaults) => cluster.settings(defaults),
      now: () => Date.now() + HOUR_MS,
    });
  });
  afterAll(async () => {
    await ahead?.close();
    await right?.close();
  });

  const submit = async (server: TestServer, n: number, token?: string) => {
    const body = { type: "apart", source: "custom", timestamp: new Date().toISOString(), data: { n } };
    const headers = token === undefined ? {} : { "idempotency-key": token };
    const answer = await server.call("POST", "/v1/events", { body, headers, key: right.key.secret });
    expect(answer.status, answer.text).toBe(201);
    return answer.body.data.id as string;
  };
  const aheadSeconds = async (server: TestServer) =>
    Number(/^tocsin_clock_ahead_seconds (.*)$/m.exec((await server.call("GET", "/metrics")).text)![1]);

  test("say how far they are from PostgreSQL, and warn of it", async () => {
    expect(await aheadSeconds(right)).toBe(0);
    expect(Math.abs((await aheadSeconds(ahead)) - 3600)).toBeLessThan(60);
    const warned = ({ log }: TestServer) => log.filter(({ msg }) => /clock of this node differs/.test(msg)).length;
    expect([warned(right), warned(ahead)]).toEqual([0, 1]);
  });

  test("each event is stored, found and detected once, whichever node has it and whichever detects", async () => {
    const { name } = await createRule(right, {
      conditions: [{ field: "type", equals: "apart" }],
      dedup: { period: "24h", by: ["raw.n"] },
    });
    const counts = async () => {
      const { data } = (await right.call("GET", `/v1/alerts?rule_name=${name}&limit=100`)).body;
      return data.map((alert: { event_count: number }) => alert.event_count);
    };
    const ids = new Set<string>();
    for (let n = 0; n < 6; n++) ids.add(await submit(n % 2 === 0 ? ahead : right, n));
    ids.add(await submit(ahead, 6, "same"));
    ids.add(await submit(right, 6, "same"));
    expect(ids.size).toBe(7);
    await expect.poll(counts).toEqual(Array.from({ length: 7 }, () => 1));
    const detects = async (server: TestServer, n: number) => {
      ids.add(await submit(server, n));
      await expect
        .poll(async () => (await server.call("GET", "/readyz")).body.data.roles)
        .toEqual(expect.arrayContaining(["detector"]));
    };
    right = await right.restart(() => detects(ahead, 7));
    ahead = await ahead.restart(() => detects(right, 8));
    await expect.poll(counts).toEqual(Array.from({ length: 9 }, () => 1));
    const listed = (await right.call("GET", "/v1/events?type=apart&limit=100")).body.data;
    expect(new Set(listed.map(({ id }: { id: string }) => id))).toEqual(ids);
  });

  test("the limit of a key is that of both together", async () => {
    const minute = () => Math.floor(Date.now() / 60_000);
    const accepted = async () => {
      const { secret } = await right.addKey({ plan: "starter" });
      let count = 0;
      for (let n = 0; n < 62; n++) {
        const { status } = await (n % 2 === 0 ? ahead : right).call("GET", "/v1/rules?limit=1", { key: secret });
        if (status === 200) count++;
      }
      return count;
    };
    let begun = minute();
    let count = await accepted();
    // A new minute has a limit of its own.
    while (minute() !== begun) [begun, count] = [minute(), await accepted()];
    expect(count).toBe(60);
  });
});
