import { beforeAll, describe, expect, test } from "vitest";
import type { ContractContext } from "./contract.ts";

// The part of the contract about the fields that events have.

export function fieldsContract({ store, clock, draft, append }: ContractContext): void {
  const fieldsOf = async (filter: Parameters<ReturnType<typeof store>["events"]["fields"]>[0]) => {
    const { fields, ...counts } = await store().events.fields(filter);
    return { ...counts, fields: new Map(fields.map(({ path, ...field }) => [path, field])), order: fields };
  };

  describe("the fields of events", () => {
    beforeAll(async () => {
      await append(
        draft({ type: "fields.a", severity: "high", raw: { user: "ann", n: 1, tags: ["x", "y"], deep: { on: true } } }),
        draft({ type: "fields.a", severity: "high", raw: { user: "ann", n: "two", gone: null } }),
        draft({ type: "fields.a", raw: { user: "ben", big: 12345678901234567890n, "dotted.key": 5 } }),
        draft({ type: "fields.b", source: "platform_access", raw: { door: "front" }, timestampMs: clock() - 1000 }),
        draft({ type: "fields.b", raw: { long: "x".repeat(5000) }, enrichment: { geo: { country: "NL" } } }),
      );
    });

    test("have their paths, types, counts and most frequent values", async () => {
      const { total, examined, fields, order } = await fieldsOf({ type: ["fields.a", "fields.b"] });
      expect({ total, examined }).toEqual({ total: 5, examined: 5 });
      expect(fields.get("raw.user")).toEqual({ types: ["string"], events: 3, examples: ["ann", "ben"] });
      expect(fields.get("raw.n")).toEqual({ types: ["string", "number"], events: 2, examples: ["1", "two"] });
      expect(fields.get("raw.tags")).toEqual({ types: ["string"], events: 1, examples: ["x", "y"] });
      expect(fields.get("raw.deep")).toEqual({ types: ["object"], events: 1, examples: [] });
      expect(fields.get("raw.deep.on")).toEqual({ types: ["boolean"], events: 1, examples: ["true"] });
      expect(fields.get("raw.big")).toEqual({ types: ["number"], events: 1, examples: ["12345678901234567890"] });
      expect(fields.get("raw.dotted.key")).toMatchObject({ types: ["number"], events: 1 });
      expect(fields.get("raw.long")!.examples[0]).toHaveLength(100);
      expect(fields.get("enrichment.geo.country")).toMatchObject({ events: 1, examples: ["NL"] });
      expect(fields.get("type")).toMatchObject({ events: 5, examples: ["fields.a", "fields.b"] });
      expect(fields.get("severity")).toMatchObject({ events: 5, examples: ["info", "high"] });
      for (const absent of ["raw", "enrichment", "raw.gone"]) expect(fields.has(absent), absent).toBe(false);
      expect(order).toEqual(order.toSorted((a, b) => b.events - a.events || (a.path < b.path ? -1 : 1)));
    });

    test("are those of events of the filter and the range", async () => {
      expect([...(await fieldsOf({ type: "fields.b", source: "platform_access" })).fields.keys()]).toContain(
        "raw.door",
      );
      const late = await fieldsOf({ type: "fields.b", fromMs: clock() });
      expect(late.total).toBe(1);
      expect(late.fields.has("raw.door")).toBe(false);
      expect(await fieldsOf({ type: "fields.none" })).toMatchObject({ total: 0, examined: 0, order: [] });
    });

    test("are estimated from the newest events of each type when there are many", async () => {
      const fill = (type: string, length: number, raw: (i: number) => object) =>
        append(...Array.from({ length }, (_, i) => draft({ type, raw: { ...raw(i) } })));
      await fill("fields.rare", 3, () => ({ rare: 1 }));
      await fill("fields.many", 3000, (i) => ({ every: 1, ...(i % 4 === 0 && { fourth: i }) }));
      const types = ["fields.rare", "fields.many"];
      const { total, examined, fields } = await fieldsOf({ type: types });
      expect(total).toBe(3003);
      expect(examined).toBeLessThan(total);
      expect(fields.get("raw.rare")!.events).toBe(3);
      expect(fields.get("raw.every")!.events).toBe(3000);
      expect(Math.abs(fields.get("raw.fourth")!.events - 750)).toBeLessThan(20);
      expect(fields.get("type")!.events).toBe(3003);
    });
  });
}
