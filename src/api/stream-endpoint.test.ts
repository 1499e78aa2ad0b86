import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { isUsable, revokeKey } from "../model/key.ts";
import type { EntityKind } from "../model/entity.ts";
import type { Finding } from "../model/finding.ts";
import { openReader, raiseAlert, submitEvent, type StreamMessage, type StreamReader } from "./stream.fixture.ts";

let server: TestServer;

beforeAll(async () => {
  server = await openTestServer();
});
afterAll(() => server.close());

const readers: StreamReader[] = [];
afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
});

async function listen(query = "", headers: Record<string, string> = {}, key = server.key.secret) {
  const reader = await openReader(server, { query, headers, key });
  readers.push(reader);
  return reader;
}

const submit = (more: object = {}) => submitEvent(server, more);
const raise = (more: Partial<Finding> = {}) => raiseAlert(server, more);
const ids = (messages: readonly StreamMessage[]) => messages.map(({ data }) => data.id);

describe("a stream", () => {
  test("sends new events, and alerts when they are created and when they change", async () => {
    const reader = await listen();
    expect(reader.response.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(reader.response.headers["cache-control"]).toBe("no-store");
    expect(reader.response.headers["x-ratelimit-limit"]).toBeDefined();
    const event = await submit();
    await reader.count(1);
    const alert = await raise();
    await reader.count(2);
    await server.call("POST", `/v1/alerts/${alert}/acknowledge`, { body: { assignee: "anna@example.com" } });
    const messages = await reader.count(3);
    expect(messages.map((message) => [message.event, message.data.id, message.data.status])).toEqual([
      ["event", event, undefined],
      ["alert", alert, "open"],
      ["alert", alert, "acknowledged"],
    ]);
    expect(messages[0]!.data).toEqual((await server.call("GET", `/v1/events/${event}`)).body.data);
    const listed = (await server.call("GET", "/v1/alerts?limit=1")).body.data[0];
    expect(messages[2]!.data).toEqual({ ...listed, change: expect.any(Number) });
    expect(messages[2]!.data.change).toBeGreaterThan(messages[1]!.data.change);
    expect(reader.text).toMatch(/^retry: \d+\n\n/);
    for (const { id } of messages) expect(id).toMatch(/^\d+\.([a-z]{3}_[0-9a-f]{32,34})?$/);
  });

  test("sends only what passes its filters", async () => {
    const high = await listen("?severity=high,critical&rule_name=stream.rule,stream.else");
    const typed = await listen("?kinds=events&type=stream_one,stream_two&class=security");
    const annas = await listen("?kinds=alerts&assignee=Anna@example.com");
    const evas = await listen("?kinds=alerts&entity=user:EVA,dock&assignee=none");
    const doors = await listen("?kinds=alerts&entity=door:eva,door:dock");
    const earlier = await listen(`?kinds=alerts&time=overlap&to=${new Date(100).toISOString()}`);
    const cases = await listen("?kinds=alerts&status=resolved&rule_name=stream.rule,stream.other&source=custom");
    await submit({ severity: "low", type: "stream_one" });
    const event = await submit({ severity: "critical" });
    const two = await submit({ severity: "high", type: "stream_two" });
    await raise({ severity: "low" });
    const mine = await raise({ severity: "low" });
    await server.call("POST", `/v1/alerts/${mine}/acknowledge`, { body: { assignee: "anna@example.com" } });
    const alert = await raise();
    await server.call("POST", `/v1/alerts/${alert}/resolve`, { body: { resolution: "benign" } });
    const other = await raise({ rule: { id: "rule_t", name: "stream.else", description: "", tags: [], channels: [] } });
    await server.call("POST", `/v1/alerts/${other}/resolve`, { body: { resolution: "benign" } });
    const named = (id: string, kind: EntityKind, value: string) =>
      raise({ events: [{ id, timestampMs: 1 }], entities: { [id]: [{ kind, value }] }, severity: "low" });
    const eva = await named("evt_1", "user", "Eva");
    await named("evt_2", "user", "Ben");
    const dock = await named("evt_3", "door", "Dock");
    const early = await raise({ severity: "low", firstEventMs: 99 });
    expect(ids(await evas.count(2))).toEqual([eva, dock]);
    expect(ids(await doors.count(1))).toEqual([dock]);
    expect(ids(await earlier.count(1))).toEqual([early]);
    // In a cluster events come a moment later than alerts.
    expect(ids(await high.count(6)).sort()).toEqual([event, two, alert, alert, other, other].sort());
    expect(ids(await typed.count(2))).toHaveLength(2);
    expect(typed.messages.map(({ data }) => data.type)).toEqual(["stream_one", "stream_two"]);
    expect(ids(await cases.count(1))).toEqual([alert]);
    expect(ids(await annas.count(1))).toEqual([mine]);
  });

  test("sends alerts by their tags once they have them", async () => {
    const reader = await listen("?kinds=alerts&tag=vip,other");
    const [first, second] = [await raise(), await raise()];
    for (const [id, tags] of [
      [first, ["quiet"]],
      [second, ["loud", "VIP"]],
    ] as const) {
      expect((await server.call("PUT", `/v1/alerts/${id}/tags`, { body: { tags } })).status).toBe(200);
    }
    const [message] = await reader.count(1);
    expect([message!.data.id, message!.data.tags]).toEqual([second, ["loud", "vip"]]);
  });

  test("sends what the lists return for the same words and time range, live and when it catches up", async () => {
    const first = await listen();
    await submit();
    const { id: place } = (await first.count(1))[0]!;
    const noon = Date.now() - 3_600_000;
    const at = (ms: number) => new Date(ms).toISOString();
    const queries = [
      "search=192.0.2.77",
      "search=0.2.77",
      "search=8443",
      "search=true+stream_word",
      "search=aa:bb:cc:22:33:44",
      'search="barred+door"',
      "search=mia",
      "search=stream_w&severity=low",
      `search=stream_word&from=${at(noon)}`,
      `search=stream_word&from=${at(noon - 1)}&to=${at(noon)}`,
      `to=${at(noon)}`,
    ];
    const open = async (more = "") => {
      const { secret } = await server.addKey();
      return Promise.all(queries.map((query) => listen(`?${query}${more}`, {}, secret)));
    };
    const live = await open();
    const data = [
      { src_ip: "192.0.2.77", port: 8443 },
      { src_ip: "192.0.2.7", flag: true, mac: "AA-BB-CC-22-33-44" },
      { text: "the barred door, 192.0.2.77:8443" },
      { text: "a door that is barred, for Mia" },
    ];
    for (const [i, each] of data.entries()) {
      await submit({ type: "stream_word", severity: i === 3 ? "low" : "high", data: each, timestamp: at(noon - 1) });
      await submit({ type: "stream_word", data: each, timestamp: at(noon) });
    }
    const rule = { id: "rule_w", name: "stream.words", description: "", tags: [], channels: [] };
    await raise({ rule, title: "A barred door at 192.0.2.77" });
    const assigned = await raise({ rule, title: "port 8443, true, aabb.cc22.3344", description: "stream_word" });
    await server.call("POST", `/v1/alerts/${assigned}/acknowledge`, { body: { assignee: "mia@example.com" } });
    const late = await open(`&last_event_id=${place}`);
    // Every query finds one of the last items, if it can find any.
    const text = `stream_word ${queries.join(" ")} "barred door" 0.2.77 true`;
    for (const ms of [noon, noon - 1])
      await submit({ type: "stream_word", severity: "low", data: { text }, timestamp: at(ms) });
    await raise({ rule, severity: "low", title: text, description: "stream_word mia" });
    for (const [i, query] of queries.entries()) {
      const wanted = new Set<string>();
      for (const path of ["/v1/events", "/v1/alerts"]) {
        const { body } = await server.call("GET", `${path}?limit=100&${query}`);
        for (const { id } of body.data) wanted.add(id);
      }
      expect(wanted.size, query).toBeGreaterThan(0);
      for (const reader of [live[i]!, late[i]!]) {
        await reader.until((messages) => wanted.isSubsetOf(new Set(ids(messages))));
        expect(new Set(ids(reader.messages)), query).toEqual(wanted);
      }
    }
  });

  test("resumes by header and by parameter, without a gap and without repeating", async () => {
    const reader = await listen();
    const events = [await submit()];
    const cases = [await raise()];
    await reader.count(2);
    const { id } = reader.messages.at(-1)!;
    reader.close();
    for (let i = 0; i < 150; i++) events.push(await submit());
    for (let i = 0; i < 30; i++) cases.push(await raise());
    const fresh = await listen("", {});
    const resumed = [await listen("", { "last-event-id": id }), await listen(`?last_event_id=${id}`)];
    // More arrives while they catch up.
    events.push(await submit());
    cases.push(await raise());
    for (const each of resumed) {
      await each.count(182);
      const of = (kind: string) => ids(each.messages.filter(({ event }) => event === kind));
      expect(of("event")).toEqual(events.slice(1));
      expect(of("alert")).toEqual(cases.slice(1));
    }
    await fresh.count(2);
    expect(ids(fresh.messages).sort()).toEqual([events.at(-1), cases.at(-1)].sort());
  });

  test("resumes from the id of any message", async () => {
    const reader = await listen("?kinds=events");
    const events: string[] = [];
    for (let i = 0; i < 5; i++) events.push(await submit());
    const messages = await reader.count(5);
    for (const [i, { id }] of messages.entries()) {
      const again = await listen(`?kinds=events&last_event_id=${id}`);
      if (i < 4) expect(ids(await again.count(4 - i))).toEqual(events.slice(i + 1));
    }
  });

  test("treats a position past the end as the end", async () => {
    await submit();
    const last = (await server.store.events.lastArrival())!;
    const reader = await listen(`?last_event_id=999999999.${last.slice(0, 4)}fff${last.slice(7)}`);
    const event = await submit();
    const alert = await raise();
    expect(ids(await reader.count(2)).sort()).toEqual([event, alert].sort());
  });

  test("resumes after a restart of the service without missing anything", async () => {
    const reader = await listen();
    await submit();
    await reader.count(1);
    const { id } = reader.messages[0]!;
    const restarting = server.restart();
    await reader.ended;
    server = await restarting;
    const event = await submit();
    const again = await listen(`?last_event_id=${id}`, {}, server.key.secret);
    expect(ids(await again.count(1))).toEqual([event]);
  });
});

describe("permissions", () => {
  test("a stream contains only what its key can read, and refuses a request for more", async () => {
    const { secret } = await server.addKey({ scopes: ["alerts:read"] });
    const reader = await listen("", {}, secret);
    await submit();
    const alert = await raise();
    expect(ids(await reader.count(1))).toEqual([alert]);
    const call = (path: string, key: string | null) => server.call("GET", path, { key });
    const asked = await call("/v1/stream?kinds=alerts,events", secret);
    expect([asked.status, asked.body.error.code]).toEqual([403, "forbidden"]);
    expect(asked.body.error.message).toContain("events:read");
    expect((await call("/v1/stream", (await server.addKey({ scopes: ["rules:read"] })).secret)).status).toBe(403);
    expect((await call("/v1/stream", null)).status).toBe(401);
  });

  test("a stream ends when its key is revoked", async () => {
    const { key, secret } = await server.addKey();
    const reader = await listen("", {}, secret);
    await server.store.keys.put(revokeKey(key, Date.now()));
    await reader.ended;
    expect(isUsable((await server.store.keys.find(key.id))!, Date.now())).toBe(false);
  });

  test("an invalid position is reported under the name it was sent as", async () => {
    for (const place of ["7", "7.evt_nonsense"]) {
      const headers = { "last-event-id": place };
      const answer = await server.call("GET", "/v1/stream?last_event_id=1.", { headers });
      const details = [{ field: "Last-Event-ID", message: "is not the id of a message of this stream" }];
      expect([answer.status, answer.body.error.details]).toEqual([400, details]);
    }
  });

  test.each([
    ["kinds=flows", ["kinds"]],
    ["severity=urgent", ["severity"]],
    ["source=router", ["source"]],
    ["class=other", ["class"]],
    ["kinds=alerts&type=motion&class=audit", ["type", "class"]],
    ["kinds=events&status=open", ["status"]],
    ["last_event_id=7", ["last_event_id"]],
    ["last_event_id=7.evt_nonsense", ["last_event_id"]],
    ["last_event_id=-1.", ["last_event_id"]],
    ["since=1", ["since"]],
    ["search=***", ["search"]],
    ["from=noon&search=", ["from", "search"]],
    ["from=2026-11-16&to=2026-11-15", ["from"]],
  ])("%s is refused", async (query, fields) => {
    const answer = await server.call("GET", `/v1/stream?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body.error.details.map(({ field }: { field: string }) => field)).toEqual(fields);
  });

  test("a HEAD request opens no stream", async () => {
    const answer = await server.call("HEAD", "/v1/stream");
    expect(answer.status).toBe(200);
    expect(answer.text).toBe("");
    const openStreams = async () => /^tocsin_streams (\d+)$/m.exec((await server.call("GET", "/metrics")).text)?.[1];
    while ((await openStreams()) !== "0") await new Promise(setImmediate);
  });
});
