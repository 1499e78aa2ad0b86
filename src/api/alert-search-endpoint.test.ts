import { beforeAll, describe, expect, test } from "vitest";
import { alertServer, fieldsOf } from "../../test/alert-server.ts";

// Searches over alerts through HTTP.

const { clock, current, raise, post } = alertServer();

const search = (body: object) => current.server.call("POST", "/v1/alerts/search", { body });
const found = async (body: object) => {
  const { status, body: answer } = await search(body);
  expect(status, JSON.stringify(answer)).toBe(200);
  return answer.data;
};
const named = (name: string) => ({ field: "rule_name", equals: name });
const titles = (data: any) => data.results.map(({ title }: any) => title);

beforeAll(async () => {
  const severities = ["critical", "high", "low"] as const;
  for (let i = 0; i < 12; i++) {
    clock.ms += 3_600_000;
    const id = `evt_${i}`;
    await raise({
      name: i < 8 ? "search.often" : "search.seldom",
      severity: severities[i % 3]!,
      title: `Title ${String(i).padStart(2, "0")}`,
      eventCount: i + 1,
      group: { field: "raw.src_ip", value: `192.0.2.${i % 4}` },
      enrichment: { geo: { country: i % 2 === 0 ? "AT" : "DE" } },
      events: [{ id, timestampMs: clock.ms }],
      entities: { [id]: [{ kind: "user", value: i % 2 === 0 ? "Eva" : "noah" }] },
      firstEventMs: clock.ms - 7_200_000,
      lastEventMs: clock.ms,
    });
  }
});

describe("a search over alerts", () => {
  test("selects by fields of alerts and sorts them", async () => {
    const filters = [
      named("search.often"),
      { field: "group.value", cidr: "192.0.2.0/31" },
      { field: "event_count", gt: 1 },
    ];
    const data = await found({ query: { bool: { must: filters } }, sort: { severity: "desc", event_count: "asc" } });
    expect(titles(data)).toEqual(["Title 01", "Title 04", "Title 05"]);
    expect(data.total).toBe(3);
    expect(data.next_cursor).toBeNull();
    const { body } = await current.server.call("GET", `/v1/alerts?rule_name=search.often&entity=eva&search=04`);
    expect(data.results.find(({ title }: any) => title === "Title 04")).toEqual(body.data[0]);
  });

  test("takes words, enrichment, entities and tags", async () => {
    const isEva = { field: "entities", equals: "user:Eva" };
    const isGerman = { field: "enrichment.geo.country", equals: "DE" };
    expect(titles(await found({ search: "eva title", query: { bool: { must: [named("search.seldom")] } } }))).toEqual([
      "Title 10",
      "Title 08",
    ]);
    expect((await found({ query: { bool: { must: [isEva, isGerman] } } })).total).toBe(0);
    const [newest] = (await found({ query: { bool: { must: [named("search.seldom"), isGerman] } } })).results;
    await current.server.call("PATCH", `/v1/alerts/${newest.id}/tags`, { body: { add: ["vip"] } });
    const tagged = { bool: { should: [isEva, isGerman], must: [{ field: "tags", equals: "vip" }] } };
    expect(titles(await found({ query: tagged }))).toEqual([newest.title]);
    expect((await found({ query: { bool: { must: [{ field: "title", regex: "0[89]$" }] } } })).total).toBe(2);
  });

  test("continues after an alert, in any order", async () => {
    const body = {
      query: { bool: { must: [named("search.often")] } },
      sort: { "group.value": "asc", title: "desc" },
      limit: 3,
    };
    const walked: string[] = [];
    for (let after: string | undefined | null; after !== null;) {
      const data = await found({ ...body, ...(after && { after }) });
      walked.push(...titles(data));
      expect(data.total).toBe(8);
      after = data.next_cursor;
    }
    expect(walked.map((title) => Number(title.slice(-2)))).toEqual([4, 0, 5, 1, 6, 2, 7, 3]);
  });

  test("aggregates what a queue by rule and a histogram by severity need", async () => {
    const inner = { severity: { terms: { field: "severity" } }, last: { stats: { field: "last_event_at" } } };
    const data = await found({
      query: { bool: { must: [{ field: "rule_name", starts_with: "search." }] } },
      aggs: {
        rules: { terms: { field: "rule_name", size: 1 }, aggs: inner },
        strip: {
          histogram: { field: "created_at", interval: "6h" },
          aggs: { severity: { terms: { field: "severity" } } },
        },
        people: { cardinality: { field: "entities.value" } },
        countries: { terms: { field: "enrichment.geo.country" } },
      },
      limit: 0,
    });
    expect(data.results).toEqual([]);
    const { rules, strip, people, countries } = data.aggregations;
    expect(rules.other_count).toBe(4);
    expect(rules.buckets).toHaveLength(1);
    expect(rules.buckets[0]).toMatchObject({ key: "search.often", count: 8 });
    expect(rules.buckets[0].severity.buckets).toEqual([
      { key: "critical", count: 3 },
      { key: "high", count: 3 },
      { key: "low", count: 2 },
    ]);
    expect(rules.buckets[0].last.max).toBe(new Date(clock.ms - 4 * 3_600_000).toISOString());
    expect(strip.buckets.reduce((sum: number, { count }: any) => sum + count, 0)).toBe(12);
    expect(strip.buckets[0].severity.buckets.length).toBeGreaterThan(0);
    expect([people.value, countries.buckets]).toEqual([
      2,
      [
        { key: "AT", count: 6 },
        { key: "DE", count: 6 },
      ],
    ]);
  });

  test("compares a range with the creation or with the events", async () => {
    const at = (hours: number) => new Date(clock.ms + hours * 3_600_000).toISOString();
    const time_range = { from: at(-1), to: at(1) };
    expect(titles(await found({ query: { time_range } }))).toEqual(["Title 11", "Title 10"]);
    expect(
      titles(await found({ query: { time_range: { from: at(-13), to: at(-2.5) }, time: "overlap" } })).slice(0, 2),
    ).toEqual(["Title 10", "Title 09"]);
  });

  test("follows changes of alerts", async () => {
    const query = { bool: { must: [named("search.seldom"), { field: "status", equals: "resolved" }] } };
    expect((await found({ query })).total).toBe(0);
    const [{ id }] = (await found({ query: { bool: { must: [named("search.seldom")] } } })).results;
    await post(`${id}/resolve`, { resolution: "benign" });
    const data = await found({
      query: { bool: { must: [...query.bool.must, { field: "resolution", in: ["benign"] }] } },
    });
    expect(data.results.map((alert: any) => alert.id)).toEqual([id]);
  });

  test.each([
    [{ query: { bool: { must: [{ field: "raw.user", equals: "x" }] } } }, "query.bool.must[0].field"],
    [{ query: { bool: { must: [{ field: "*", contains: "x" }] } } }, "query.bool.must[0].field"],
    [{ query: { bool: { must: [{ keyword: "x" }] } } }, "query.bool.must[0].keyword"],
    [{ query: { bool: { must: [{ field: "status", equals: "closed" }] } } }, "query.bool.must[0].equals"],
    [{ query: { bool: { must: [{ field: "source", equals: "elsewhere" }] } } }, "query.bool.must[0].equals"],
    [{ query: { bool: { must: [{ field: "created_at", gt: 5 }] } } }, "query.bool.must[0].gt"],
    [{ query: { bool: { must: [{ field: "event_count", gt: "2026-01-01" }] } } }, "query.bool.must[0].gt"],
    [{ query: { bool: { must: [{ field: "title", equals_field: "type" }] } } }, "query.bool.must[0].equals_field"],
    [{ query: { time: "later" } }, "query.time"],
    [{ query: { time_range: { from: "2026-01-02", to: "2026-01-01" } } }, "query.time_range.from"],
    [{ sort: { version: "asc" } }, "sort.version"],
    [{ aggs: { a: { terms: { field: "id" } } } }, "aggs.a.terms.field"],
    [{ aggs: { a: { histogram: { field: "severity", interval: 1 } } } }, "aggs.a.histogram.field"],
    [{ aggs: { a: { histogram: { field: "created_at", interval: 1 } } } }, "aggs.a.histogram.interval"],
    [{ aggs: { a: { histogram: { field: "created_at", interval: "1s" } } } }, "aggs.a.histogram.interval"],
    [{ aggs: { a: { stats: { field: "title" } } } }, "aggs.a.stats.field"],
    [{ after: "alt_0" }, "after"],
    [{ search: "***" }, "search"],
    [{ limit: 1001 }, "limit"],
    [{ page: 1 }, "page"],
  ])("refuses %j on %s", async (body, field) => {
    const answer = await search(body);
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer)).toContain(field);
  });

  test("needs the scope alerts:read", async () => {
    const { secret: key } = await current.server.addKey({ scopes: ["events:read"] });
    expect((await current.server.call("POST", "/v1/alerts/search", { body: {}, key })).status).toBe(403);
  });
});
