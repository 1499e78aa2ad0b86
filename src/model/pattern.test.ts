import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { fieldTestSchema } from "./condition-schema.ts";
import { patternsFault } from "./condition-schema.ts";
import { PATTERN_WEIGHT_MAX, patternWeight } from "./pattern.ts";
import { isConsuming, programOf } from "./re2-program.ts";
import { querySchema } from "./query.ts";
import { conditionsSchema } from "./rule-schema.ts";

test.each([
  "x{1000}x{1000}x{1000}",
  "((a{30}){30})b{2}",
  "(?:\\pL{10}){30}",
  "[^\\pL]{100}\\p{Greek}{5,20}",
  "a[]a{5]{10}b\\{5}",
  "(a|b{3}){100,}",
  "[a-z]{1,999}(x?y+z*){50}",
])("the weight of %s is at least its number of consuming instructions", (pattern) => {
  const compared = programOf(RE2JS.compile(pattern)).instructions.filter(({ op }) => isConsuming(op));
  expect(patternWeight(pattern)).toBeGreaterThanOrEqual(compared.length);
  expect(patternWeight(pattern)).toBeLessThan(compared.length * 25 + 25);
});

test("a short pattern that compiles to a huge program is refused before it is compiled", () => {
  const faultOf = (regex: string) => fieldTestSchema.safeParse({ field: "raw.a", regex }).error?.issues[0]?.message;
  expect(faultOf("[A-Za-z0-9+/=]{900,}")).toBeUndefined();
  expect(faultOf("x{1000}".repeat(292))).toContain(`${PATTERN_WEIGHT_MAX}`);
});

test("all patterns of one query are weighed together before any is compiled", () => {
  const test = (patterns: number) => ({
    field: "raw.message",
    regex: Array.from({ length: patterns }, (_, i) => `.{0,900}${i}`),
  });
  expect(patternsFault([test(5)])).toBeUndefined();
  const faults = querySchema.safeParse({ bool: { should: [{ bool: { must_not: [test(3), test(3)] } }] } }).error
    ?.issues;
  expect(faults?.map(({ path }) => path)).toEqual([["bool"]]);
  expect(conditionsSchema.safeParse([{ any: [test(3), { not: test(3) }] }]).success).toBe(false);
  expect(patternsFault({ regex: [null, 3, { regex: ["a"] }] })).toBeUndefined();
});
