import * as fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { DAY_MS } from "../../lib/time.ts";
import type { Alert, AlertSummary } from "../../model/alert.ts";
import type { Aggregations } from "../../model/aggregation.ts";
import { ALERT_CONDITION_FIELDS, ALERT_QUERY_FIELDS } from "../../model/alert-field.ts";
import { RESOLUTIONS, STATUSES } from "../../model/alert-state.ts";
import { ALWAYS, compileConditionOn, type Condition } from "../../model/condition.ts";
import { ENTITY_KINDS } from "../../model/entity.ts";
import { SEVERITIES } from "../../model/event.ts";
import { isTime } from "../../model/query-fields.ts";
import type { SortKey } from "../../model/query.ts";
import type { AlertQuery } from "../ports/alert-store.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import {
  ADDRESSES,
  alertAggregations,
  alertConditions,
  alertSorts,
  FIELDS,
  NAMES,
  WORDS,
} from "./arbitrary-alert-queries.ts";
import type { ContractContext } from "./contract.ts";
import { newAlert } from "./new-alert.ts";
import { aggregateDocuments, sortDocuments, type PlainFields } from "./reference-queries.ts";

// The part of the contract about searches over alerts, which a plain evaluation defines.

const ALERTS = 250;
const PROPERTY_MS_MAX = 300_000;

const PLAIN: PlainFields<AlertSummary> = {
  reader: (path) => ALERT_CONDITION_FIELDS.reader(path),
  isTime: (path) => isTime(ALERT_QUERY_FIELDS, path),
  closed: { severity: SEVERITIES, status: STATUSES, resolution: RESOLUTIONS },
  ranked: { status: STATUSES, resolution: RESOLUTIONS },
};

function newestFirst(a: AlertSummary, b: AlertSummary): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1);
}

function isInRange({ time, fromMs = -1, toMs = DAY_MS }: Partial<AlertQuery>, alert: AlertSummary): boolean {
  if (time === "overlap") return alert.lastEventAt >= fromMs && alert.firstEventAt < toMs;
  return alert.createdAt >= fromMs && alert.createdAt < toMs;
}

function randomAlerts(): Alert[] {
  const pick = <Value>(values: readonly Value[], n: number) => values[n % values.length]!;
  return fc
    .sample(fc.array(fc.nat({ max: 1_000_000 }), { minLength: 12, maxLength: 12 }), { numRuns: ALERTS, seed: 11 })
    .map(([a, b, c, d, e, f, g, h, i, j, k, l]) =>
      newAlert({
        rule: { id: "rule_l", name: pick(NAMES, a!), description: "", tags: [] },
        tags: pick([[], ["a"], ["b", "a"], WORDS], b!),
        title: pick(WORDS, b!),
        description: `${pick(WORDS, c!)} ${pick(ADDRESSES, d!)}`,
        severity: pick(SEVERITIES, e!),
        source: pick(["custom", "platform_network"], f!),
        status: pick(STATUSES, g!),
        assignee: pick([null, "anna@example.com", "Anna@example.com"], h!),
        resolution: pick([null, ...RESOLUTIONS], i!),
        group: pick(
          [null, { field: "raw.src_ip", value: pick(ADDRESSES, j!) }, { field: "raw.door", value: pick(WORDS, k!) }],
          l!,
        ),
        createdAt: (i! % 40) * 1000,
        firstEventAt: (b! % 20) * 1000 + 1,
        lastEventAt: ((b! % 20) + (c! % 20)) * 1000 + 2,
        eventCount: c! % 12,
        entities: Array.from({ length: d! % 4 }, (_, n) => ({
          kind: pick(ENTITY_KINDS, a! + n),
          value: pick([...ADDRESSES, ...WORDS], e! + (f! % 3) * n),
          count: n,
        })),
        aiAnalysis:
          g! % 3 === 0
            ? null
            : {
                summary: "",
                threat_score: h! % 11,
                provider: "builtin",
                reasoning: [],
                suggested_actions: [],
                analysed_at: "",
              },
        enrichment: pick(
          [
            {},
            { geo: { country: "AT" }, score: k! % 9, mixed: [1, "1", true, { x: 1 }] },
            { geo: { country: "DE" }, score: 0.5, mixed: "a" },
            { score: [k! % 9, l! % 9, "a"], mixed: null },
            { mixed: { deep: 1 }, geo: {} },
            { mixed: [2n ** 60n + 1n, 2n ** 60n] },
          ],
          j!,
        ) as Alert["enrichment"],
      }),
    );
}

export function alertSearchContract({ store, reopen }: ContractContext): void {
  describe("searches over alerts", () => {
    let alerts: Alert[] = [];
    const ids = (items: readonly AlertSummary[]) => items.map(({ id }) => id);
    const search = (query: Partial<AlertQuery>) =>
      store().alerts.search({ condition: ALWAYS, sort: [], limit: 1000, aggs: [], ...query });

    beforeAll(async () => {
      alerts = randomAlerts();
      for (let i = 0; i < ALERTS; i += 50) {
        await store().alerts.commit({ alerts: alerts.slice(i, i + 50), timeline: [] });
      }
    });

    const plainly = (query: Partial<AlertQuery>): Alert[] => {
      const matches = compileConditionOn(query.condition ?? ALWAYS, ALERT_CONDITION_FIELDS);
      const found = alerts.filter((alert) => isInRange(query, alert) && matches(alert));
      return sortDocuments<AlertSummary>(found, query.sort ?? [], PLAIN, newestFirst) as Alert[];
    };

    const agrees = async (query: { condition: Condition; sort: readonly SortKey[] } & Partial<AlertQuery>) => {
      const wanted = plainly(query);
      const { items, total, aggregations, nextCursor } = await search(query);
      expect(ids(items)).toEqual(ids(wanted));
      expect([total, nextCursor]).toEqual([wanted.length, null]);
      for (const { name, aggregation } of query.aggs ?? []) {
        expect(aggregations[name]).toEqual(aggregateDocuments<AlertSummary>(aggregation, wanted, PLAIN));
      }
    };

    const agree = () =>
      fc.assert(
        fc.asyncProperty(
          alertConditions(ids(alerts.slice(0, 5))),
          alertSorts,
          fc.array(alertAggregations, { maxLength: 4 }),
          fc.record(
            {
              fromMs: fc.integer({ min: 0, max: 40_000 }),
              toMs: fc.integer({ min: 0, max: 40_000 }),
              time: fc.constantFrom("created" as const, "overlap" as const),
            },
            { requiredKeys: [] },
          ),
          async (condition, sort, aggregations, range) => {
            const aggs: Aggregations = aggregations.map((aggregation, i) => ({ name: `a${i}`, aggregation }));
            await agrees({ condition, sort, aggs, ...range });
          },
        ),
        { numRuns: 600, seed: 7 },
      );

    test("any condition, range, order and aggregations agree with plain evaluation", agree, PROPERTY_MS_MAX);

    test(
      "the same after changes, removals, additions and a restart",
      async () => {
        const changed = alerts.slice(0, 60).map((alert, i): Alert => {
          const donor = alerts[100 + i]!;
          const { status, severity, assignee, entities, aiAnalysis, lastEventAt, enrichment } = donor;
          const more = { status, severity, assignee, entities, aiAnalysis, lastEventAt, enrichment };
          return { ...alert, ...more, version: alert.version + 1 };
        });
        const gone = alerts
          .slice(60, 120)
          .map((alert): Alert => ({ ...alert, status: "resolved", resolvedAt: 5, version: alert.version + 1 }));
        await store().alerts.commit({ alerts: [...changed, ...gone], timeline: [] });
        expect(await store().alerts.removeResolvedBefore(6, new AbortController().signal)).toBe(gone.length);
        const added = alerts.slice(60, 90).map((alert) => newAlert({ ...alert, id: newAlert().id, title: "door" }));
        await store().alerts.commit({ alerts: added, timeline: [] });
        alerts = [...changed, ...alerts.slice(120), ...added];
        await agree();
        await reopen();
        await agree();
      },
      PROPERTY_MS_MAX,
    );

    test("a cursor walks through any order, without a repeated or skipped alert", async () => {
      for (const field of FIELDS) {
        for (const descending of [false, true]) {
          const sort = [{ field, descending }];
          const walked: string[] = [];
          let after: string | undefined;
          do {
            const page = await search({ sort, after, limit: 60 });
            walked.push(...ids(page.items));
            expect(page.total).toBe(alerts.length);
            after = page.nextCursor ?? undefined;
          } while (after !== undefined);
          expect(walked, field).toEqual(ids(plainly({ sort })));
        }
      }
    });

    test("words and a condition must both hold", async () => {
      const isHigh: Condition = {
        kind: "test",
        field: "severity",
        operator: "equals",
        value: "high",
        ignoreCase: false,
      };
      const { items } = await search({ search: "camera", condition: isHigh });
      const wanted = plainly({ condition: isHigh }).filter(({ title, description, group, tags = [], entities = [] }) =>
        [title, description, group?.value, ...tags, ...entities.map(({ value }) => value)].some((text) =>
          text?.includes("Camera"),
        ),
      );
      expect(wanted.length).toBeGreaterThan(3);
      expect(ids(items)).toEqual(ids(wanted));
    });

    test("trends are the totals of each interval and the counts of the most frequent rules", async () => {
      const [fromMs, toMs, intervalMs] = [3500, 38_200, 5000];
      const { rules, intervals } = await store().alerts.trends({ fromMs, toMs, intervalMs, rulesMax: 2 });
      const countIn = (from: number, to: number, isCounted: (alert: Alert) => boolean = () => true) =>
        alerts.filter((alert) => alert.createdAt >= from && alert.createdAt < to && isCounted(alert)).length;
      const countsOfRules = NAMES.map((name) => ({
        name,
        count: countIn(fromMs, toMs, ({ rule }) => rule.name === name),
      })).sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
      expect(rules).toEqual(countsOfRules.slice(0, 2));
      expect(intervals.map(({ startMs }) => startMs)).toEqual([
        0, 5000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000,
      ]);
      for (const { startMs, totals, byRule, otherRules } of intervals) {
        const [from, to] = [Math.max(fromMs, startMs), Math.min(toMs, startMs + intervalMs)];
        expect(totals).toEqual(await store().alerts.totals({ fromMs: from, toMs: to }));
        expect(totals.total).toBe(countIn(from, to));
        expect(byRule).toEqual(rules.map(({ name }) => countIn(from, to, ({ rule }) => rule.name === name)));
        expect(otherRules).toBe(totals.total - byRule[0]! - byRule[1]!);
      }
      const empty = await store().alerts.trends({ fromMs: DAY_MS, toMs: DAY_MS + 1, intervalMs, rulesMax: 2 });
      expect(empty.rules).toEqual([]);
      expect(empty.intervals).toMatchObject([{ totals: { total: 0, acknowledgeMs: null }, byRule: [], otherRules: 0 }]);
    });

    test("a limit of 0 gives the total and aggregations alone", async () => {
      const aggregation = { kind: "count" as const };
      const found = await search({ limit: 0, aggs: [{ name: "all", aggregation }] });
      expect(found).toEqual({
        total: alerts.length,
        items: [],
        nextCursor: null,
        aggregations: { all: { value: alerts.length } },
      });
    });

    test("an unknown cursor and a histogram of too many buckets are refused with the field's name", async () => {
      const unknown = search({ after: "alt_0" });
      await expect(unknown).rejects.toThrow(QueryRefused);
      await expect(unknown).rejects.toHaveProperty("field", "after");
      const aggregation = { kind: "histogram" as const, field: "created_at", interval: 1, aggs: [] };
      await expect(search({ aggs: [{ name: "fine", aggregation }] })).rejects.toHaveProperty(
        "field",
        "aggs.fine.histogram.interval",
      );
    });
  });
}
