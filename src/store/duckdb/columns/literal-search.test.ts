import * as fc from "fast-check";
import { expect, test } from "vitest";
import { containsAny } from "./literal-search.ts";

const never = () => undefined;

test("finds the same as a search for each literal", () => {
  // Some letters share a class of the automaton: "a" and "!", "é" and ")".
  const text = (maxLength: number) =>
    fc.array(fc.constantFrom("a", "b", "!", "é", ")", "\u{1f600}"), { maxLength }).map((letters) => letters.join(""));
  fc.assert(
    fc.property(fc.array(text(12), { maxLength: 20 }), text(60), (literals, subject) => {
      expect(containsAny(literals, never)(subject)).toBe(literals.some((literal) => subject.includes(literal)));
    }),
    { numRuns: 2000 },
  );
});

test("literals with the same first characters are distinguished, at any position", () => {
  const literals = Array.from({ length: 1000 }, (_, i) => `the same beginning ${i}!`);
  const contains = containsAny(literals, never);
  expect(contains(`before the same beginning 999! behind`)).toBe(true);
  expect(contains(`before the same beginning 1000! behind`)).toBe(false);
});

test("the search of a text that has the prefix of every literal everywhere can be aborted", () => {
  const contains = containsAny(
    Array.from({ length: 1000 }, (_, i) => `${"a".repeat(100)}${i}`),
    () => {
      throw new Error("aborted");
    },
  );
  expect(() => contains("a".repeat(10_000))).toThrow("aborted");
});
