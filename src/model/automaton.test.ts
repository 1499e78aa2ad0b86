import * as fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { Automaton, CacheMemoryLimit } from "./automaton.ts";

const AMPLE = 1e9;
const cacheLimit = new CacheMemoryLimit();

function searchAll(automaton: Automaton, patterns: number, text: string): boolean[] {
  const found = new Uint8Array(patterns);
  expect(automaton.search(text, { steps: AMPLE }, found)).toBe(true);
  return Array.from(found, (mark) => mark === 1);
}

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

function compiled(source: string, ignoreCase: boolean): RE2JS | undefined {
  try {
    return RE2JS.compile(source, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch {
    return undefined;
  }
}

test("an automaton finds what re2js finds, case-sensitive or not", () => {
  fc.assert(
    fc.property(pattern, fc.array(text, { minLength: 1, maxLength: 5 }), fc.boolean(), (source, texts, ignoreCase) => {
      const own = compiled(source, ignoreCase);
      if (!own) return fc.pre(false);
      const automaton = new Automaton([own], cacheLimit);
      for (const subject of texts) expect(searchAll(automaton, 1, subject)).toEqual([own.test(subject)]);
    }),
    { numRuns: 1500 },
  );
});

test("an automaton of several patterns finds what re2js finds for each", () => {
  const sources = fc.array(fc.tuple(pattern, fc.boolean()), { minLength: 2, maxLength: 8 });
  fc.assert(
    fc.property(sources, fc.array(text, { minLength: 1, maxLength: 5 }), (list, texts) => {
      const patterns = list.flatMap(([source, ignoreCase]) => compiled(source, ignoreCase) ?? []);
      const automaton = new Automaton(patterns, cacheLimit);
      for (const subject of texts)
        expect(searchAll(automaton, patterns.length, subject)).toEqual(patterns.map((each) => each.test(subject)));
    }),
    { numRuns: 700 },
  );
});

test("an automaton finds the same when a text needs more states than the cache holds, and afterwards", () => {
  const sources = ["(?:a|b)*a(?:a|b){12}c", "b(?:a|b){11}d$", "e\\b", "é"];
  const patterns = sources.map((source) => RE2JS.compile(source));
  const automaton = new Automaton(patterns, cacheLimit);
  let seed = 1;
  const letters = Array.from({ length: 20_000 }, () => "ab"[(seed = (seed * 48_271) % 2_147_483_647) & 1]).join("");
  for (const end of ["c", "d", "e", "é", "ee", `${"a".repeat(13)}c e é ${"b".repeat(12)}d`]) {
    const subject = letters + end;
    expect(searchAll(automaton, 4, subject), end).toEqual(patterns.map((each) => each.test(subject)));
  }
});

test("an automaton finds the same with more character classes than the initial capacity", () => {
  const signs = Array.from({ length: 120 }, (_, i) => String.fromCodePoint(0x4e00 + 3 * i));
  const patterns = signs.map((sign) => RE2JS.compile(`${sign}x`));
  const automaton = new Automaton(patterns, cacheLimit);
  const subject = signs.map((sign, i) => (i % 3 === 0 ? `${sign}x` : sign)).join("");
  expect(searchAll(automaton, 120, subject)).toEqual(signs.map((_, i) => i % 3 === 0));
});

test.each([
  ["a.{100}x", `a${"b".repeat(100)}x`, true],
  ["a.{100}x", `a${"b".repeat(99)}x`, false],
  ["^$", "", true],
  ["(?:^a|b$)\\b", "ab", true],
  ["", "anything", true],
])("an automaton searches for %s in a matching edge case", (source, subject, expected) => {
  expect(searchAll(new Automaton([RE2JS.compile(source)], cacheLimit), 1, subject)).toEqual([expected]);
});

test("a search stops when its budget runs out, and the automaton stays usable", () => {
  const automaton = new Automaton([RE2JS.compile("a.{400}x$")], cacheLimit);
  const budget = { steps: 100_000 };
  expect(automaton.search("ab".repeat(30_000), budget, new Uint8Array(1))).toBe(false);
  expect(budget.steps).toBeGreaterThan(-100_000);
  expect(searchAll(automaton, 1, `a${"b".repeat(400)}x`)).toEqual([true]);
});
