import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ListColumn } from "./list-column.ts";

const SLOTS = 60;
const change = fc.record({
  slot: fc.nat({ max: SLOTS - 1 }),
  // Many more texts than are in use at a time, so that codes are reused.
  texts: fc.array(fc.nat({ max: 400 }).map(String), { maxLength: 50 }),
});

test("each slot keeps its list while others change, and unused texts leave no code", () => {
  fc.assert(
    fc.property(fc.array(change, { minLength: 200, maxLength: 400 }), (changes) => {
      const column = new ListColumn(SLOTS / 2);
      column.grow(SLOTS);
      const plain = new Map<number, readonly string[]>();
      for (const { slot, texts } of changes) {
        column.set(slot, texts);
        plain.set(slot, texts);
      }
      const { dictionary } = column;
      for (const [slot, texts] of plain) {
        expect(Array.from(column.codesOf(slot), (code) => dictionary.textOf(code))).toEqual(texts);
        expect(column.countOf(slot)).toBe(texts.length);
        const wanted = dictionary.marks(["7"]);
        expect(column.hasMark(slot, wanted)).toBe(texts.includes("7"));
      }
      const used = new Set([...plain.values()].flat());
      const known = Array.from({ length: dictionary.end }, (_, code) => dictionary.textOf(code)).filter(Boolean);
      expect(new Set(known)).toEqual(used);
    }),
    { numRuns: 40 },
  );
});

test("a text is found in upper and lower case", () => {
  const { dictionary } = new ListColumn(1);
  const codes = ["Anna", "anna", "ANNA", "ben"].map((text) => dictionary.acquire(text));
  const found = (texts: readonly (string | null)[]) =>
    [...dictionary.foldedMarks(texts).entries()].filter(([, mark]) => mark === 1).map(([code]) => code);
  expect(found(["aNNa"])).toEqual(codes.slice(0, 3));
  dictionary.release(codes[1]!);
  dictionary.release(codes[0]!);
  expect(found(["aNNa", null, "eva"])).toEqual([0, codes[2]]);
});
