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
])("%s weighs at least as many instructions as it compiles to compare", (pattern) => {
  const compared = programOf(RE2JS.compile(pattern)).instructions.filter(({ op }) => isConsuming(op));
  expect(patternWeight(pattern)).toBeGreaterThanOrEqual(compared.length);
  expect(patternWeight(pattern)).toBeLessThan(compared.length * 25 + 25);
});

test("a pattern that is short to write and huge to run is refused before it is compiled", () => {
  const faultOf = (regex: string) => fieldTestSchema.safeParse({ field: "raw.a", regex }).error?.issues[0]?.message;
  expect(faultOf("[A-Za-z0-9+/=]{900,}")).toBeUndefined();
  expect(faultOf("x{1000}".repeat(292))).toContain(`${PATTERN_WEIGHT_MAX}`);
});

test("patterns of one question are weighed together before the first is compiled, wherever they stand", () => {
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
