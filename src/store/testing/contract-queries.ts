import * as fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { DAY_MS } from "../../lib/time.ts";
import { compileCondition, type Condition } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import { AGGREGATIONS, type Aggregation } from "../../model/aggregation.ts";
import type { SearchQuery, SortKey } from "../../model/query.ts";
import { conditions, drafts } from "./arbitrary-events.ts";
import { aggregatePlainly, SAMPLE_FIELDS, sampleAggregations, sortPlainly } from "./reference-queries.ts";
import { placesOf, type ContractContext } from "./contract.ts";

// The part of the contract about queries: a store finds, counts and returns the same as plain evaluation.

/** Hundreds of queries, which take long on a busy machine. */
const PROPERTY_MS_MAX = 120_000;

export function queriesContract({ store, clock, draft, append, runs }: ContractContext): void {
  const ids = (items: readonly string[]) => items.map((text) => (JSON.parse(text) as Event).id);
  const search = (condition: Condition, more: Partial<SearchQuery> = {}) =>
    store().events.search({ condition, sort: [], limit: 1000, aggs: [], ...more });

  describe("conditions and aggregations agree with plain evaluation", () => {
    let events: Event[] = [];

    beforeAll(async () => {
      const sample = fc
        .sample(drafts(clock() - DAY_MS, clock()), { numRuns: 400, seed: 7 })
        .map((item) => ({ ...item, type: `random.${item.type}` }));
      events = await append(...sample);
    });

    const isRandom: Condition = {
      kind: "test",
      field: "type",
      operator: "starts_with",
      value: "random.",
      ignoreCase: false,
    };
    const only = (condition: Condition): Condition => ({ kind: "all", of: [isRandom, condition] });

    test(
      "every random condition finds the same events",
      async () => {
        await fc.assert(
          fc.asyncProperty(conditions(), async (condition) => {
            const matches = compileCondition(condition);
            const wanted = events.filter(matches).map(({ id }) => id);
            const found = await search(only(condition));
            expect(found.total).toBe(wanted.length);
            expect(ids(found.items).sort()).toEqual(wanted.sort());
          }),
          { numRuns: runs(300), seed: 11 },
        );
      },
      PROPERTY_MS_MAX,
    );

    /** Rounds sums of doubles, whose last digits depend on the order of addition. */
    const rounded = (result: unknown): unknown => {
      if (Array.isArray(result)) return result.map(rounded);
      if (typeof result === "number") return result + 0;
      if (typeof result !== "object" || result === null) return result;
      const { min, max } = result as { min?: unknown; max?: unknown };
      const unit = Math.max(Math.abs(Number(min)), Math.abs(Number(max))) / 1e9;
      const entries = Object.entries(result).map(([key, value]) => {
        const isSum = (key === "sum" || key === "avg") && typeof value === "number" && unit > 0;
        return [key, isSum ? Math.round(value / unit) + 0 : rounded(value)];
      });
      return Object.fromEntries(entries);
    };
    const nested = fc
      .tuple(sampleAggregations, fc.array(sampleAggregations, { maxLength: 2 }))
      .map(([agg, leaves]): Aggregation => {
        const aggs = leaves.map((aggregation, i) => ({ name: `inner${i}`, aggregation }));
        return AGGREGATIONS[agg.kind].hasBuckets ? ({ ...agg, aggs } as Aggregation) : agg;
      });

    test(
      "every random aggregation returns the same figures",
      async () => {
        await fc.assert(
          fc.asyncProperty(nested, conditions(), async (aggregation, condition) => {
            const wanted = aggregatePlainly(aggregation, events.filter(compileCondition(condition)));
            const { aggregations } = await search(only(condition), { limit: 0, aggs: [{ name: "a", aggregation }] });
            expect(rounded(aggregations.a)).toEqual(rounded(wanted));
          }),
          { numRuns: runs(120), seed: 13 },
        );
      },
      PROPERTY_MS_MAX,
    );

    test("an id finds its event, and an id that differs in any character finds none", async () => {
      const [event, other] = await append(draft({ type: "named" }), draft({ type: "named" }));
      const { id } = event!;
      const wrong = id.slice(0, -1) + (id.endsWith("0") ? "1" : "0");
      const named: Condition = { kind: "test", field: "type", operator: "equals", value: "named", ignoreCase: false };
      const found = async (operator: "equals" | "not_equals" | "in", value: string | string[], ignoreCase = false) => {
        const test: Condition = { kind: "test", field: "id", operator, value, ignoreCase };
        const { items } = await search({ kind: "all", of: [named, test] });
        return ids(items).sort();
      };
      expect(await found("equals", id)).toEqual([id]);
      expect(await found("equals", id.toUpperCase())).toEqual([]);
      expect(await found("equals", id.toUpperCase(), true)).toEqual([id]);
      expect(await found("equals", wrong)).toEqual([]);
      expect(await found("in", [wrong, "x", id])).toEqual([id]);
      expect(await found("not_equals", id)).toEqual([other!.id]);
      expect(await found("not_equals", wrong)).toEqual([id, other!.id]);
    });

    test("a pattern matches against the concatenated start and end of a very long text", async () => {
      const pad = "😀".repeat(40_000);
      const [short, beginning, end, both, split] = await append(
        // Counted in UTF-16 code units: each of these characters has two.
        draft({ type: "long", raw: { text: `${"😀".repeat(32_766)}x y` } }),
        draft({ type: "long", raw: { text: `x y${pad}` } }),
        draft({ type: "long", raw: { text: `${pad}x y` } }),
        draft({ type: "long", raw: { text: `x ${pad}xy` } }),
        draft({ type: "long", raw: { text: `${"-".repeat(32_766)}x ${pad}y${"-".repeat(32_767)}` } }),
        draft({ type: "long", raw: { text: `${pad}x y${pad}` } }),
      );
      const pattern = { kind: "test", field: "raw.text", operator: "regex", ignoreCase: false } as const;
      const found = async (value: string) => ids((await search({ ...pattern, value })).items);
      expect(await found("x y")).toEqual([short!.id, beginning!.id, end!.id, split!.id].toReversed());
      expect(await found("^x .*y$")).toEqual([both!.id]);
    });

    test("every field sorts, and a limit returns the first", async () => {
      for (const field of ["timestamp", "id", ...SAMPLE_FIELDS]) {
        for (const descending of [false, true]) {
          const wanted = sortPlainly(events, [{ field, descending }]).map(({ id }) => id);
          const name = `${field} ${descending ? "desc" : "asc"}`;
          for (const limit of [50, 1000]) {
            const found = await search(isRandom, { sort: [{ field, descending }], limit });
            expect(ids(found.items), name).toEqual(wanted.slice(0, limit));
          }
        }
      }
    });

    test("numbers sort before text before false before true, and events without any of these last", async () => {
      const mixed = [true, "a", false, 7, null, [true], "b", -1, [false, true]];
      const own = await append(...mixed.map((b, n) => draft({ type: "sorts", raw: { b, n } })));
      const sorted = async (descending: boolean) => {
        const sort = [{ field: "raw.b", descending }];
        const test: Condition = { kind: "test", field: "type", operator: "equals", value: "sorts", ignoreCase: false };
        const found = ids((await search(test, { sort })).items);
        expect(found).toEqual(sortPlainly(own, sort).map(({ id }) => id));
        return found.map((id) => mixed[own.findIndex((event) => event.id === id)]);
      };
      expect(await sorted(false)).toEqual([-1, 7, "a", "b", [false, true], false, [true], true, null]);
      expect(await sorted(true)).toEqual([7, -1, "b", "a", [true], true, [false, true], false, null]);
    });

    test("the bucket of a number follows from its decimal form, and so do the keys", async () => {
      const test: Condition = { kind: "test", field: "type", operator: "equals", value: "decimals", ignoreCase: false };
      const steps = Array.from({ length: 61 }, (_, i) => i - 30);
      const values = [...steps.map((n) => n / 10), ...steps.map((n) => n / 100), ...steps.map((n) => (n * 7) / 1000)];
      const own = await append(...values.map((v) => draft({ type: "decimals", raw: { v, vs: [v, -v] } })));
      const deep: Aggregation = { kind: "histogram", field: "raw.vs", interval: 0.3, aggs: [] };
      for (const field of ["raw.v", "raw.vs"]) {
        for (const interval of [0.1, 0.01, 0.7, 0.25, 1.1, 3, 0.007, 1e-3, 1e30, 2.5e-2]) {
          const aggs = [{ name: "deep", aggregation: deep }];
          const aggregation: Aggregation = { kind: "histogram", field, interval, aggs };
          const found = await search(test, { aggs: [{ name: "steps", aggregation }], limit: 0 });
          expect(found.aggregations["steps"], `${field} by ${interval}`).toEqual(aggregatePlainly(aggregation, own));
        }
      }
      const aggregation: Aggregation = { kind: "histogram", field: "raw.v", interval: 0.1, aggs: [] };
      const { aggregations } = await search(test, { aggs: [{ name: "steps", aggregation }], limit: 0 });
      expect(aggregations["steps"]).toMatchObject({ buckets: steps.map((n) => ({ key: n / 10 })) });
    });

    test("a scan returns every match once, oldest first, and no event that arrived after its start", async () => {
      const wanted = [...events].sort((a, b) =>
        a.timestamp < b.timestamp || (a.timestamp === b.timestamp && a.id < b.id) ? -1 : 1,
      );
      const found: string[] = [];
      for await (const chunk of store().events.scan({ condition: isRandom }, new AbortController().signal)) {
        found.push(...ids(chunk));
        await append(draft({ type: "random.late" }));
      }
      expect(found).toEqual(wanted.map(({ id }) => id));
    });

    test("a scan of the last arrivals between two events returns the matches in the order of arrival, regardless of their times", async () => {
      const places = await placesOf(store());
      const arrived = events.map(({ id }) => id).sort((a, b) => (places.get(a)! < places.get(b)! ? -1 : 1));
      const scanLast = async (after: string | null, upTo: string, eventsMax = events.length) => {
        const found: string[] = [];
        let wasCut = false;
        const query = { condition: isRandom, after, upTo, eventsMax };
        for await (const { arrivals, isCut } of store().events.scanLast(query, new AbortController().signal)) {
          expect(arrivals.map(({ text }) => text)).toEqual(
            await Promise.all(arrivals.map(({ id }) => store().events.get(id))),
          );
          expect(arrivals.map(({ place }) => place)).toEqual(arrivals.map(({ id }) => places.get(id)));
          found.push(...arrivals.map(({ id }) => id));
          wasCut = isCut;
        }
        return { found, wasCut };
      };
      const placeAt = (at: number) => places.get(arrived.at(at)!)!;
      const last = placeAt(-1);
      expect(await scanLast(null, last)).toEqual({ found: arrived, wasCut: false });
      expect(await scanLast(null, last, 7)).toEqual({ found: arrived.slice(-7), wasCut: true });
      expect(await scanLast(placeAt(4), placeAt(-3))).toEqual({ found: arrived.slice(5, -2), wasCut: false });
      expect(await scanLast(last, last)).toEqual({ found: [], wasCut: false });
    });

    test(
      "a cursor continues every sort where the page before it ended, without repeats and gaps while events arrive",
      async () => {
        const sorts: SortKey[][] = [
          [],
          ...["timestamp", "id", ...SAMPLE_FIELDS].flatMap((field) =>
            [false, true].map((descending) => [{ field, descending }]),
          ),
          [
            { field: "severity", descending: true },
            { field: "raw.size", descending: false },
            { field: "timestamp", descending: false },
          ],
        ];
        let late = 0;
        for (const sort of sorts) {
          const wanted = sortPlainly(events, sort).map(({ id }) => id);
          const walked: string[] = [];
          let after: string | undefined;
          do {
            const page = await search(isRandom, { sort, limit: 90, after });
            walked.push(...ids(page.items).filter((id) => wanted.includes(id)));
            if (page.nextCursor !== null) expect(page.nextCursor).toBe(ids(page.items).at(-1));
            after = page.nextCursor ?? undefined;
            await append(draft({ type: "random.late", severity: "low", raw: { size: late++ % 7, text: "late" } }));
          } while (after !== undefined);
          expect(walked, JSON.stringify(sort)).toEqual(wanted);
        }
      },
      PROPERTY_MS_MAX,
    );

    test("the last page has no cursor, neither has a search for totals, and a cursor of no event is refused", async () => {
      const named: Condition = { kind: "test", field: "type", operator: "equals", value: "paged", ignoreCase: false };
      const [first, second] = await append(draft({ type: "paged" }), draft({ type: "paged" }));
      const page = await search(named, { limit: 1 });
      expect(page).toMatchObject({ total: 2, nextCursor: second!.id });
      const last = await search(named, { limit: 1, after: second!.id });
      expect({ total: last.total, ids: ids(last.items), next: last.nextCursor }).toEqual({
        total: 2,
        ids: [first!.id],
        next: null,
      });
      expect((await search(named, { limit: 2 })).nextCursor).toBeNull();
      expect((await search(named, { limit: 0 })).nextCursor).toBeNull();
      await expect(search(named, { after: "evt_0123" })).rejects.toHaveProperty("field", "after");
    });
  });
}
