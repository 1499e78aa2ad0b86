import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../lib/time.ts";
import { compileCondition, type Condition } from "../../model/condition.ts";
import type { Event, JsonObject } from "../../model/event.ts";
import { conditions, drafts } from "./arbitrary-events.ts";
import { aggregatePlainly } from "./reference-queries.ts";
import { projectedValues } from "../ports/projection.ts";
import type { ContractContext } from "./contract.ts";

// The part of the contract about amendments of stored events.

/** Dozens of queries, which take long on a busy machine. */
const PROPERTY_MS_MAX = 60_000;

export function amendContract({ store, reopen, clock, draft, append, runs }: ContractContext): void {
  const ids = (items: readonly string[]) => items.map((text) => (JSON.parse(text) as Event).id);
  const search = (condition: Condition) =>
    store().events.search({
      condition,
      sort: [],
      limit: 1000,
      aggs: [
        { name: "scores", aggregation: { kind: "terms", field: "enrichment.abuse_ipdb.score", size: 10, aggs: [] } },
      ],
    });
  const is = (field: string, value: string | number): Condition => ({
    kind: "test",
    field,
    operator: "equals",
    value,
    ignoreCase: false,
  });
  const both = (...of: Condition[]): Condition => ({ kind: "all", of });
  const never = new AbortController().signal;
  const scanned = async (condition: Condition) => {
    const found: string[] = [];
    for await (const chunk of store().events.scan({ condition }, never)) found.push(...ids(chunk));
    return found;
  };
  const projected = async (condition: Condition, field: string) => {
    const found: unknown[] = [];
    for await (const part of store().events.project!({ condition, fields: [field] }, never)) {
      for (let place = 0; place < part.length; place++) found.push(projectedValues(part, place)[0]![0]);
    }
    return found;
  };

  describe("amendments", () => {
    test("are in every read from then on, and leave the source's own text unchanged", async () => {
      const type = "amended";
      // More events than a memtable holds, on three days, with other events in between.
      const raw = { src_ip: "198.51.100.7", text: "é \u0000 1.0" };
      const rawText = '{"src_ip":"198.51.100.7","text":"é \\u0000 1.0","n":1e2}';
      const before = await append(
        ...Array.from({ length: 320 }, (_, n) =>
          draft({
            type,
            raw: { ...raw, n: 100 },
            rawText,
            timestampMs: clock() - (n % 3) * DAY_MS,
            enrichment: { geo: { country: "AT" } },
          }),
        ),
      );
      await append(...Array.from({ length: 320 }, () => draft({ type: "between" })));
      const [last] = await store().events.append([{ draft: draft({ type, raw }), idempotencyToken: "amended-1" }]);
      const scored = both(is("type", type), is("enrichment.abuse_ipdb.score", 97));
      expect((await search(scored)).total).toBe(0);
      const found = await store().events.list({ type, search: "97" }, { mode: "page", page: 1, size: 1 });
      expect(found.total).toBe(0);
      const changed = [...before.filter((_, n) => n % 5 < 2).map(({ id }) => id), last!.id];
      await store().events.amend(
        changed.map((id) => ({
          id,
          enrichment: { abuse_ipdb: { score: 97, isp: "Example" }, lists: ["bad", "worse"] },
        })),
      );
      const check = async () => {
        const found = await search(scored);
        expect(found.total).toBe(changed.length);
        expect(ids(found.items).sort()).toEqual([...changed].sort());
        expect(found.aggregations["scores"]).toEqual({ buckets: [{ key: 97, count: changed.length }], other_count: 0 });
        expect((await scanned(scored)).sort()).toEqual([...changed].sort());
        // An engine without projections has its events read by `scan`.
        if (store().events.project)
          expect(await projected(scored, "enrichment.abuse_ipdb.isp")).toEqual(changed.map(() => "Example"));
        expect((await search(both(is("type", type), is("enrichment.lists", "worse")))).total).toBe(changed.length);
        expect((await search(both(is("type", type), is("enrichment.geo.country", "AT")))).total).toBe(before.length);
        const text = (await store().events.get(changed[0]!))!;
        expect(text).toContain(`"raw":${rawText},`);
        expect((JSON.parse(text) as Event).enrichment).toEqual({
          geo: { country: "AT" },
          abuse_ipdb: { score: 97, isp: "Example" },
          lists: ["bad", "worse"],
        });
        expect((await store().events.findByToken("amended-1"))!.text).toContain('"score":97');
        for (const words of ["97", "198.51.100.7 exam wors", '"example"', "b 97"]) {
          const { total } = await store().events.list({ type, search: words }, { mode: "page", page: 1, size: 1 });
          expect([words, total]).toEqual([words, changed.length]);
        }
        const listed = await store().events.list({ type }, { mode: "page", page: 1, size: 100 });
        expect(listed.items.filter((item) => item.includes('"score":97')).length).toBeGreaterThan(0);
        for (const item of listed.items) expect(item.includes('"score":97')).toBe(changed.includes(ids([item])[0]!));
      };
      await check();
      await reopen();
      await check();
    });

    test("are in arrivals that have not been read yet", async () => {
      const after = await store().events.lastArrival();
      const [event] = await append(draft());
      await store().events.amend([{ id: event!.id, enrichment: { abuse_ipdb: { score: 5 } } }]);
      for await (const [arrival] of store().events.arrivals(after, never)) {
        expect(arrival).toEqual({ ...arrival, id: event!.id, text: await store().events.get(event!.id) });
        break;
      }
    });

    test("replace the value of the same key each time", async () => {
      const [event] = await append(draft({ enrichment: { abuse_ipdb: { score: 1, isp: "Old" }, kept: true } }));
      for (const score of [2, 3])
        await store().events.amend([{ id: event!.id, enrichment: { abuse_ipdb: { score } } }]);
      expect(JSON.parse((await store().events.get(event!.id))!)).toMatchObject({
        enrichment: { abuse_ipdb: { score: 3 }, kept: true },
      });
      expect((await search(is("enrichment.abuse_ipdb.isp", "Old"))).total).toBe(0);
    });

    test("to unknown ids are ignored, and the others are applied", async () => {
      const [event, other] = await append(draft(), draft());
      const forged = other!.id.slice(0, -1) + (other!.id.endsWith("0") ? "1" : "0");
      const elsewhere = other!.id.replace(/^evt_./, "evt_f");
      const enrichment = { abuse_ipdb: { score: 61 } };
      await store().events.amend(["evt_x", forged, elsewhere, event!.id].map((id) => ({ id, enrichment })));
      expect(ids((await search(is("enrichment.abuse_ipdb.score", 61))).items)).toEqual([event!.id]);
      expect(JSON.parse((await store().events.get(other!.id))!)).toEqual(other);
      await store().events.amend([]);
    });

    test("are exact with concurrent writers and readers", async () => {
      const type = "amended-at-once";
      await Promise.all(
        Array.from({ length: 6 }, async (_, writer) => {
          for (let i = 0; i < 6; i++) {
            const added = await append(...Array.from({ length: 20 }, () => draft({ type, raw: { writer } })));
            const enrichment = { abuse_ipdb: { score: writer } };
            await store().events.amend(added.slice(0, 7).map(({ id }) => ({ id, enrichment })));
            const mine = both(is("type", type), is("raw.writer", writer), is("enrichment.abuse_ipdb.score", writer));
            expect((await search(mine)).total).toBe(7 * (i + 1));
          }
        }),
      );
      expect((await search(is("type", type))).total).toBe(720);
    });

    test(
      "are found and counted as if the event had arrived with them",
      async () => {
        const sample = fc.sample(drafts(clock() - DAY_MS, clock()), { numRuns: 200, seed: 23 });
        const events = await append(...sample.map((item) => ({ ...item, type: `late.${item.type}` })));
        const added = fc.sample(drafts(0, 1), { numRuns: 200, seed: 29 }).map(({ enrichment }) => enrichment);
        const amendments = events.flatMap(({ id }, n) => (n % 3 === 0 ? [] : [{ id, enrichment: added[n]! }]));
        await store().events.amend(amendments);
        const byId = new Map(amendments.map(({ id, enrichment }) => [id, enrichment]));
        const now = events.map((event) => ({
          ...event,
          enrichment: { ...event.enrichment, ...byId.get(event.id) } as JsonObject,
        }));
        const isLate: Condition = {
          kind: "test",
          field: "type",
          operator: "starts_with",
          value: "late.",
          ignoreCase: false,
        };
        await fc.assert(
          fc.asyncProperty(conditions(), async (condition) => {
            const wanted = now.filter(compileCondition(condition)).map(({ id }) => id);
            const found = await search(both(isLate, condition));
            expect(ids(found.items).sort()).toEqual(wanted.sort());
          }),
          { numRuns: runs(60), seed: 31 },
        );
        const aggregation = { kind: "terms", field: "enrichment.geo.country", size: 100, aggs: [] } as const;
        const counted = await store().events.search({
          condition: isLate,
          sort: [],
          limit: 0,
          aggs: [{ name: "countries", aggregation }],
        });
        expect(counted.aggregations["countries"]).toEqual(aggregatePlainly(aggregation, now));
      },
      PROPERTY_MS_MAX,
    );
  });
}
