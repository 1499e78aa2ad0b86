import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CHUNK_EVENTS_MAX } from "../intake/intake.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import { ARRAY_PARSE_BYTES_MAX, batchItems } from "./batch.ts";
import { changed, openTestServer, type TestServer } from "../../test/api-server.ts";

const item = (n: number) => ({ type: "batched", source: "custom", data: { n } });
const NDJSON = { "content-type": "application/x-ndjson" };

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false } });
});
afterAll(() => server.close());

const send = (body: unknown, headers = {}) => server.call("POST", "/v1/events/batch", { body, headers });
const lines = (items: readonly unknown[]) =>
  items.map((item) => (typeof item === "string" ? item : JSON.stringify(item))).join("\n");

describe("a batch", () => {
  test("as an array is stored, and the ids are in its order", async () => {
    const { status, body } = await send(Array.from({ length: 1201 }, (_, n) => item(n)));
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ accepted: 1201, rejected: [] });
    expect([...body.data.ids].sort()).toEqual(body.data.ids);
    expect(new Set(body.data.ids).size).toBe(1201);
    for (const n of [0, 499, 500, 1200]) {
      expect((await server.call("GET", `/v1/events/${body.data.ids[n]}`)).body.data.raw).toEqual({ n });
    }
  });

  test.each(["x-ndjson", "ndjson", "jsonl", "x-jsonlines", "jsonlines"])(
    "of lines is accepted as application/%s",
    async (name) => {
      const { status, body } = await send(lines([item(1), "not json", item(2)]), {
        "content-type": `application/${name}`,
      });
      expect(status).toBe(200);
      expect(body.data).toMatchObject({ accepted: 2, rejected: [{ index: 1 }] });
    },
  );

  test("as lines stores the valid ones and reports a reason for each other one", async () => {
    const { status, body } = await send(
      lines([
        item(0),
        "not json",
        "",
        { ...item(2), severity: "bad", extra: 1 },
        '{"type":"x","source":"custom","data":{"a":1,"a":2}}',
        '{"type":"x","source":"custom","data":{"a":[{"b":"x","b":["x"]}]}}',
        `{"type":"x","source":"custom","data":${'{"a":'.repeat(33)}1${"}".repeat(33)}}`,
        "[]",
        " \t\r",
        item(7),
      ]),
      NDJSON,
    );
    expect(status).toBe(200);
    expect(body.data.accepted).toBe(2);
    expect(body.data.ids).toHaveLength(2);
    const rejected = body.data.rejected.map(({ index, details }: any) => [
      index,
      details.map(({ field }: any) => field),
    ]);
    expect(rejected).toEqual([
      [1, ["body"]],
      [2, ["severity", "extra"]],
      [3, ["data.a"]],
      [4, ["data.a[0].b"]],
      [5, [`data${".a".repeat(32)}`]],
      [6, ["body"]],
    ]);
    expect((await server.call("GET", `/v1/events/${body.data.ids[1]}`)).body.data.raw).toEqual({ n: 7 });
  });

  test("as an array reports the same faults as one of lines", async () => {
    const items = [
      JSON.stringify(item(0)),
      '{"type":"x","source":"custom","data":{"a":{"b":1,"b":2}}}',
      '{"type":"x","source":"custom","data":{"a":["\\ud800"]}}',
      "1e400",
      JSON.stringify(item(4)),
      `{"type":"x","source":"custom","data":${'{"a":'.repeat(32)}1${"}".repeat(32)}}`,
      `{"type":"x","source":"custom","data":${'{"a":'.repeat(33)}1${"}".repeat(33)}}`,
    ];
    const array = await send(`[ ${items.join(" , ")} ]`);
    const ndjson = await send(lines(items), NDJSON);
    expect(array.body.data.accepted).toBe(4);
    expect(array.body.data.rejected).toEqual(ndjson.body.data.rejected);
    expect(array.body.data.rejected.map(({ index }: any) => index)).toEqual([1, 3, 6]);
  });

  test("as a large array is parsed in pieces and reports the same faults", async () => {
    const good = { ...item(1), data: { text: '[{,]}\\"'.repeat(100_000) } };
    const pieces = [
      JSON.stringify(good),
      '{"type":"x","source":"custom","data":{"a":1,"a":2}}',
      JSON.stringify({ ...good, severity: "bad" }),
      "[]",
      JSON.stringify(good, undefined, 2),
      JSON.stringify({ ...item(1), data: { text: "x".repeat(1024 * 1024) } }),
      ` ${JSON.stringify(item(5))}\r\n`,
      `{"type":"x","source":"custom","data":{"a":9007199254740993,"text":"\\ud83d","text":1}}`,
      JSON.stringify(good),
      JSON.stringify({ ...good, data: { ...good.data, deep: JSON.parse(`${"[".repeat(32)}${"]".repeat(32)}`) } }),
    ];
    const body = ` [${pieces.join(",")} ] `;
    expect(body.length).toBeGreaterThan(ARRAY_PARSE_BYTES_MAX);
    const array = await send(body);
    const ofLines = await send(lines(pieces.map((piece) => piece.replace(/\s+$|\n */g, ""))), NDJSON);
    expect(array.status).toBe(200);
    expect(array.body.data.accepted).toBe(4);
    expect(array.body.data.rejected).toEqual(ofLines.body.data.rejected);
    expect(array.body.data.rejected.map(({ index }: { index: number }) => index)).toEqual([1, 2, 3, 5, 7, 9]);
    for (const id of array.body.data.ids.slice(0, 2)) {
      expect((await server.call("GET", `/v1/events/${id}`)).body.data.raw).toEqual(good.data);
    }
    expect((await server.call("GET", `/v1/events/${array.body.data.ids[2]}`)).body.data.raw).toEqual({ n: 5 });
  });

  test("as a large array with a syntax error is refused before anything is stored", async () => {
    const { total } = (await server.call("GET", "/v1/events?limit=1")).body.pagination;
    const good = JSON.stringify({ ...item(1), data: { text: "x".repeat(1024 * 1000) } });
    const some = `${good},${good},${good},${good},${good}`;
    expect(some.length).toBeGreaterThan(ARRAY_PARSE_BYTES_MAX);
    for (const [body, code] of [
      [`[${some},nothing]`, "malformed_json"],
      [`[${some}`, "malformed_json"],
      [`[${some},]`, "malformed_json"],
      [`[${some}}]`, "malformed_json"],
      [`[${some}],${good}`, "malformed_json"],
      [`{"a":[${some}]}`, "validation_error"],
    ] as const) {
      expect((await send(body)).body.error, body.replaceAll(good, "…")).toMatchObject({ code });
    }
    expect((await server.call("GET", "/v1/events?limit=1")).body.pagination.total).toBe(total);
  });

  test("of few events with very many keys is stored and found by its content", async () => {
    const keys = (n: number) =>
      Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, i === n ? n : 0]));
    const rich = [11, 12, 19_999].map((n) => ({ ...item(n), type: "key_rich", data: keys(n) }));
    const { ids } = (await send(lines(rich), NDJSON)).body.data;
    for (const [i, n] of [11, 12, 19_999].entries()) {
      const query = { bool: { must: [{ field: `raw.k${n}`, equals: n }] } };
      const { data } = (await server.call("POST", "/v1/events/search", { body: { query } })).body;
      expect(data.results.map(({ id }: { id: string }) => id)).toEqual([ids[i]]);
    }
  });

  test("reports the size of each submission and yields to other work while it is parsed", async () => {
    const rules = { depthMax: 32, itemBytesMax: 1024 * 1024 };
    const one = JSON.stringify({ ...item(1), data: { text: "x".repeat(600_000) } });
    const spread = one.replace(":", ": ");
    for (const [piece, pieces, type] of [
      [one, 1, "application/x-ndjson"],
      [spread, 1, "application/x-ndjson"],
      ["x".repeat(600_000), 1, "application/x-ndjson"],
      [one, 2, "application/json"],
      [spread, 2, "application/json"],
      [one, 8, "application/json"],
      [spread, 8, "application/json"],
    ] as const) {
      const all = Array.from({ length: pieces }, () => piece);
      const bytes = Buffer.from(type === "application/json" ? `[${all.join(",")}]` : all.join("\n"));
      let turns = 0;
      const count = () => {
        turns++;
        counting = setImmediate(count);
      };
      let counting = setImmediate(count);
      const items = [...(await batchItems({ type, bytes }, rules))];
      clearImmediate(counting);
      expect(items).toHaveLength(pieces);
      for (const { sizeBytes } of items) expect(Math.abs(sizeBytes! - 600_000)).toBeLessThan(100);
      if (bytes.length > ARRAY_PARSE_BYTES_MAX) expect(turns).toBeGreaterThanOrEqual(pieces - 1);
    }
  });

  test("with invalid UTF-8 on one line loses only that line", async () => {
    const body = Buffer.concat([
      Buffer.from(`${lines([item(0)])}\n"`),
      Buffer.from([0xff]),
      Buffer.from(`"\n${lines([item(2)])}`),
    ]);
    const { data } = (await send(body, NDJSON)).body;
    expect(data.accepted).toBe(2);
    expect(data.rejected).toEqual([
      { index: 1, details: [{ field: "body", message: expect.stringContaining("UTF-8") }] },
    ]);
  });

  test("can be gzipped and can contain 10,000 submissions but no more", async () => {
    const full = lines(Array.from({ length: 10_000 }, (_, n) => item(n)));
    const { data } = (await send(gzipSync(full), { ...NDJSON, "content-encoding": "gzip" })).body;
    expect(data.accepted).toBe(10_000);
    const over = `${full}\n${lines([item(1)])}`;
    expect((await send(over, NDJSON)).status).toBe(400);
    expect((await send(`[${over.replaceAll("\n", ",")}]`)).status).toBe(400);
    const { pagination } = (await server.call("GET", "/v1/events?limit=1")).body;
    expect((await send(over, NDJSON)).body.error.details[0].field).toBe("body");
    expect((await server.call("GET", "/v1/events?limit=1")).body.pagination.total).toBe(pagination.total);
  });

  test("that is truncated, empty or not an array is refused as a whole", async () => {
    const whole = JSON.stringify([item(0), item(1)]);
    expect((await send(whole.slice(0, -1))).body.error.code).toBe("malformed_json");
    for (const [body, headers] of [
      ["[]", {}],
      ["{}", {}],
      ["null", {}],
      ["\n \n", NDJSON],
      ["", NDJSON],
    ] as const) {
      expect((await send(body, headers)).body.error, body).toMatchObject({
        code: "validation_error",
        details: [{ field: "body" }],
      });
    }
    expect((await send(whole, { "content-type": "text/csv" })).status).toBe(415);
  });

  test("applies the limit of a single submission to each of its items", async () => {
    const large = { ...item(1), data: { text: "x".repeat(1024 * 1024) } };
    for (const [body, headers] of [
      [[item(0), large, item(2)], {}],
      [lines([item(0), large, item(2)]), NDJSON],
    ] as const) {
      const { data } = (await send(body, headers)).body;
      expect(data.accepted).toBe(2);
      expect(data.rejected).toEqual([
        { index: 1, details: [{ field: "body", message: "is larger than 1048576 bytes" }] },
      ]);
    }
  });

  test("that the store accepts in part reports the other part; only if it accepts nothing is the response 503", async () => {
    let refuse: (call: number) => boolean = () => false;
    let calls = 0;
    const limping = await openTestServer({
      settings: { rateLimits: false },
      around: (store) => ({
        ...store,
        events: changed(store.events, {
          append: (events: Parameters<typeof store.events.append>[0]) =>
            refuse(calls++)
              ? Promise.reject(new StoreUnavailable("disk_full", "no room", 9))
              : store.events.append(events),
        }),
        check: () => store.check(),
        close: () => store.close(),
      }),
    });
    const body = Array.from({ length: 1100 }, (_, n) => item(n));
    refuse = (call) => call === 1;
    const headers = { "idempotency-key": "limping" };
    const part = await limping.call("POST", "/v1/events/batch", { body, headers });
    expect(part.status).toBe(200);
    expect(part.body.data.accepted).toBe(1100 - CHUNK_EVENTS_MAX);
    expect(part.body.data.rejected.map(({ index }: any) => index)).toEqual(
      Array.from({ length: CHUNK_EVENTS_MAX }, (_, n) => CHUNK_EVENTS_MAX + n),
    );
    expect(part.body.data.rejected[0].details[0].message).toContain("no room");
    refuse = () => true;
    const none = await limping.call("POST", "/v1/events/batch", { body });
    expect([none.status, none.headers["retry-after"]]).toEqual([503, "9"]);
    const single = await limping.call("POST", "/v1/events", { body: item(1) });
    expect([single.status, single.body.error.code, single.headers["retry-after"]]).toEqual([503, "unavailable", "9"]);
    const metrics = await limping.call("GET", "/metrics");
    expect(metrics.text).toContain(`tocsin_intake_refused_total{reason="disk_full"} ${CHUNK_EVENTS_MAX + 1101}`);
    expect(metrics.text).toContain(`tocsin_intake_accepted_total ${1100 - CHUNK_EVENTS_MAX}`);
    refuse = () => false;
    expect((await limping.call("POST", "/v1/events", { body: item(1) })).status).toBe(201);
    // The same batch again: the missing part is stored, and nothing twice.
    const whole = await limping.call("POST", "/v1/events/batch", { body, headers });
    expect(whole.body.data).toMatchObject({ accepted: 1100, rejected: [] });
    expect(whole.headers["idempotency-replayed"]).toBeUndefined();
    const { ids } = whole.body.data;
    expect([...ids.slice(0, CHUNK_EVENTS_MAX), ...ids.slice(2 * CHUNK_EVENTS_MAX)]).toEqual(part.body.data.ids);
    const found = await limping.call("GET", `/v1/events/${ids[CHUNK_EVENTS_MAX]}`);
    expect(found.body.data.raw).toEqual({ n: CHUNK_EVENTS_MAX });
    expect((await limping.call("GET", "/v1/events?per_page=1")).body.pagination.total).toBe(1101);
    await limping.close();
  });

  test("with an idempotency key is stored once, sent in sequence or concurrently, also after a restart", async () => {
    const own = await openTestServer({ settings: { rateLimits: false } });
    const day = (n: number) => new Date(Date.now() - (n % 3) * 86_400_000).toISOString();
    const batch = Array.from({ length: 250 }, (_, n) =>
      n === 120 ? "no submission" : { ...item(n), timestamp: day(n) },
    );
    const post = (on: TestServer, token: string, body: unknown = batch, key = own.key.secret) =>
      on.call("POST", "/v1/events/batch", { body, key, headers: { "idempotency-key": token } });
    const total = async (on: TestServer) =>
      (await on.call("GET", "/v1/events?per_page=1", { key: own.key.secret })).body.pagination.total;
    const first = await post(own, "one");
    expect(first.body.data).toMatchObject({ accepted: 249, rejected: [{ index: 120 }] });
    expect(first.headers["idempotency-replayed"]).toBeUndefined();
    const second = await post(own, "one");
    expect([second.status, second.body.data]).toEqual([200, first.body.data]);
    expect(second.headers["idempotency-replayed"]).toBe("true");
    const together = await Promise.all(Array.from({ length: 5 }, () => post(own, "two")));
    expect(new Set(together.map(({ body }) => JSON.stringify(body.data))).size).toBe(1);
    expect(await total(own)).toBe(2 * 249);
    // The key of another client, and a single submission with the same key, are independent of it.
    const others = await post(own, "one", batch.slice(0, 3), (await own.addKey()).secret);
    const headers = { "idempotency-key": "one" };
    const single = await own.call("POST", "/v1/events", { body: item(0), headers });
    expect(first.body.data.ids).not.toContain(single.body.data.id);
    expect(first.body.data.ids).not.toContain(others.body.data.ids[0]);
    const again = await own.restart();
    expect((await post(again, "one")).body.data).toEqual(first.body.data);
    expect(await total(again)).toBe(2 * 249 + 4);
    const refused = await post(again, "two words");
    expect([refused.status, refused.body.error.details[0].field]).toEqual([400, "Idempotency-Key"]);
    await again.close();
  });
});
