import * as fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { DAY_MS } from "../../lib/time.ts";
import { ALWAYS, compileCondition, type Condition, type Scalar } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import { fieldReader, OBJECT } from "../../model/field.ts";
import type { TimeRange } from "../../model/query.ts";
import { conditions, drafts } from "./arbitrary-events.ts";
import { projectedValues, type Projection } from "../ports/projection.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import type { ContractContext } from "./contract.ts";

// The part of the contract about projections: a store returns the same values as plain evaluation.

/** Hundreds of queries, which take long on a busy machine. */
const PROPERTY_MS_MAX = 120_000;

export function projectionsContract({ store, clock, draft, append }: ContractContext): void {
  describe("projections", () => {
    let events: Event[] = [];

    beforeAll(async () => {
      const sample = fc
        .sample(drafts(clock() - DAY_MS, clock()), { numRuns: 300, seed: 17 })
        // Some have the same time: those come in the order of arrival.
        .map((item, i) => ({
          ...item,
          type: `projected.${item.type}`,
          timestampMs: item.timestampMs - (i % 2 ? item.timestampMs % 3_600_000 : 0),
        }));
      events = await append(...sample);
    });

    const isProjected: Condition = {
      kind: "test",
      field: "type",
      operator: "starts_with",
      value: "projected.",
      ignoreCase: false,
    };
    const never = new AbortController().signal;
    const rowsOf = async (projection: Projection & TimeRange) => {
      const rows: { seq: number; timestampMs: number; passed: number; values: readonly (readonly Scalar[])[] }[] = [];
      for await (const part of store().events.project!(projection, never)) {
        for (let i = 0; i < part.length; i++) {
          const [seq, timestampMs, passed] = [part.seqs[i]!, part.timesMs[i]!, part.passed[i]!];
          rows.push({ seq, timestampMs, passed, values: projectedValues(part, i) });
        }
      }
      return rows;
    };
    const different = (event: Event, field: string) =>
      new Set(fieldReader(field)(event).filter((value) => value !== OBJECT));
    const oldestFirst = (a: Event, b: Event) =>
      a.timestamp < b.timestamp || (a.timestamp === b.timestamp && a.id < b.id) ? -1 : 1;

    test(
      "return the values that fieldReader reads, oldest first, and the passed tests",
      async () => {
        const fields = fc.uniqueArray(
          fc.constantFrom(
            "type",
            "source",
            "severity",
            "timestamp",
            "raw",
            "raw.src_ip",
            "raw.dst_port",
            "raw.user",
            "raw.mixed",
            "raw.list",
            "raw.a",
            "raw.a.b",
            "raw.a.~t/x",
            "raw.flag",
            "raw.nothing",
            "enrichment.geo.country",
          ),
          { minLength: 0, maxLength: 4 },
        );
        await fc.assert(
          fc.asyncProperty(
            fields,
            conditions(),
            fc.array(conditions(), { maxLength: 3 }),
            async (paths, condition, tests) => {
              const projection = {
                condition: { kind: "all", of: [isProjected, condition] } as const,
                fields: paths,
                tests,
              };
              const found = (await rowsOf(projection)).map(({ timestampMs, passed, values }) => ({
                timestampMs,
                passed,
                values: values.map((list) => new Set(list)),
              }));
              const passes = tests.map(compileCondition);
              const wanted = events.filter(compileCondition(condition)).sort(oldestFirst);
              expect(found).toEqual(
                wanted.map((event) => ({
                  timestampMs: Date.parse(event.timestamp),
                  passed: passes.reduce((bits, holds, i) => bits + (holds(event) ? 2 ** i : 0), 0),
                  values: paths.map((path) => different(event, path)),
                })),
              );
            },
          ),
          { numRuns: 60, seed: 19 },
        );
      },
      PROPERTY_MS_MAX,
    );

    test("see every acknowledged event, number events in the order of arrival, and respect their range", async () => {
      const [early, late] = await append(
        draft({ type: "projected.now", timestampMs: clock() }),
        draft({ type: "projected.now", timestampMs: clock() - 1000 }),
      );
      const now: Condition = { ...isProjected, operator: "equals", value: "projected.now" };
      const rows = await rowsOf({ condition: now, fields: [] });
      expect(rows.map(({ timestampMs }) => timestampMs)).toEqual([clock() - 1000, clock()]);
      expect(early!.id < late!.id).toBe(true);
      expect(rows[1]!.seq).toBeLessThan(rows[0]!.seq);
      const within = { condition: now, fields: [], fromMs: clock() - 1000, toMs: clock() };
      expect((await rowsOf(within)).length).toBe(1);
    });

    test("stop when aborted and free their slot", async () => {
      for (let i = 0; i < 20; i++) {
        const controller = new AbortController();
        if (i % 3 === 0) queueMicrotask(() => controller.abort());
        for await (const part of store().events.project!({ condition: ALWAYS, fields: ["type"] }, controller.signal)) {
          expect(part.length).toBeGreaterThan(0);
          if (i % 3 === 1) controller.abort();
          else break;
        }
      }
      const everything = await rowsOf({ condition: ALWAYS, fields: ["raw.user"] });
      expect(everything.length).toBe(await store().events.count());
    });

    test("of ids are refused", async () => {
      const refused = async () => {
        for await (const part of store().events.project!({ condition: ALWAYS, fields: ["id"] }, never)) return part;
        return undefined;
      };
      await expect(refused()).rejects.toThrow(QueryRefused);
    });
  });
}
