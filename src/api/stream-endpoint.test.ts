import { request as httpRequest, type IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { openAlerts, type Alerts } from "../alerts/alerts.ts";
import { isUsable, revokeKey, rotateKey, type ApiKey } from "../model/key.ts";
import type { EntityKind } from "../model/entity.ts";
import type { Finding } from "../model/finding.ts";
import { FairShare } from "./fair-share.ts";
import type { StreamTimes } from "./stream-connection.ts";
import { StreamHub } from "./stream-endpoint.ts";

let server: TestServer;
let alerts: Alerts;

const open = async () => {
  server = await openTestServer();
  alerts = openAlerts({ store: server.store, addException: () => Promise.reject(new Error("unasked")) });
};
beforeAll(open);
afterAll(() => server.close());

interface Message {
  readonly id: string;
  readonly event: string;
  readonly data: any;
}

/** Reads a stream as a browser does. */
class Reader {
  readonly response: IncomingMessage;
  readonly messages: Message[] = [];
  comments = 0;
  text = "";
  readonly ended: Promise<void>;
  #wake = () => {};

  constructor(response: IncomingMessage) {
    this.response = response;
    let rest = "";
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => {
      this.text += chunk;
      rest += chunk;
      const blocks = rest.split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) this.#take(block);
      this.#wake();
    });
    this.ended = new Promise((resolve) => response.on("close", resolve));
  }

  #take(block: string): void {
    const field = (name: string) =>
      block
        .split("\n")
        .find((line) => line.startsWith(`${name}: `))
        ?.slice(name.length + 2);
    if (block.startsWith(":")) this.comments++;
    const data = field("data");
    if (data !== undefined) this.messages.push({ id: field("id")!, event: field("event")!, data: JSON.parse(data) });
  }

  async until(isEnough: (messages: readonly Message[]) => boolean): Promise<readonly Message[]> {
    while (!isEnough(this.messages)) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.messages;
  }

  count(number: number): Promise<readonly Message[]> {
    return this.until(({ length }) => length >= number);
  }

  close(): void {
    this.response.destroy();
  }
}

const readers: Reader[] = [];
afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
});

async function listen(query = "", headers: Record<string, string> = {}, key = server.key.secret): Promise<Reader> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = httpRequest(
      {
        host: "127.0.0.1",
        port: server.port,
        path: `/v1/stream${query}`,
        headers: { authorization: `Bearer ${key}`, ...headers },
      },
      resolve,
    );
    sent.on("error", reject);
    sent.end();
  });
  expect(response.statusCode).toBe(200);
  const reader = new Reader(response);
  readers.push(reader);
  return reader;
}

const submit = async (more: object = {}): Promise<string> =>
  (await server.call("POST", "/v1/events", { body: { type: "stream_test", source: "custom", data: {}, ...more } })).body
    .data.id;

let made = 0;
async function raise(more: Partial<Finding> = {}): Promise<string> {
  const now = Date.now();
  const finding: Finding = {
    rule: { id: "rule_s", name: "stream.rule", description: "A rule.", tags: [], channels: [] },
    severity: "high",
    dedupKey: `["${++made}"]`,
    dedupMs: 1000,
    group: null,
    eventId: null,
    source: "custom",
    title: "Streamed",
    description: "Streamed.",
    enrichment: {},
    eventCount: 1,
    firstEventMs: now,
    lastEventMs: now,
    events: [],
    ...more,
  };
  await alerts.raise([finding], undefined);
  const { items } = await server.store.alerts.list({}, { mode: "page", page: 1, size: 1 }, "created_at", true);
  return items[0]!.id;
}
const ids = (messages: readonly Message[]) => messages.map(({ data }) => data.id);

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
    for (const { id } of messages) expect(id).toMatch(/^\d+\.(evt_[0-9a-f]{32})?$/);
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
    await high.until((messages) => messages.filter(({ data }) => data.id === other).length === 2);
    expect(ids(high.messages).sort()).toEqual([event, two, alert, alert, other, other].sort());
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
    const reader = await listen("?last_event_id=999999999.evt_ffffffffffff7fffbfffffffffffffff");
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
    alerts = openAlerts({ store: server.store, addException: () => Promise.reject(new Error("unasked")) });
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

describe("limits", () => {
  const registry = () => new Registry();
  const quick: StreamTimes = { tickMs: 10, heartbeatTicks: 3, stalledTicksMax: 20 };
  const newStreams = (register = registry(), times = quick) =>
    new StreamHub({ store: server.store, registry: register, log: pino({ level: "silent" }), now: Date.now, times });
  const opening = (made = server.key) => ({
    key: made.key,
    credentials: { authorization: `Bearer ${made.secret}`, sessionId: undefined },
    kinds: ["events" as const],
    filters: {},
    resumeFrom: undefined,
  });
  const endedWith = async (register: Registry, reason: string) => {
    const { values } = await register.getSingleMetric("tocsin_streams_ended_total")!.get();
    return values.find(({ labels }) => labels["reason"] === reason)?.value ?? 0;
  };

  const gone: readonly [string, (key: ApiKey) => ApiKey][] = [
    ["revoked", (key) => revokeKey(key, Date.now())],
    ["rotated", (key) => rotateKey(key, { graceMs: 0, now: Date.now() }).key],
  ];
  test.each(gone)("a key that was %s reads nothing more, neither new nor buffered messages", async (_, change) => {
    const register = registry();
    const streams = newStreams(register, { ...quick, tickMs: 600_000 });
    const made = await server.addKey();
    const [reading, waiting] = [await streams.open(opening(made)), await streams.open(opening(made))];
    const texts = ["", ""];
    const read = async (index: number, output: Readable) => {
      for await (const chunk of output as AsyncIterable<Buffer>) texts[index] += chunk.toString();
    };
    const live = read(0, reading);
    const before = await submit();
    while (!texts[0]!.includes(before) || waiting.readableLength < texts[0]!.length) await new Promise(setImmediate);
    await server.store.keys.put(change(made.key));
    const after = await submit();
    await live;
    await read(1, waiting).catch(() => undefined);
    expect([texts[0]!.includes(before), texts[0]!.includes(after), texts[1]]).toEqual([true, false, ""]);
    expect(await endedWith(register, "key")).toBe(2);
    streams.close();
  });

  test("an idle stream sends a heartbeat", async () => {
    const streams = newStreams();
    const output = await streams.open(opening());
    let text = "";
    for await (const chunk of output as AsyncIterable<Buffer>) {
      text += chunk.toString();
      if (text.split(": still here\n\n").length > 3) break;
    }
    expect(text).toMatch(/^retry: \d+\n\n(: still here\n\n)+$/);
    streams.close();
  });

  test("a client that reads nothing is disconnected and counted, and its buffer is limited", async () => {
    const register = registry();
    const streams = newStreams(register);
    const output = await streams.open(opening());
    const closed = new Promise((resolve) => output.once("close", resolve));
    let most = 0;
    const text = "x".repeat(900_000);
    const sending = (async () => {
      while (!output.destroyed) {
        await submit({ data: { text } });
        most = Math.max(most, output.readableLength);
      }
    })();
    await closed;
    await sending;
    expect(await endedWith(register, "slow_reader")).toBe(1);
    expect(most).toBeLessThan(4 * 1024 * 1024);
    streams.close();
  });

  test("a slow client gets everything, in order", async () => {
    const streams = newStreams(registry(), { ...quick, stalledTicksMax: 1_000_000 });
    const output = await streams.open(opening());
    const text = "x".repeat(300_000);
    const sent: string[] = [];
    for (let i = 0; i < 20; i++) sent.push(await submit({ data: { text } }));
    let read = "";
    const got = () => [...read.matchAll(/^data: \{"id":"(evt_[0-9a-f]+)"/gm)].map((match) => match[1]);
    for await (const chunk of output as AsyncIterable<Buffer>) {
      read += chunk.toString();
      if (got().length >= sent.length && read.endsWith("\n\n")) break;
    }
    expect(got()).toEqual(sent);
    streams.close();
  });

  test("an item that a stream has caught up on is not sent again by the feed", async () => {
    const hear: (() => void)[] = [];
    const late = {
      ...server.store,
      alerts: { ...server.store.alerts, onChange: (listener: () => void) => (hear.push(listener), () => undefined) },
    };
    const streams = new StreamHub({ store: late, registry: registry(), log: pino({ level: "silent" }), now: Date.now });
    const before = await server.store.alerts.lastChange();
    const first = await raise();
    const kinds = ["alerts" as const];
    // The feed starts here, after the first.
    const other = await streams.open({ ...opening(), kinds });
    const second = await raise();
    const output = await streams.open({
      ...opening(),
      kinds,
      resumeFrom: { change: before, place: null, field: "last_event_id" },
    });
    let read = "";
    const got = () => [...read.matchAll(/^data: \{"id":"(alt_[0-9a-f]+)"/gm)].map((match) => match[1]);
    const reading = (async () => {
      for await (const chunk of output as AsyncIterable<Buffer>) read += chunk.toString();
    })();
    while (got().length < 2) await new Promise(setImmediate);
    for (const listener of hear) listener();
    const third = await raise();
    for (const listener of hear) listener();
    while (!got().includes(third)) await new Promise(setImmediate);
    expect(got()).toEqual([first, second, third]);
    streams.close();
    await reading;
    other.destroy();
  });

  test("streams that fall behind the feed miss nothing and repeat nothing", async () => {
    const streams = new StreamHub({
      store: server.store,
      registry: registry(),
      log: pino({ level: "silent" }),
      now: Date.now,
      // Every slice is over at once: each stream falls behind with every chunk of more than one event.
      share: new FairShare(-1),
    });
    const texts = ["", ""];
    const outputs = await Promise.all(
      ["needle", '"in the hay"'].map((search) => streams.open({ ...opening(), search })),
    );
    const reading = outputs.map(async (output, i) => {
      for await (const chunk of output as AsyncIterable<Buffer>) texts[i] += chunk.toString();
    });
    const sent: string[] = [];
    for (let round = 0; round < 5; round++) {
      const batch = Array.from({ length: 40 }, (_, i) => ({
        type: "stream_test",
        source: "custom",
        data: { text: i % 2 === 0 ? "a needle in the hay" : "hay" },
      }));
      const { ids } = (await server.call("POST", "/v1/events/batch", { body: batch })).body.data;
      sent.push(...ids.filter((_: string, i: number) => i % 2 === 0));
    }
    const got = (text: string) => [...text.matchAll(/^data: \{"id":"(evt_[0-9a-f]+)"/gm)].map((match) => match[1]);
    while (texts.some((text) => got(text).at(-1) !== sent.at(-1))) await new Promise(setImmediate);
    expect(texts.map(got)).toEqual([sent, sent]);
    streams.close();
    await Promise.all(reading);
  });

  test("the number of streams per key is limited, and a closed stream frees its slot", async () => {
    const streams = newStreams(registry(), { ...quick, tickMs: 60_000 });
    const outputs: Readable[] = [];
    for (let i = 0; i < 20; i++) outputs.push(await streams.open(opening()));
    await expect(streams.open(opening())).rejects.toMatchObject({
      code: "rate_limited",
      headers: { "Retry-After": expect.any(String) },
    });
    await streams.open(opening(await server.addKey()));
    outputs[0]!.destroy();
    await new Promise((resolve) => outputs[0]!.once("close", resolve));
    await streams.open(opening());
    streams.close();
    await expect(streams.open(opening(await server.addKey()))).rejects.toMatchObject({ code: "unavailable" });
  });
});
