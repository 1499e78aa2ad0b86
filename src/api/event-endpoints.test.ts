import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changed, openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";
import { QueryRefused } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";

const NOW = Date.UTC(2026, 10, 15, 12);
const custom = (data: object = {}, more: object = {}) => ({ type: "login_failure", source: "custom", data, ...more });

let server: TestServer;
let clock = NOW;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false }, now: () => clock });
});
afterAll(() => server.close());

const idsOf = ({ body }: Answer) => body.data.map(({ id }: { id: string }) => id);
const fieldsOf = (answer: Answer): string[] => {
  expect(answer.status, answer.text).toBe(400);
  return answer.body.error.details.map(({ field }: { field: string }) => field);
};
const submit = (body: unknown, headers = {}) => server.call("POST", "/v1/events", { body, headers });
const get = (path: string) => server.call("GET", path);

describe("the list of events", () => {
  test.each([
    ["source=nobody", "source"],
    ["source=PLATFORM_NETWORK", "source"],
    ["severity=worst", "severity"],
    ["severity=high,worst", "severity"],
    ["severity=high,,low", "severity"],
    ["source=custom,nobody", "source"],
    ["from=now-1y", "from"],
    ["from=now-", "from"],
    ["from=now%2B1h", "from"],
    ["from=now-999999999w", "from"],
    ["from=now&to=now-1s", "from"],
    ["class=secret", "class"],
    ["type=", "type"],
    ["type=%00", "type"],
    [`type=${"x".repeat(129)}`, "type"],
    ["from=yesterday", "from"],
    ["from=1763200000000", "from"],
    ["to=2026-02-30", "to"],
    ["to=2026-11-15T10:00:00", "to"],
    ["from=2026-11-15&to=2026-11-14", "from"],
    ["search=", "search"],
    ["search=%20%20", "search"],
    [`search=${"x".repeat(1001)}`, "search"],
    ["page=0", "page"],
    ["page=-1", "page"],
    ["page=1.5", "page"],
    ["page=1e3", "page"],
    ["page=99999999999999999999", "page"],
    ["page=9007199254740992", "page"],
    ["per_page=0", "per_page"],
    ["per_page=101", "per_page"],
    ["per_page=abc", "per_page"],
    ["per_page=", "per_page"],
    ["limit=0", "limit"],
    ["limit=101", "limit"],
    ["limit=ten", "limit"],
    ["after=", "after"],
    ["after=evt_unknown", "after"],
    ["after=evt_019a84f2c0d17a3e8b5d4e6f7a8b9c0d", "after"],
    ["page=1&limit=5", "page"],
    ["search=%zz", "search"],
    ["search=%ff", "search"],
    ["type=a&search=100%", "search"],
    ["type=%c3%28", "type"],
    ["nope=1", "nope"],
    ["Severity=high", "Severity"],
    ["__proto__=1", "__proto__"],
    ["page[]=1", "page[]"],
    ["severity=high&severity=low", "severity"],
  ])("refuses ?%s and names the parameter", async (query, field) => {
    expect(new Set(fieldsOf(await get(`/v1/events?${query}`)))).toEqual(new Set([field]));
  });

  test("names a repeated parameter", async () => {
    const { details } = (await get("/v1/events?severity=high&severity=high")).body.error;
    expect(details).toEqual([{ field: "severity", message: "is given more than once" }]);
  });

  test("reports all faults at once, and lists the known sources", async () => {
    const answer = await get("/v1/events?source=x&severity=y&page=0&after=evt_1&from=2026-11-15&to=2026-11-14&nope=1");
    expect(fieldsOf(answer).sort()).toEqual(["after", "from", "nope", "page", "severity", "source"]);
    const { message } = answer.body.error.details.find(({ field }: { field: string }) => field === "source");
    expect(message).toContain("platform_network, platform_protect, platform_access, platform_talk, custom");
  });

  test("names each parameter once, and an invalid cursor beside other faults", async () => {
    const fields = async (path: string) => fieldsOf(await get(path)).sort();
    expect(await fields("/v1/events?per_page=0&page=0&limit=0&after=bad")).toEqual([
      "after",
      "limit",
      "page",
      "per_page",
    ]);
    expect(await fields("/v1/events?per_page=5&after=evt_1")).toEqual(["after", "per_page"]);
    for (const list of ["events", "alerts", "rules"]) {
      expect(await fields(`/v1/${list}?after=bad&severity=zz`), list).toEqual(["after", "severity"]);
    }
    expect(await fields("/v1/notifications?after=bad&status=zz")).toEqual(["after", "status"]);
  });

  test("accepts an unencoded plus in a time, and compares fractions of a millisecond", async () => {
    const at = "2026-11-14T10:00:00.000Z";
    const { id } = (await submit(custom({}, { type: "whole", timestamp: at }))).body.data;
    const found = async (query: string) => idsOf(await get(`/v1/events?type=whole&${query}`));
    expect(await found("from=2026-11-14T12:00:00+02:00&to=2026-11-14T12:00:01+0200")).toEqual([id]);
    expect(await found("from=2026-11-14T12:00:01+02:00")).toEqual([]);
    expect(await found("from=2026-11-14T10:00:00.0009Z")).toEqual([]);
    expect(await found("from=2026-11-14T10:00:00.0000Z")).toEqual([id]);
    expect(await found("to=2026-11-14T10:00:00.0009Z")).toEqual([id]);
    expect(await found("to=2026-11-14T10:00:00.0000Z")).toEqual([]);
    const total = async (query: object) =>
      (await server.call("POST", "/v1/events/search", { body: { query, limit: 0 } })).body.data.total;
    const type = { field: "type", equals: "whole" };
    const later = "2026-11-14T10:00:00.0001Z";
    for (const [test, count] of [
      [{ gt: later }, 0],
      [{ gte: later }, 0],
      [{ lt: later }, 1],
      [{ lte: later }, 1],
    ] as const) {
      expect(await total({ bool: { must: [type, { field: "timestamp", ...test }] } }), JSON.stringify(test)).toBe(
        count,
      );
    }
    expect(await total({ bool: { must: [type] }, time_range: { from: later } })).toBe(0);
    expect(await total({ bool: { must: [type] }, time_range: { to: later } })).toBe(1);
  });

  test("whose response would be too large names the parameter that sets the size", async () => {
    const refuse = () => Promise.reject(new QueryRefused("limit", "the answer would be too large: request fewer"));
    const full = await openTestServer({
      around: (store) => Object.create(store, { events: { value: changed(store.events, { list: refuse }) } }) as Store,
    });
    expect(fieldsOf(await full.call("GET", "/v1/events?per_page=100"))).toEqual(["per_page"]);
    expect(fieldsOf(await full.call("GET", "/v1/events"))).toEqual(["per_page"]);
    expect(fieldsOf(await full.call("GET", "/v1/events?limit=100"))).toEqual(["limit"]);
    await full.close();
  });

  test("supports pages and cursors; a page past the end is empty with the correct total", async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      clock += 1000;
      ids.unshift((await submit(custom({ n }, { type: "paged" }))).body.data.id);
    }
    const first = await get("/v1/events?type=paged&per_page=2");
    expect(idsOf(first)).toEqual(ids.slice(0, 2));
    expect(first.body.pagination).toEqual({ total: 5, page: 1, per_page: 2, total_pages: 3 });
    expect(idsOf(await get("/v1/events?type=paged&per_page=2&page=3"))).toEqual(ids.slice(4));
    const past = await get("/v1/events?type=paged&per_page=2&page=4");
    expect(past.body.data).toEqual([]);
    expect(past.body.pagination).toEqual({ total: 5, page: 4, per_page: 2, total_pages: 3 });
    for (const query of ["type=paged", "type=paged&search=paged", "search=paged"]) {
      for (const page of [1_000_000_001, Number.MAX_SAFE_INTEGER]) {
        const far = await get(`/v1/events?${query}&per_page=100&page=${page}`);
        expect(far.body).toMatchObject({ data: [], pagination: { total: 5, page, total_pages: 1 } });
      }
    }

    const top = await get("/v1/events?type=paged&limit=2");
    expect(top.body.pagination).toEqual({ total: 5, page: 1, per_page: 2, total_pages: 3, next_cursor: ids[1] });
    clock += 1000;
    await submit(custom({}, { type: "paged" }));
    const next = await get(`/v1/events?type=paged&limit=2&after=${ids[1]}`);
    expect(idsOf(next)).toEqual(ids.slice(2, 4));
    const last = await get(`/v1/events?type=paged&limit=2&after=${ids[3]}`);
    expect(idsOf(last)).toEqual(ids.slice(4));
    expect(last.body.pagination.next_cursor).toBeNull();
    expect(idsOf(await get(`/v1/events?type=paged&after=${ids[3]}`))).toEqual(ids.slice(4));
  });

  test("accepts lists of values in its filters, alone and with words", async () => {
    const fields = { class: "audit", timestampMs: clock, raw: { note: "comma" }, enrichment: {} } as const;
    await server.store.events.append([
      { draft: { ...fields, type: "listed_a", severity: "high", source: "custom" } },
      { draft: { ...fields, type: "listed_b", severity: "low", source: "custom" } },
      { draft: { ...fields, type: "listed_c", severity: "info", source: "platform_access" } },
    ]);
    const types = async (query: string) =>
      (await get(`/v1/events?${query}`)).body.data.map(({ type }: { type: string }) => type).sort();
    const all = ["listed_a", "listed_b", "listed_c"];
    expect(await types(`type=${all.join(",")}`)).toEqual(all);
    expect(await types("type=listed_a,%20listed_c&search=comma")).toEqual(["listed_a", "listed_c"]);
    expect(await types(`type=${all.join(",")}&severity=high,info`)).toEqual(["listed_a", "listed_c"]);
    expect(await types(`type=${all.join(",")}&source=platform_access,platform_talk`)).toEqual(["listed_c"]);
    expect(await types(`search=comma&class=security,network,audit&source=custom`)).toEqual(["listed_a", "listed_b"]);
  });

  test("supports every filter, alone and combined", async () => {
    clock += 1000;
    const { data: event } = (
      await submit(
        custom({ src_ip: "192.0.2.77", note: "quick brown" }, { type: "filtered", severity: "high", class: "audit" }),
      )
    ).body;
    const at = Date.parse(event.timestamp);
    const iso = (ms: number) => encodeURIComponent(new Date(ms).toISOString());
    const filters = [
      "source=custom",
      "severity=high",
      "type=filtered",
      "class=audit",
      `from=${iso(at)}`,
      `to=${iso(at + 1)}`,
      "search=192.0.2.77",
      "search=brow",
    ];
    for (const filter of filters) {
      const found = await get(`/v1/events?${filter}`);
      expect(
        found.body.data.map(({ id }: { id: string }) => id),
        filter,
      ).toContain(event.id);
    }
    const all = await get(`/v1/events?${filters.slice(0, 7).join("&")}`);
    expect(all.body).toMatchObject({ data: [event], pagination: { total: 1 } });
    for (const filter of [
      "source=platform_talk",
      "severity=low",
      "type=filter",
      "class=network",
      `from=${iso(at + 1)}`,
      `to=${iso(at)}`,
      "search=rown",
    ]) {
      const found = await get(`/v1/events?${filter}`);
      expect(
        found.body.data.map(({ id }: { id: string }) => id),
        filter,
      ).not.toContain(event.id);
    }
  });
});

describe("a submitted event", () => {
  test("is returned as stored, and found by its id and in the list at once", async () => {
    const answer = await submit(custom({ user: "alice" }, { severity: "low", timestamp: "2026-11-15T11:00:00+02:00" }));
    expect(answer.status).toBe(201);
    expect(answer.body.data).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-z]+$/),
      type: "login_failure",
      source: "custom",
      class: "security",
      severity: "low",
      timestamp: "2026-11-15T09:00:00.000Z",
      raw: { user: "alice" },
      enrichment: {},
    });
    const { id } = answer.body.data;
    expect(answer.headers.location).toBe(`/v1/events/${id}`);
    expect((await get(`/v1/events/${id}`)).body.data).toEqual(answer.body.data);
    expect((await get("/v1/events?to=2026-11-15T09:00:00.001Z&from=2026-11-15T09:00:00Z")).body.data).toEqual([
      answer.body.data,
    ]);
  });

  test("accepts a time in any ISO 8601 form and stores it in one", async () => {
    for (const timestamp of ["20261115T080000Z", "2026-11-15T08Z", "2026-319T08:00Z", "2026-W46-7T08:00Z"]) {
      const { data } = (await submit(custom({}, { type: "forms", timestamp }))).body;
      expect(data.timestamp, timestamp).toBe("2026-11-15T08:00:00.000Z");
      const range = `from=${timestamp}&to=2026-11-15T24:00:00Z`;
      expect((await get(`/v1/events?type=forms&${range}`)).body.data[0].id).toBe(data.id);
    }
  });

  test("with faults has each of them named", async () => {
    expect(
      fieldsOf(await submit({ type: "x y!", source: "platform_network", severity: "bad", extra: 1 })).sort(),
    ).toEqual(["data", "extra", "severity", "source", "type"]);
    expect(fieldsOf(await submit(custom({}, { timestamp: new Date(clock + 300_001).toISOString() })))).toEqual([
      "timestamp",
    ]);
    const old = await submit(custom({}, { timestamp: "2020-01-01" }));
    expect(fieldsOf(old)).toEqual(["timestamp"]);
    expect(old.body.error.message).toContain("before the retention period");
    for (const body of ["[]", "null", "1", '"x"']) expect(fieldsOf(await submit(body))).toEqual(["body"]);
    expect(fieldsOf(await submit(custom([])))).toEqual(["data"]);
    expect(fieldsOf(await submit('{"type":"x","source":"custom","data":{},"__proto__":{}}'))).toEqual(["__proto__"]);
  });

  test("can be 32 levels deep but not 33", async () => {
    const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
    const body = (data: string) => `{"type":"deep","source":"custom","data":${data}}`;
    const answer = await submit(body(deep(32)));
    expect(answer.status).toBe(201);
    expect(JSON.stringify(answer.body.data.raw)).toBe(deep(32));
    expect(fieldsOf(await submit(body(deep(33))))).toEqual([`data${".a".repeat(32)}`]);
    expect(fieldsOf(await submit(body(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`)))).toHaveLength(1);
  });

  test.each([
    ["a duplicate key", '{"a":{"b":1,"b":2}}', "data.a.b"],
    ["a duplicate key in a list item", '{"a":["x",{"b":[1],"b":[2]}]}', "data.a[1].b"],
    ["two keys that are equal once lone surrogates are replaced", '{"\\udfff":1,"\\ud800":2}', "data.\ufffd"],
  ])("with %s is refused with the exact path", async (_name, data, field) => {
    expect(fieldsOf(await submit(`{"type":"x","source":"custom","data":${data}}`))).toEqual([field]);
  });

  test.each([
    [
      "__proto__ and constructor as plain data",
      '{"__proto__":{"admin":true},"constructor":{"prototype":1},"a":{"__proto__":null}}',
    ],
    ["NUL", '{"a":"x\\u0000y","\\u0000":1}'],
    ["text beyond the basic plane", '{"a":"😀","b":"\u202e\u2028"}'],
    ["a string of 100 kB", JSON.stringify({ a: "x".repeat(100_000) })],
    ["a key of 10 kB", JSON.stringify({ ["k".repeat(10_000)]: 1 })],
    ["integers of any size", '{"a":9007199254740992,"b":-9007199254740993,"c":123456789012345678901234567890}'],
    ["fractions", '{"a":0.1,"b":1.5e-7,"c":1.7976931348623157e+308}'],
    ["empty things", '{"":"","a":{},"b":[],"c":null}'],
  ])("keeps %s and returns it unchanged", async (_name, data) => {
    const answer = await submit(`{"type":"strange","source":"custom","data":${data}}`);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.text).toContain(`"raw":${data}`);
    const again = await get(`/v1/events/${answer.body.data.id}`);
    expect(again.text).toContain(`"raw":${data}`);
    expect(({} as Record<string, unknown>)["admin"]).toBeUndefined();
    const listed = await get("/v1/events?type=strange&limit=1");
    expect(listed.text).toContain(`"raw":${data}`);
  });

  test("can be gzipped", async () => {
    const answer = await submit(gzipSync(JSON.stringify(custom({ packed: true }))), { "content-encoding": "gzip" });
    expect(answer.body.data.raw).toEqual({ packed: true });
  });
});

describe("an idempotency key", () => {
  test("makes repeated submissions one event, in sequence or concurrently, also after a restart", async () => {
    const own = await openTestServer({ settings: { rateLimits: false }, now: () => clock });
    const send = (on: TestServer, body: object, token: string, key = own.key.secret) =>
      on.call("POST", "/v1/events", { body, key, headers: { "idempotency-key": token } });
    const first = await send(own, custom({ n: 1 }), "one");
    const second = await send(own, custom({ n: 2 }), "one");
    expect([second.status, second.body.data]).toEqual([201, first.body.data]);
    expect(second.headers["idempotency-replayed"]).toBe("true");
    const together = await Promise.all(Array.from({ length: 10 }, (_, n) => send(own, custom({ n }), "two")));
    expect(new Set(together.map(({ body }) => body.data.id)).size).toBe(1);
    expect((await own.call("GET", "/v1/events")).body.pagination.total).toBe(2);
    const other = await own.addKey();
    expect((await send(own, custom(), "one", other.secret)).body.data.id).not.toBe(first.body.data.id);
    // A refused submission does not count as the first response.
    expect((await send(own, { type: "x" }, "three")).status).toBe(400);
    expect((await send(own, custom(), "three")).status).toBe(201);
    const again = await own.restart();
    expect((await send(again, custom(), "one")).body.data).toEqual(first.body.data);
    await again.close();
  });

  test("that is empty, too long or not visible ASCII is refused", async () => {
    for (const token of ["", "a b", "x".repeat(256)]) {
      expect(fieldsOf(await submit(custom(), { "idempotency-key": token }))).toEqual(["Idempotency-Key"]);
    }
  });
});
