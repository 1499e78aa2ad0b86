import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FIELDS_MAX } from "../device-values.ts";
import { splitColumns } from "./columns.ts";
import { scanPairs } from "./pairs.ts";

const SPACED = { assign: "=", separator: " " };
const pairs = (text: string, syntax = SPACED) => Object.fromEntries(scanPairs(text, 0, syntax).values);

describe("pairs", () => {
  test.each([
    ["a=1 b=2", { a: "1", b: "2" }],
    ['a="x y" b=', { a: "x y", b: "" }],
    ['a="x \\"y\\"" b=2', { a: 'x "y"', b: "2" }],
    ["words first a=1", { a: "1" }],
    ["a=b=c d=1", { a: "b=c", d: "1" }],
    ["a=1  b=2", { a: "1", b: "2" }],
    ["a=1 a=2", { a: "1" }],
    ['a="never closed', { a: "never closed" }],
    ["", {}],
  ])("%j", (text, expected) => {
    expect(pairs(text)).toEqual(expected);
  });

  test("other separators", () => {
    expect(pairs("a: 1;b: two words; c:", { assign: ":", separator: ";" })).toEqual({
      a: " 1",
      b: " two words",
      c: "",
    });
  });

  test("past the limit they are counted", () => {
    const text = Array.from({ length: FIELDS_MAX + 3 }, (_, index) => `k${index}=${index}`).join(" ");
    expect(scanPairs(text, 0, SPACED)).toMatchObject({ leftOut: 3 });
  });

  test("what was written is read", () => {
    const key = fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/);
    const value = fc.string({ maxLength: 20 });
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(key, value), { selector: ([name]) => name, maxLength: 10 }), (list) => {
        const text = list.map(([name, said]) => `${name}="${said.replaceAll(/["\\]/g, "\\$&")}"`).join(" ");
        expect(pairs(text)).toEqual(Object.fromEntries(list));
      }),
    );
  });
});

describe("columns", () => {
  test.each([
    ["a,b,,c", ["a", "b", "", "c"]],
    ['"a,b","c ""d""",e', ["a,b", 'c "d"', "e"]],
    ['"never closed,a', ["never closed,a"]],
    ["", [""]],
  ])("%j", (text, expected) => {
    expect(splitColumns(text, 0, ",")).toEqual(expected);
  });
});
