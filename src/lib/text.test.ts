import * as fc from "fast-check";
import { expect, test } from "vitest";
import { cut, foldCase, lines, oneLine } from "./text.ts";

test("case folding ignores case, including a final sigma", () => {
  for (const text of ["ΣΑΣ", "σας", "Σας", "σασ"]) expect(foldCase(text)).toBe("σασ");
  expect(foldCase("İÉ Kς")).toBe("ié kσ");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      expect(foldCase(foldCase(text))).toBe(foldCase(text));
    }),
  );
});

test("text is cut with an ellipsis, never within a character", () => {
  expect(cut("abc", 3)).toBe("abc");
  expect(cut("abcd", 3)).toBe("ab…");
  expect(cut("a😀😀", 3)).toBe("a…");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 2, max: 20 }), (text, max) => {
      const short = cut(text, max);
      expect(short.length).toBeLessThanOrEqual(max);
      expect(short.isWellFormed()).toBe(true);
    }),
  );
});

test("invisible characters are removed, and line breaks kept only where allowed", () => {
  expect(oneLine("  a\r\n\tb\u0000\u200b\u202ec ", 100)).toBe("a bc");
  expect(lines("a\r\nb\rc\u0007\td\u2028", 100)).toBe("a\nb\nc d");
  expect(oneLine("x".repeat(1_000_000), 5)).toBe("xxxx…");
});
