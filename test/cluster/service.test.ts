import { afterAll, beforeAll, expect, test } from "vitest";
import { createRule } from "../../src/api/rule-endpoints.fixture.ts";
import { openReader, submitEvent } from "../../src/api/stream.fixture.ts";
import { DAY_MS, formatTime, startOfDay } from "../../src/lib/time.ts";
import { flowRowsOf } from "../../src/model/flow-rows.ts";
import { withEventEngines } from "../../src/store/opensearch/opensearch-events.fixture.ts";
import { openTestServer, type TestServer } from "../api-server.ts";
import { clusterOf } from "./cluster-of-folder.ts";

// The whole service on PostgreSQL and OpenSearch.

await withEventEngines("a service with its cases in PostgreSQL and its data in OpenSearch", () => {
  const NOW = Date.now();
  let server: TestServer;
  beforeAll(async () => {
    server = await openTestServer({ usesCluster: true });
  });
  afterAll(() => server.close());

  const events = async (query: string) => {
    const { status, body, text } = await server.call("GET", `/v1/events?${query}`);
    expect(status, text).toBe(200);
    return body as { data: { id: string }[]; meta: { total: number; next_cursor?: string | null } };
  };
  const alertsOf = async (rule: string) =>
    (await server.call("GET", `/v1/alerts?rule_name=${rule}`)).body.data as { id: string; event_count: number }[];
  const restart = async (between?: () => unknown) => {
    server = await server.restart(between);
  };
  const batch = (type: string, count: number, more: object = {}) =>
    server.call("POST", "/v1/events/batch", {
      body: Array.from({ length: count }, (_, n) => ({
        type,
        source: "custom",
        timestamp: formatTime(NOW - n * 1000),
        data: { user: `user${n % 3}`, n },
        ...more,
      })),
    });

  test("finds single events and batches at once, by words, pages, cursors and aggregations, also after a restart", async () => {
    const id = await submitEvent(server, { type: "walk_single", data: { note: "the yellow submarine" } });
    expect((await events("type=walk_single&search=yellow")).data.map((event) => event.id)).toEqual([id]);
    const stored = await batch("walk_batch", 25);
    expect(stored.status, stored.text).toBeLessThan(300);
    await restart();
    expect((await server.call("GET", `/v1/events/${id}`)).status).toBe(200);
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page = await server.call(
        "GET",
        `/v1/events?type=walk_batch&limit=10&${after === null ? "" : `after=${after}`}`,
      );
      expect(page.status, page.text).toBe(200);
      seen.push(...page.body.data.map((event: { id: string }) => event.id));
      after = page.body.pagination.next_cursor;
    } while (after !== null);
    expect(new Set(seen).size).toBe(25);
    expect(seen).toHaveLength(25);
    const search = await server.call("POST", "/v1/events/search", {
      body: {
        query: { bool: { must: [{ field: "type", equals: "walk_batch" }] } },
        aggs: { users: { terms: { field: "raw.user" } } },
      },
    });
    expect(search.status, search.text).toBe(200);
    expect(search.text).toContain('"user0"');
  });

  test("a stream tells of what is stored, and goes on where it was after a restart", async () => {
    const reader = await openReader(server, { query: "?kinds=events&type=walk_stream", key: server.key.secret });
    const first = await submitEvent(server, { type: "walk_stream" });
    const [message] = await reader.count(1);
    expect(message!.data.id).toBe(first);
    reader.close();
    const second = await submitEvent(server, { type: "walk_stream" });
    await restart();
    const query = `?kinds=events&type=walk_stream&last_event_id=${message!.id}`;
    const again = await openReader(server, { query, key: server.key.secret });
    expect((await again.count(1)).map(({ data }) => data.id)).toEqual([second]);
    again.close();
  });

  test("a rule fires once for its events, also for those that arrived around a restart; alerts are worked on", async () => {
    const conditions = [{ field: "type", equals: "walk_rule" }];
    const threshold = { count: 3, group_by: "raw.user" };
    const rule = await createRule(server, { conditions, window: "10m", threshold });
    await submitEvent(server, { type: "walk_rule", data: { user: "eve" } });
    await submitEvent(server, { type: "walk_rule", data: { user: "eve" } });
    await restart();
    expect(await alertsOf(rule.name)).toEqual([]);
    await submitEvent(server, { type: "walk_rule", data: { user: "eve" } });
    await expect.poll(async () => (await alertsOf(rule.name)).length).toBe(1);
    const { id } = (await alertsOf(rule.name))[0]!;
    const acknowledged = await server.call("POST", `/v1/alerts/${id}/acknowledge`, {
      body: { assignee: "anna@example.com" },
    });
    expect(acknowledged.status, acknowledged.text).toBe(200);
    await restart();
    const [alert] = await alertsOf(rule.name);
    expect(alert).toMatchObject({ id, status: "acknowledged", assignee: "anna@example.com" });
    const related = await server.call("GET", `/v1/alerts/${id}/events`);
    expect(related.body.data).toHaveLength(3);
  });

  test("flows are listed and ranked through the API", async () => {
    const row = (src: string, bytes: bigint) => ({
      windowStartMs: Math.floor(NOW / 60_000) * 60_000 - 120_000,
      src,
      dst: "192.0.2.9",
      srcPort: 40_000,
      dstPort: 443,
      protocol: 6,
      exporter: "192.0.2.1",
      version: 9,
      tcpFlags: 27,
      bytes,
      packets: 3n,
      firstSeenMs: NOW - 120_000,
      lastSeenMs: NOW - 61_000,
    });
    await server.store.flows.append(flowRowsOf([row("10.0.0.1", 10n), row("10.0.0.2", 99n)]), "walk");
    const listed = await server.call("GET", "/api/v1/flows");
    expect(listed.body).toMatchObject({ total: 2 });
    const talkers = await server.call("GET", "/api/v1/flows/top-talkers");
    expect(talkers.status, talkers.text).toBe(200);
    expect(talkers.text.indexOf("10.0.0.2")).toBeLessThan(talkers.text.indexOf("10.0.0.1"));
  });

  test("a day that is closed is named by /readyz, and answers without it say so", async () => {
    const { openSearchUrl, indexPrefix } = await clusterOf(server.dataDir);
    const day = startOfDay(NOW) - DAY_MS;
    await batch("walk_closed", 2, { timestamp: formatTime(day) });
    const index = `${indexPrefix}-events-${formatTime(day).slice(0, 10).replaceAll("-", ".")}`;
    expect((await fetch(`${openSearchUrl}/${index}/_close`, { method: "POST" })).status).toBe(200);
    try {
      await expect
        .poll(async () => (await server.call("GET", "/readyz")).body.data.storage)
        .toMatchObject({ status: "incomplete", messages: [expect.stringContaining(`${index} is closed`)] });
      const list = await server.call("GET", "/v1/events?type=walk_closed");
      expect(list.status, list.text).toBe(200);
      expect(list.body.meta.incomplete).toEqual([{ day: formatTime(day).slice(0, 10), missing: expect.any(Number) }]);
      expect(list.headers["x-tocsin-incomplete"]).toContain(formatTime(day).slice(0, 10));
      const today = await server.call("GET", `/v1/events?type=walk_closed&from=${formatTime(day + DAY_MS)}`);
      expect([today.status, today.body.meta.incomplete]).toEqual([200, undefined]);
    } finally {
      await fetch(`${openSearchUrl}/${index}/_open`, { method: "POST" });
    }
    await expect.poll(async () => (await events("type=walk_closed")).data).toHaveLength(2);
  });

  test("retention removes whole days", async () => {
    const old = startOfDay(NOW) - 5 * DAY_MS;
    await batch("walk_old", 3, { timestamp: formatTime(old) });
    expect((await events("type=walk_old")).data).toHaveLength(3);
    const due = await server.store.retention.due("events", old + DAY_MS);
    expect(due.rows).toBe(3);
    expect(await server.store.events.removeBefore(old + DAY_MS)).toEqual({ days: 1, events: 3 });
    expect((await events("type=walk_old")).data).toEqual([]);
  });

  test("another platform word is refused once rules use one", async () => {
    await createRule(server, { conditions: [{ field: "source", equals: "platform_network" }] });
    const settings = { platform: "other" };
    await expect(server.restart(undefined, { usesCluster: true, settings })).rejects.toThrow(
      /its platform word is platform, not other/,
    );
    server = await server.restart();
  });
});
