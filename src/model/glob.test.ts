import * as fc from "fast-check";
import { expect, test } from "vitest";
import { compileGlob, globPieces } from "./glob.ts";

/** The meaning of a glob, by exhaustive search. */
function matchesByHand(glob: readonly string[], text: readonly string[]): boolean {
  const [char, next] = glob;
  if (char === undefined) return text.length === 0;
  if (char === "*")
    return matchesByHand(glob.slice(1), text) || (text.length > 0 && matchesByHand(glob, text.slice(1)));
  if (text.length === 0) return false;
  if (char === "?") return matchesByHand(glob.slice(1), text.slice(1));
  const isEscape = char === "\\" && (next === "*" || next === "?" || next === "\\");
  if (isEscape) return text[0] === next && matchesByHand(glob.slice(2), text.slice(1));
  return text[0] === char && matchesByHand(glob.slice(1), text.slice(1));
}

test("a glob matches what an exhaustive search matches", () => {
  const unit = fc.constantFrom("a", "b", "*", "?", "\\", "😀", "é");
  let matched = 0;
  fc.assert(
    fc.property(
      fc.array(unit, { minLength: 1, maxLength: 7 }),
      fc.array(fc.constantFrom("a", "b", "*", "?", "\\", "😀", "é"), { maxLength: 7 }),
      (glob, text) => {
        const wanted = matchesByHand(glob, text);
        if (wanted) matched++;
        expect(compileGlob(glob.join(""))(text.join(""))).toBe(wanted);
      },
    ),
    { numRuns: 3000 },
  );
  // Ensures that the property covers both outcomes.
  expect(matched).toBeGreaterThan(100);
});

test.each([
  ["*\\powershell.exe", "C:\\Windows\\powershell.exe", true],
  ["*\\powershell.exe", "powershell.exe", false],
  ["a*b*a", "aba", true],
  ["a*a", "a", false],
  ["\\*", "*", true],
  ["\\*", "x", false],
  ["\\\\*", "\\x", true],
  ["?", "😀", true],
  ["??", "😀", false],
  ["", "", true],
])("%s on %s: %s", (glob, text, wanted) => {
  expect(compileGlob(glob)(text)).toBe(wanted);
});

test("a glob that is exponential for a backtracking matcher ends at once", () => {
  expect(compileGlob("*a".repeat(200) + "*b")("a".repeat(60_000))).toBe(false);
});

test("pieces are the texts between the stars", () => {
  expect(globPieces("a\\*b*c?")).toEqual([
    ["a", "*", "b"],
    ["c", undefined],
  ]);
});
