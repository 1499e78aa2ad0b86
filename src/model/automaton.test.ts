import * as fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { Automaton } from "./automaton.ts";

const AMPLE = 1e9;
const found = (pattern: string, text: string, flags = 0) =>
  new Automaton(RE2JS.compile(pattern, flags)).test(text, { steps: AMPLE });

const atom = fc.constantFrom(
  ..."abk1 _\\n".split(""),
  "ſ",
  "é",
  "😀",
  ".",
  "(?s:.)",
  "[ab]",
  "[^a]",
  "\\w",
  "\\W",
  "\\d",
  "\\s",
  "\\pL",
  "[[:alpha:]]",
  "\\x{1F600}",
  "^",
  "$",
  "\\b",
  "\\B",
  "\\A",
  "\\z",
  "(?m:^)",
  "(?m:$)",
  "(?i:k)",
  "(?i:S)",
);
const pattern = fc.letrec<{ pattern: string }>((tie) => ({
  pattern: fc.oneof(
    { depthSize: "small" },
    atom,
    fc.array(tie("pattern"), { minLength: 1, maxLength: 4 }).map((parts) => parts.join("")),
    fc.tuple(tie("pattern"), tie("pattern")).map(([a, b]) => `(${a}|${b})`),
    fc
      .tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "*?", "{2}", "{0,3}", "{2,}", "{40}"))
      .map(([part, times]) => `(?:${part})${times}`),
  ),
})).pattern;
const text = fc
  .array(fc.constantFrom(..."aabbk1 _\n", "K", "ſ", "é", "😀", "\ud83d", "K", "\0"), { maxLength: 60 })
  .map((chars) => chars.join(""));

test("finds what the library finds, with and without case", () => {
  fc.assert(
    fc.property(pattern, fc.array(text, { minLength: 1, maxLength: 5 }), fc.boolean(), (source, texts, ignoreCase) => {
      let compiled: RE2JS;
      try {
        compiled = RE2JS.compile(source, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
      } catch {
        return fc.pre(false);
      }
      const automaton = new Automaton(compiled);
      for (const subject of texts) expect(automaton.test(subject, { steps: AMPLE })).toBe(compiled.test(subject));
    }),
    { numRuns: 1500 },
  );
});

test.each([
  ["a.{100}x", `a${"b".repeat(100)}x`, true],
  ["a.{100}x", `a${"b".repeat(99)}x`, false],
  ["^$", "", true],
  ["(?:^a|b$)\\b", "ab", true],
  ["", "anything", true],
])("%s in a text of its own", (source, subject, expected) => {
  expect(found(source, subject)).toBe(expected);
});

test("stops when what may be spent is spent, wherever that is", () => {
  const automaton = new Automaton(RE2JS.compile("a.{400}x$"));
  const purse = { steps: 100_000 };
  expect(automaton.test("ab".repeat(30_000), purse)).toBeUndefined();
  expect(purse.steps).toBeGreaterThan(-100_000);
  expect(automaton.test(`a${"b".repeat(400)}x`, { steps: AMPLE })).toBe(true);
});
