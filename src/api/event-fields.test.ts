import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changed, openTestServer, type TestServer } from "../../test/api-server.ts";
import type { EventDraft } from "../model/event.ts";
import { FieldWarnings } from "./field-warnings.ts";

const NOW = Date.UTC(2026, 10, 15, 12);
let server: TestServer;
let clock = NOW;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false }, now: () => clock });
  await append(
    { type: "door_forced", source: "platform_access", raw: { door: "Front", device: { floor: 2 } } },
    { type: "login_failure", raw: { src_ip: "192.0.2.17", user: "ann", attempts: 3 } },
    { type: "login_failure", raw: { src_ip: "192.0.2.17", user: "ben" }, timestampMs: NOW - 48 * 3_600_000 },
  );
});
afterAll(() => server.close());

const append = (...drafts: Partial<EventDraft>[]) =>
  server.store.events.append(
    drafts.map((more) => ({
      draft: {
        type: "login_failure",
        source: "custom",
        severity: "low",
        class: "audit",
        timestampMs: NOW - 1000,
        raw: {},
        enrichment: {},
        ...more,
      } as EventDraft,
    })),
  );
const get = (query: string) => server.call("GET", `/v1/events/fields?${query}`);
const namesOf = async (query: string) => (await get(query)).body.data.fields.map(({ name }: { name: string }) => name);

describe("the list of fields", () => {
  test("has names, types, counts and examples, most frequent first", async () => {
    const { body } = await get("per_page=1000");
    expect(body.data).toMatchObject({ events: 3, events_examined: 3, sampled: false });
    expect(body.data.fields).toContainEqual({
      name: "raw.src_ip",
      types: ["string"],
      events: 2,
      examples: ["192.0.2.17"],
    });
    expect(body.data.fields).toContainEqual({ name: "raw.attempts", types: ["number"], events: 1, examples: ["3"] });
    const counts = body.data.fields.map(({ events }: { events: number }) => events);
    expect(counts).toEqual(counts.toSorted((a: number, b: number) => b - a));
    expect(body.pagination).toEqual({
      total: body.data.fields.length,
      page: 1,
      per_page: 1000,
      total_pages: 1,
    });
  });

  test("is filtered by name, time, source and type, and paged", async () => {
    expect(await namesOf("search=SRC_")).toEqual(["raw.src_ip"]);
    expect(await namesOf("search=raw.&type=door_forced,nothing")).toEqual([
      "raw.device",
      "raw.device.floor",
      "raw.door",
    ]);
    expect(await namesOf("search=raw.&source=platform_access,platform_talk&page=2&per_page=2")).toEqual(["raw.door"]);
    expect(await namesOf("search=raw.&to=now-24h")).toEqual(["raw.src_ip", "raw.user"]);
    expect(await namesOf("search=nothing")).toEqual([]);
  });

  test.each([
    ["nope=1", "nope"],
    ["source=x", "source"],
    ["from=now&to=now-1h", "from"],
    ["per_page=1001", "per_page"],
    ["search=", "search"],
  ])("refuses ?%s", async (query, field) => {
    const { status, body } = await get(query);
    expect(status).toBe(400);
    expect(body.error.details).toMatchObject([{ field }]);
  });

  test("needs the scope events:read", async () => {
    const { secret } = await server.addKey({ scopes: ["alerts:read"] });
    expect((await server.call("GET", "/v1/events/fields", { key: secret })).status).toBe(403);
  });
});

describe("a search", () => {
  const search = async (bool: object, more: object = {}) =>
    (await server.call("POST", "/v1/events/search", { body: { query: { bool, ...more } } })).body;

  test("warns of a field that no event has, and suggests the most similar one", async () => {
    const body = await search({ must: [{ field: "raw.scr_ip", equals: "192.0.2.17" }] });
    expect(body.data.total).toBe(0);
    expect(body.meta.warnings).toEqual([
      {
        field: "query.bool.must[0].field",
        message: "no event in the range has raw.scr_ip; did you mean raw.src_ip?",
        suggestion: "raw.src_ip",
      },
    ]);
  });

  test("warns wherever the field is named, once for each field", async () => {
    const typo = { field: "raw.usr", equals: "ann" };
    const body = await search({
      must: [{ field: "raw.user", equals: "ann" }, { bool: { should: [typo, { field: "type", equals: "x" }] } }],
      must_not: [typo, { field: "raw.zzzzzzzzzzzz", exists: true }],
    });
    expect(body.meta.warnings).toEqual([
      expect.objectContaining({ field: "query.bool.must[1].bool.should[0].field", suggestion: "raw.user" }),
      {
        field: "query.bool.must_not[1].field",
        message: "no event in the range has raw.zzzzzzzzzzzz",
        suggestion: null,
      },
    ]);
  });

  test("is about its range", async () => {
    const must = [{ field: "raw.attempts", gt: 100 }];
    expect((await search({ must })).meta.warnings).toBeUndefined();
    const earlier = await search({ must }, { time_range: { to: "now-24h" } });
    expect(earlier.meta.warnings).toMatchObject([{ field: "query.bool.must[0].field" }]);
    const empty = await search({ must }, { time_range: { to: "now-7d" } });
    expect(empty.meta.warnings).toBeUndefined();
  });

  test.each([
    [{ must: [{ field: "raw.user", equals: "nobody" }] }],
    [{ must: [{ field: "raw.device", exists: true }] }],
    [{ must: [{ field: "raw.device.floor", equals: 9 }] }],
    [{ must: [{ keyword: "nothing" }] }],
    [{ must: [{ field: "type", equals: "nothing" }] }],
  ])("of known fields has no warning: %j", async (bool) => {
    expect((await search(bool)).meta.warnings).toBeUndefined();
  });

  test("knows a field as soon as an event has it", async () => {
    const must = [{ field: "raw.brand_new", equals: "other" }];
    expect((await search({ must })).meta.warnings).toHaveLength(1);
    await append({ raw: { brand_new: "x" } });
    expect((await search({ must })).meta.warnings).toBeUndefined();
  });

  test("looks for a field that a sample lacks among all events", async () => {
    const fields: FieldWarnings = new FieldWarnings(
      changed(server.store.events, {
        fields: async (filter, context) => {
          const found = await server.store.events.fields(filter, context);
          return { ...found, total: found.examined + 1, fields: found.fields.filter((f) => f.path !== "raw.door") };
        },
      }),
      () => clock,
    );
    const named = (field: string) => ({ bool: { must: [{ field, equals: "x" }] } }) as never;
    expect(await fields.of(named("raw.door"), 0, {})).toEqual([]);
    expect(await fields.of(named("raw.doorr"), 0, {})).toHaveLength(1);
  });

  test("does not read the fields if its result shows that they exist", async () => {
    const fields = new FieldWarnings(
      changed(server.store.events, {
        fields: () => {
          throw new Error("read");
        },
      }),
      () => clock,
    );
    const query = (list: "must" | "must_not") =>
      ({ bool: { [list]: [{ field: "raw.user", equals: "ann" }] } }) as never;
    expect(await fields.of(query("must"), 1, {})).toEqual([]);
    await expect(fields.of(query("must_not"), 1, {})).rejects.toThrow("read");
  });
});
