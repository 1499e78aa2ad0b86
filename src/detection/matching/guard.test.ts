import * as fc from "fast-check";
import { expect, test } from "vitest";
import { compileCondition, type Condition } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import { EventFacts } from "./event-facts.ts";
import { RuleMatcher } from "./rule-matcher.ts";
import { requiredLiterals } from "../../model/required-literals.ts";
import { RulePatterns } from "./rule-patterns.ts";

// Texts, patterns and globs from a few common pieces, so that they often match and more often nearly match.

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
  const facts = new EventFacts();
  const patterns = new RulePatterns();
  const matcher = new RuleMatcher<string>(facts, patterns);
  matcher.add("rule", "any", condition, "rule");
  const holds = compileCondition(condition);
  for (const value of texts) {
    const event = { type: "t", source: "custom", raw: { value }, enrichment: {} } as unknown as Event;
    facts.setEvent(event);
    patterns.startEvent();
    expect(matcher.match().length > 0, `${JSON.stringify(condition)} on ${JSON.stringify(value)}`).toBe(holds(event));
  }
}

const texts = fc.array(text, { minLength: 1, maxLength: 8 });

test("a guard never hides a matching pattern", () => {
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

test("a guard never hides a matching glob", () => {
  fc.assert(
    fc.property(glob, texts, fc.boolean(), (value, list, ignoreCase) => {
      expectSame({ kind: "test", field: "raw.value", operator: "glob", value, ignoreCase }, list);
    }),
    { numRuns: 400 },
  );
});

test("a guard never hides a prefix, suffix or substring", () => {
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
])("the required literals of %s", (source, expected) => {
  expect(requiredLiterals(source, true)).toEqual(expected);
});
