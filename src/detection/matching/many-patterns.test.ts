import { beforeEach, describe, expect, test } from "vitest";
import { idMaker } from "../../lib/id.ts";
import type { Event } from "../../model/event.ts";
import { plainRule } from "../../model/rule.fixture.ts";
import type { Rule } from "../../model/rule.ts";
import { DetectionEngine } from "../detection-engine.ts";

// Matching patterns are found regardless of the number of patterns and the length of values.

const KILOBYTES = [4, 8, 16, 32, 60];

const nextId = idMaker("evt_", () => Date.UTC(2026, 10, 15));
const [FIRST, SECOND] = [nextId(), nextId()];

let engine: DetectionEngine;
beforeEach(() => {
  engine = new DetectionEngine({ now: () => 0 });
});

function eventOf(raw: Event["raw"], id = FIRST): Event {
  return {
    id,
    type: "process_creation",
    source: "custom",
    class: "security",
    severity: "low",
    timestamp: "2026-11-15T12:00:00.000Z",
    raw,
    enrichment: {},
  };
}

function setPatterns(patterns: readonly string[]): void {
  for (const [i, regex] of patterns.entries()) {
    engine.setRule(plainRule({ id: `rule_${i}`, conditions: [{ field: "raw.command", regex }] }));
  }
}

/** The numbers of the rules that match. */
function matching(...events: Event[]): number[] {
  return engine
    .process(events)
    .matches.map(({ ruleId }) => Number(ruleId.slice("rule_".length)))
    .sort((a, b) => a - b);
}

/** A padded command line of this length with these words at the end. */
function padded(characters: number, words: string): string {
  const filler = "cmd.exe /c set X=0123456789 && echo aaaa bbbb cccc dddd && ";
  return filler.repeat(Math.ceil(characters / filler.length)).slice(0, characters - words.length) + words;
}

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

describe.each([200, 1000])("of %i rules with a pattern on one field, 20 match and are found in 4 to 60 kB", (rules) => {
  const expected = range(rules).filter((i) => i % (rules / 20) === 0);
  const marks = expected.map((i) => `mark${i}z`).join(" ");

  const expectFound = (textOf: (characters: number) => string) => {
    for (const kilobytes of KILOBYTES) {
      const text = textOf(kilobytes * 1024);
      expect(text).toHaveLength(kilobytes * 1024);
      expect(matching(eventOf({ command: text })), `${kilobytes} kB`).toEqual(expected);
    }
    expect(engine.metrics()["patterns_skipped"]).toBe(0);
  };

  test("if patterns have no literal", () => {
    setPatterns(range(rules).map((i) => `[mn][ae][r-t][j-l]${[...`${i}`].map((digit) => `[${digit}x]`).join("")}[yz]`));
    expectFound((characters) => padded(characters, ` ${marks}`));
  });

  test("if the literals of all patterns occur", () => {
    setPatterns(range(rules).map((i) => `cmd\\.exe.*echo\\s+.*mark${i}z`));
    expectFound((characters) => padded(characters, ` ${marks}`));
  });

  test("if patterns have alternatives", () => {
    setPatterns(range(rules).map((i) => `(?i)(?:cmd|powershell)(?:\\.exe)? .*\\b(?:MARK${i}Z|never${i})\\b`));
    expectFound((characters) => padded(characters, ` ${marks}`));
  });

  test("if characters lead to ever new states", () => {
    setPatterns(range(rules).map((i) => `a[ab]{${6 + (i % 8)}}[c-e]${i}[^0-9]`));
    const hits = expected.map((i) => `a${"b".repeat(6 + (i % 8))}d${i}-`).join("");
    expectFound((characters) => letters("ab", characters - hits.length) + hits);
  });
});

/** Deterministic pseudo-random characters. */
function letters(alphabet: string, count: number): string {
  let seed = 1;
  return Array.from({ length: count }, () => alphabet[(seed = (seed * 48_271) % 2_147_483_647) % alphabet.length]).join(
    "",
  );
}

describe("a long value does not hide", () => {
  const command = (part: string) => ({ field: "raw.command", regex: part });
  const rule = (...conditions: Rule["conditions"]) => engine.setRule(plainRule({ id: "rule_0", conditions }));
  const million = "x".repeat(1_000_000);

  test.each(["powershell.*-enc", "-enc [a-z]+$", "^powershell"])("its start and end from %s", (regex) => {
    rule(command(regex));
    expect(matching(eventOf({ command: `powershell ${million} -enc abc` }))).toEqual([0]);
  });

  test("a short value in another field", () => {
    for (const i of range(40)) {
      const conditions = [{ field: "raw.command", regex: `a.{${900 + i}}b{600}x$` }];
      engine.setRule(plainRule({ id: `rule_${i + 1}`, conditions }));
    }
    rule({ field: "raw.note", regex: "^h[ae]llo [0-9]+$" });
    const { matches, undecided } = engine.process([eventOf({ command: letters("ab", 60_000), note: "hello 7" })]);
    expect(matches.map(({ ruleId }) => ruleId)).toEqual(["rule_0"]);
    expect(undecided).toHaveLength(40);
  });
});

describe("a rule is undecided", () => {
  const wide = { field: "raw.command", regex: "a.{900}b{600}x$" };
  const text = letters("ab", 60_000);
  const undecidedOf = (rule: Partial<Rule>, raw: Event["raw"], type = "process_creation") => {
    engine.setRule(plainRule({ id: "rule_0", name: "site.rule", ...rule }));
    const { matches, undecided } = engine.process([
      { ...eventOf(raw), type },
      { ...eventOf(raw, SECOND), type },
    ]);
    return { matches: matches.length, undecided };
  };
  const UNDECIDED = [{ ruleId: "rule_0", ruleName: "site.rule", reason: "patterns", eventId: FIRST, events: 2 }];

  test("if a pattern was aborted and all other conditions hold", () => {
    const conditions = [wide, { field: "raw.user", equals: "ann" }];
    expect(undecidedOf({ conditions }, { command: text, user: "ann" })).toEqual({ matches: 0, undecided: UNDECIDED });
    expect(undecidedOf({ conditions }, { command: text, user: "ben" })).toEqual({ matches: 0, undecided: [] });
    expect(undecidedOf({ conditions: conditions.toReversed() }, { command: text, user: "ben" }).undecided).toEqual([]);
  });

  test("also if the pattern is negated", () => {
    const conditions = [{ not: wide }];
    expect(undecidedOf({ conditions }, { command: text })).toEqual({ matches: 0, undecided: UNDECIDED });
    expect(undecidedOf({ conditions }, { command: "ab" })).toEqual({ matches: 1, undecided: [] });
  });

  test("but not if it matches or fails regardless of the pattern", () => {
    const any = [{ any: [wide, { field: "raw.user", equals: "ann" }] }];
    expect(undecidedOf({ conditions: any }, { command: text, user: "ann" })).toEqual({ matches: 1, undecided: [] });
    const none = [{ not: { any: [wide, { field: "raw.user", equals: "ann" }] } }];
    expect(undecidedOf({ conditions: none }, { command: text, user: "ann" })).toEqual({ matches: 0, undecided: [] });
  });

  test("if the pattern of a sequence step was aborted", () => {
    const sequence = [
      { name: "long", count: 1, conditions: [wide], group_by: null },
      { name: "any", count: 1, conditions: [{ field: "raw.user", equals: "ann" }], group_by: null },
    ] as unknown as Rule["sequence"];
    expect(undecidedOf({ sequence, window: "5m" }, { command: text, user: "ann" }).undecided).toMatchObject(UNDECIDED);
    expect(undecidedOf({ sequence, window: "5m" }, { command: "ab", user: "ann" }).undecided).toEqual([]);
  });

  test("if a pattern sees only a part of a very long value with its literals", () => {
    const conditions = [{ field: "raw.command", regex: "mimi[ck]atz" }];
    const middle = (word: string) => ({ command: `${"x".repeat(90_000)}${word}${"x".repeat(90_000)}` });
    expect(undecidedOf({ conditions }, middle("mimikatz"))).toEqual({ matches: 0, undecided: UNDECIDED });
    expect(undecidedOf({ conditions }, middle("mimosa"))).toEqual({ matches: 0, undecided: [] });
    expect(undecidedOf({ conditions: [{ not: conditions[0]! }] }, middle("mimikatz"))).toEqual({
      matches: 1,
      undecided: [],
    });
  });

  test("if an event has more values than the limit", () => {
    const addresses = Array.from({ length: 20 }, (_, i) => `192.0.2.${i}`);
    const threshold = { window: "5m", threshold: { count: 5, group_by: "raw.src_ip" } };
    const values = [{ ...UNDECIDED[0], reason: "values" }];
    expect(undecidedOf(threshold, { src_ip: addresses }).undecided).toEqual(values);
    expect(undecidedOf(threshold, { src_ip: addresses.slice(0, 16) }).undecided).toEqual([]);
  });

  test("but not on excepted events or on its own reports", () => {
    const exception = { id: "exc_1", reason: "", author: "", createdAt: 0, expiresAt: null };
    const exceptions = [{ ...exception, conditions: [{ field: "raw.user", equals: "ann" }] }];
    const conditions = [wide];
    expect(undecidedOf({ conditions, exceptions }, { command: text, user: "ann" }).undecided).toEqual([]);
    expect(undecidedOf({ conditions, exceptions }, { command: text, user: "ben" }).undecided).toEqual(UNDECIDED);
    expect(undecidedOf({ conditions }, { command: text }, "detection_rule_undecided").undecided).toEqual([]);
  });
});
