import * as fc from "fast-check";
import { expect, test } from "vitest";
import { compileCondition, type Condition } from "../model/condition.ts";
import type { Event } from "../model/event.ts";
import { Facts } from "./facts.ts";
import { Matcher } from "./matcher.ts";
import { requiredLiterals } from "./literals.ts";
import { Patterns } from "./patterns.ts";

// Texts of few pieces, and patterns and globs made of the same pieces: they meet often, and nearly meet more often.

const PIECES = ["power", "shell", "-enc", "k", "S", "ſ", "K", "é", "Σ", "ς", ".", "x{2}", "😀", "\ud83d", " "];
const text = fc.array(fc.constantFrom(...PIECES), { maxLength: 6 }).map((pieces) => pieces.join(""));

const escaped = (piece: string) => piece.replaceAll(/[.{}*?+^$|()[\]\\]/g, "\\$&");
const pattern = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...PIECES.filter((piece) => piece.isWellFormed())).map(escaped) },
      {
        weight: 3,
        arbitrary: fc.constantFrom(
          "?",
          "*",
          "+",
          "{2}",
          "{0,1}",
          "|",
          "(?:power|k)",
          "(shell)?",
          "[ek]",
          "[^]]",
          "\\w",
          "\\.",
        ),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom("(?i)", "(?i:SHELL)", "^", "$", "\\b", ".", "\\x6b", "\\pL", "\\Qk.\\E", "\\t"),
      },
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((parts) => parts.join(""));
const glob = fc
  .array(fc.oneof(fc.constantFrom(...PIECES), fc.constantFrom("*", "?", "\\*")), { minLength: 1, maxLength: 6 })
  .map((parts) => parts.join(""));

function expectSame(condition: Condition, texts: readonly string[]): void {
  const facts = new Facts();
  const patterns = new Patterns();
  const matcher = new Matcher<string>(facts, patterns);
  matcher.add("rule", "any", condition, "rule");
  const holds = compileCondition(condition);
  for (const value of texts) {
    const event = { type: "t", source: "custom", raw: { value }, enrichment: {} } as unknown as Event;
    facts.turnTo(event);
    patterns.renew();
    expect(matcher.match().length > 0, `${JSON.stringify(condition)} on ${JSON.stringify(value)}`).toBe(holds(event));
  }
}

const texts = fc.array(text, { minLength: 1, maxLength: 8 });

test("a guard never hides a pattern that is found", () => {
  fc.assert(
    fc.property(pattern, texts, fc.boolean(), (value, list, ignoreCase) => {
      const condition: Condition = { kind: "test", field: "raw.value", operator: "regex", value, ignoreCase };
      try {
        compileCondition(condition);
      } catch {
        return fc.pre(false);
      }
      expectSame(condition, list);
    }),
    { numRuns: 4000 },
  );
});

test("a guard never hides a text that is like a glob", () => {
  fc.assert(
    fc.property(glob, texts, fc.boolean(), (value, list, ignoreCase) => {
      expectSame({ kind: "test", field: "raw.value", operator: "glob", value, ignoreCase }, list);
    }),
    { numRuns: 400 },
  );
});

test("a guard never hides a beginning, an end or a part", () => {
  const operator = fc.constantFrom("starts_with", "ends_with", "contains", "equals");
  fc.assert(
    fc.property(operator, text, texts, fc.boolean(), (name, value, list, ignoreCase) => {
      fc.pre(value !== "");
      expectSame({ kind: "test", field: "raw.value", operator: name as "equals", value, ignoreCase }, [value, ...list]);
    }),
    { numRuns: 400 },
  );
});

test.each([
  ["powershell.*-enc", [["powershell"], ["-enc"]]],
  ["^C:\\\\Windows\\\\.*\\.exe$", [["c:\\windows\\"], [".exe"]]],
  ["(?:abc|def)ghij+", [["ghij"], ["abc", "def"]]],
  ["colou?r", [["colo"]]],
  ["(?:abc){2,}x{0}yz+", [["abc"], ["yz"]]],
  ["[Pp][Oo]wer[.]exe", [["power.exe"]]],
  ["cmd|(?i:bash|zsh.*login)", [["cmd", "bash", "login"]]],
  ["(?P<tool>nc(?:at)?) -e", [[" -e"], ["nc"]]],
  ["\\x{41}bc[[:alpha:]]de\\p{Greek}", [["bc"], ["de"]]],
  ["a|b", []],
  ["abc|.", []],
  ["[a-z]{3}", []],
  ["(?:abc)?", []],
])("what %s requires", (source, expected) => {
  expect(requiredLiterals(source, true)).toEqual(expected);
});
