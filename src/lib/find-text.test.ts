import * as fc from "fast-check";
import { expect, test } from "vitest";
import { findText, includesText } from "./find-text.ts";

test("finds what indexOf finds, from any start", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 400 });
  const wanted = fc.oneof(fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 140 }), letters);
  fc.assert(
    fc.property(letters, wanted, letters, fc.nat(500), (before, sought, after, from) => {
      for (const text of [before, before + sought + after, before + sought + sought]) {
        expect(findText(text, sought, from)).toBe(text.indexOf(sought, from));
      }
    }),
  );
});

test("a long text that almost occurs everywhere is searched for in linear time", () => {
  const text = "a".repeat(500_000);
  const half = "a".repeat(50_000);
  expect(includesText(text, `${half}b${half}`)).toBe(false);
  expect(includesText(`${text}b${text}`, `${half}b${half}`)).toBe(true);
});
