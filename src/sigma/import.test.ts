import { describe, expect, test } from "vitest";
import type { JsonObject } from "../model/event.ts";
import { importOne, importText, matches, withDetection } from "./testing/imported.ts";

/** Lines of `selection`, an event that must match, and one that must not. */
const LINES: readonly (readonly [selection: string, found: JsonObject, passedOver: JsonObject])[] = [
  ["Image: C:\\Tool.exe", { Image: "c:\\tool.EXE" }, { Image: "c:\\tool.exe.bak" }],
  ["Image|cased: Tool", { Image: "Tool" }, { Image: "tool" }],
  ["Image: [a, b]", { Image: "B" }, { Image: "ab" }],
  ["Image|contains: 'mid'", { Image: "a MID b" }, { Image: "m id" }],
  ["Image|contains|cased: 'mid'", { Image: "a mid b" }, { Image: "a MID b" }],
  ["Image|startswith: 'C:\\'", { Image: "c:\\x" }, { Image: "d:\\c:\\" }],
  ["Image|endswith: ['\\a.exe', '\\b.exe']", { Image: "x\\B.exe" }, { Image: "xb.exe" }],
  ["CommandLine|contains|all: [one, two]", { CommandLine: "two ONE" }, { CommandLine: "one" }],
  ["Image: '*\\tool.exe'", { Image: "C:\\tool.exe" }, { Image: "C:\\tool.exe2" }],
  ["Image: 'tool*'", { Image: "TOOLBOX" }, { Image: "a tool" }],
  ["Image: 'to?l'", { Image: "toil" }, { Image: "tol" }],
  ["Image: 'a*b?c'", { Image: "a-long-bxc" }, { Image: "abc" }],
  ["Image|contains: 'a*b'", { Image: "..a..b.." }, { Image: "b a" }],
  ["Image: 'a\\*b'", { Image: "a*b" }, { Image: "axb" }],
  ["Image: 'a\\?b'", { Image: "a?b" }, { Image: "axb" }],
  ["Image: 'a\\\\*'", { Image: "a\\b" }, { Image: "a*" }],
  ["Image: '\\\\\\\\host\\share'", { Image: "\\\\host\\share" }, { Image: "\\host\\share" }],
  ["Image: '*'", { Image: "anything" }, { Other: "anything" }],
  ["Image: ''", { Image: "" }, { Image: "x" }],
  ["Image: null", { Other: "x" }, { Image: "x" }],
  ["Image: [null, x]", {}, { Image: "y" }],
  ["EventID: 4624", { EventID: 4624 }, { EventID: 4625 }],
  ["EventID: 4624", { EventID: "4624" }, { EventID: "46240" }],
  ["EventID: '4624'", { EventID: 4624 }, { EventID: 4625 }],
  ["Initiated: 'true'", { Initiated: true }, { Initiated: false }],
  ["Initiated: true", { Initiated: "True" }, { Initiated: "no" }],
  ["Initiated: 'True'", { Initiated: true }, { Initiated: false }],
  ["Initiated: FALSE", { Initiated: false }, { Initiated: true }],
  ["Initiated|cased: 'True'", { Initiated: "True" }, { Initiated: true }],
  ["Score: '1.5'", { Score: 1.5 }, { Score: 1.25 }],
  ["Score: 1.5", { Score: "1.5" }, { Score: 15 }],
  ["Score: '-0.25'", { Score: -0.25 }, { Score: 0.25 }],
  ["Number: '9007199254740993'", { Number: "9007199254740993" }, { Number: 9007199254740992n }],
  ["Number: '9007199254740993'", { Number: 9007199254740993n }, { Number: 9007199254740994n }],
  ["Number: 9007199254740993", { Number: 9007199254740993n }, { Number: 9007199254740992n }],
  ["Number: [1, -9007199254740993]", { Number: -9007199254740993n }, { Number: 9007199254740993n }],
  ["Number: 0x8010000000000000", { Number: "9227875636482146304" }, { Number: 9227875636482146305n }],
  ["Number|gt: '9007199254740993'", { Number: 9007199254740994n }, { Number: 9007199254740993n }],
  ["Number|lte: 9007199254740993", { Number: 5 }, { Number: 9007199254740994n }],
  ["Image|exists: true", { Image: "" }, { Image: null }],
  ["Image|exists: false", { Image: null }, { Image: "" }],
  ["Image|neq: x", { Image: "y" }, { Image: "X" }],
  ["CommandLine|re: 'a{3}\\d+'", { CommandLine: "xaaa12" }, { CommandLine: "xAAA12" }],
  ["CommandLine|re|i: 'a{3}'", { CommandLine: "AAA" }, { CommandLine: "AA" }],
  ["CommandLine|re|s: 'a.b'", { CommandLine: "a\nb" }, { CommandLine: "ab" }],
  ["CommandLine|re|m: '^b$'", { CommandLine: "a\nb\nc" }, { CommandLine: "a b c" }],
  ["CommandLine|re: ['^a', 'z$']", { CommandLine: "..z" }, { CommandLine: "za" }],
  ["CommandLine|re: 'a\\sb'", { CommandLine: "a\vb" }, { CommandLine: "a.b" }],
  ["CommandLine|re: 'a[\\s,]b'", { CommandLine: "a\vb" }, { CommandLine: "a\\sb" }],
  ["CommandLine|re: 'a[^\\s]b'", { CommandLine: "a.b" }, { CommandLine: "a\vb" }],
  ["CommandLine|re: 'a\\Sb'", { CommandLine: "aéb" }, { CommandLine: "a\vb" }],
  ["CommandLine|re: 'a[\\S]b'", { CommandLine: "a\u{1F600}b" }, { CommandLine: "a\vb" }],
  ["CommandLine|re: 'a[]\\s]b'", { CommandLine: "a]b" }, { CommandLine: "asb" }],
  ["CommandLine|re: 'a[[:digit:]\\s]b'", { CommandLine: "a\vb" }, { CommandLine: "a:b" }],
  ["CommandLine|re: 'a\\\\sb'", { CommandLine: "a\\sb" }, { CommandLine: "a b" }],
  ["CommandLine|re: '\\Qa\\s\\E\\s'", { CommandLine: "a\\s\v" }, { CommandLine: "a \v" }],
  ["CommandLine|re: '^a\\vb$'", { CommandLine: "a\u2028b" }, { CommandLine: "a b" }],
  ["CommandLine|re: 'b$'", { CommandLine: "ab\n" }, { CommandLine: "b\nc" }],
  ["CommandLine|re: '[$]b'", { CommandLine: "$b" }, { CommandLine: "\nb" }],
  ["CommandLine|re: '\\$b'", { CommandLine: "$b" }, { CommandLine: "b" }],
  ["DestinationIp|cidr: 10.0.0.0/8", { DestinationIp: "10.9.8.7" }, { DestinationIp: "11.0.0.1" }],
  ["DestinationIp|cidr: [10.0.0.0/8, 'fe80::/10']", { DestinationIp: "fe80::1" }, { DestinationIp: "2001:db8::1" }],
  ["Size|gt: 10", { Size: 11 }, { Size: 10 }],
  ["Size|gte: 10", { Size: 10 }, { Size: 9 }],
  ["Size|lt: 10", { Size: 9 }, { Size: 10 }],
  ["Size|lte: '10'", { Size: 10 }, { Size: 11 }],
  ["UtcTime|minute: 5", { UtcTime: "2026-11-13 23:05:00.123" }, { UtcTime: "2026-11-13 23:06:00.123" }],
  ["UtcTime|hour: [22, 23]", { UtcTime: "2026-11-13T23:05:00Z" }, { UtcTime: "2026-11-13T23:05:00+02:00" }],
  ["UtcTime|hour|gte: 22", { UtcTime: "2026-11-13T22:00:00Z" }, { UtcTime: "2026-11-13T21:59:59Z" }],
  ["UtcTime|hour|lt: '6'", { UtcTime: "2026-11-13T05:59:59Z" }, { UtcTime: "2026-11-13T06:00:00Z" }],
  ["UtcTime|gt|hour: 21.5", { UtcTime: "2026-11-13T22:00:00Z" }, { UtcTime: "2026-11-13T21:59:59Z" }],
  ["UtcTime|hour|neq: 3", { UtcTime: "2026-11-13T04:00:00Z" }, { UtcTime: "2026-11-13T03:59:59Z" }],
  ["UtcTime|day: 31", { UtcTime: "2026-12-31" }, { UtcTime: "2026-12-30" }],
  ["UtcTime|week: 53", { UtcTime: "2027-01-01" }, { UtcTime: "2027-01-04" }],
  ["UtcTime|month|lte: 2", { UtcTime: "2026-02-28" }, { UtcTime: "2026-03-01" }],
  ["UtcTime|year|gt: 2025", { UtcTime: "2026-01-01" }, { UtcTime: "2025-12-31" }],
  ["UtcTime|year: 2026", { UtcTime: "2026-01-01" }, { UtcTime: 2026 }],
  ["User|fieldref: Target", { User: "Ann", Target: "ann" }, { User: "Ann", Target: "Bob" }],
  ["Path|fieldref|startswith: Home", { Path: "/home/a/x", Home: "/HOME/a" }, { Path: "/x", Home: "/home" }],
  ["Path|fieldref|endswith: File", { Path: "/a/x.txt", File: "x.txt" }, { Path: "/a/x.txt2", File: "x.txt" }],
  ["Path|fieldref|contains: Word", { Path: "/a/word/b", Word: "word" }, { Path: "/a", Word: "word" }],
  ["CommandLine|base64: 'foobar'", { CommandLine: "Zm9vYmFy" }, { CommandLine: "xZm9vYmFy" }],
  ["CommandLine|base64|contains: 'foobar'", { CommandLine: "-enc Zm9vYmFy" }, { CommandLine: "foobar" }],
  [
    "CommandLine|base64offset|contains: 'secret'",
    { CommandLine: Buffer.from("a secret b").toString("base64") },
    { CommandLine: Buffer.from("a sekret b").toString("base64") },
  ],
  [
    "CommandLine|base64offset|contains: 'secret'",
    { CommandLine: Buffer.from("ab secret b").toString("base64") },
    { CommandLine: "secret" },
  ],
  [
    "CommandLine|wide|base64offset|contains: 'http'",
    { CommandLine: Buffer.from("get http://x", "utf16le").toString("base64") },
    { CommandLine: Buffer.from("get http://x").toString("base64") },
  ],
  [
    "CommandLine|utf16be|base64offset|contains: 'http'",
    { CommandLine: Buffer.from("get http://x", "utf16le").swap16().toString("base64") },
    { CommandLine: Buffer.from("http://x", "utf16le").toString("base64") },
  ],
  [
    "CommandLine|utf16|base64|startswith: 'hi!'",
    { CommandLine: Buffer.from("\ufeffhi!", "utf16le").toString("base64") },
    { CommandLine: Buffer.from("hi!", "utf16le").toString("base64") },
  ],
  ["CommandLine|windash|contains: ' -f '", { CommandLine: "tool /f x" }, { CommandLine: "tool f x" }],
  ["CommandLine|windash|contains: ' -f '", { CommandLine: "tool \u2013f x" }, { CommandLine: "tool -g x" }],
  ["CommandLine|windash|contains: 'a-b'", { CommandLine: "a-b" }, { CommandLine: "a/b" }],
  ["CommandLine|contains|all|windash: [' -a', ' -b']", { CommandLine: "x /a -b" }, { CommandLine: "x /a" }],
  ["args: x", { args: ["y", "X"] }, { args: ["y"] }],
  ["user.name: ann", { user: { name: "Ann" } }, { user: { name: "Bob" } }],
];

describe("a line of a selection", () => {
  test.each(LINES)("%s", (selection, found, passedOver) => {
    const outcome = importOne(withDetection(`selection:\n  ${selection}\ncondition: selection`));
    expect(matches(outcome, found)).toBe(true);
    expect(matches(outcome, passedOver)).toBe(false);
  });

  test("a list beyond the limit of one test becomes several tests", () => {
    const values = Array.from({ length: 2500 }, (_, i) => `value-${i}`).join(", ");
    const outcome = importOne(withDetection(`selection:\n  Image|contains: [${values}]\ncondition: selection`));
    expect(matches(outcome, { Image: "a value-2499 b" })).toBe(true);
    expect(matches(outcome, { Image: "nothing" })).toBe(false);
  });
});

/** Selections a, b, c hold when the field of that name is 1. */
const ABC = "sel_a: { a: 1 }\nsel_b: { b: 1 }\nc: { c: 1 }\n_hidden: { hidden: 1 }\n";

const CONDITIONS: readonly (readonly [condition: string, found: string, passedOver: string])[] = [
  ["sel_a and sel_b", "a b", "a"],
  ["sel_a or sel_b", "b", "c"],
  ["not sel_a", "b", "a"],
  ["not not sel_a", "a", "b"],
  ["sel_a and not (sel_b or c)", "a", "a c"],
  ["sel_a or sel_b and c", "a", "b"],
  ["(sel_a or sel_b) and c", "b c", "a b"],
  ["1 of sel_*", "b", "c"],
  ["any of sel_*", "b", "c"],
  ["all of sel_*", "a b", "a c"],
  ["1 of them", "c", "hidden"],
  ["all of them", "a b c", "a b"],
  ["c and not 1 of sel_*", "c", "a c"],
  ["NOT sel_a AND c", "c", "a c"],
];

describe("a condition", () => {
  const rawOf = (names: string) => Object.fromEntries(names.split(" ").map((name) => [name, 1]));

  test.each(CONDITIONS)("%s", (condition, found, passedOver) => {
    const outcome = importOne(withDetection(`${ABC}condition: ${condition}`));
    expect(matches(outcome, rawOf(found))).toBe(true);
    expect(matches(outcome, rawOf(passedOver))).toBe(false);
  });

  test("any of several conditions must hold", () => {
    const outcome = importOne(withDetection(`${ABC}condition: [sel_a, sel_b and c]`));
    expect(["a", "b c", "b"].map((names) => matches(outcome, rawOf(names)))).toEqual([true, true, false]);
  });

  test("any map of a list must hold, and all lines of a map", () => {
    const outcome = importOne(withDetection("s:\n  - { a: 1, b: 1 }\n  - c: 1\ncondition: s"));
    expect(["a b", "c", "a"].map((names) => matches(outcome, rawOf(names)))).toEqual([true, true, false]);
  });

  test("a keyword matches in any field", () => {
    const outcome = importOne(withDetection("k: [Mimi, 'kat*z']\ncondition: k"));
    expect(matches(outcome, { deep: { inside: ["some mimi here"] } })).toBe(true);
    expect(matches(outcome, { x: "KATTTZ" })).toBe(true);
    expect(matches(outcome, { x: "kat", y: "z" })).toBe(false);
    const both = importOne(withDetection("k:\n  '|all': [one, two]\ncondition: k"));
    expect(matches(both, { a: "one", b: "TWO" })).toBe(true);
    expect(matches(both, { a: "one" })).toBe(false);
  });

  test.each(["4625", "'4625'", "[nothing, 4625]"])(
    "the keyword %s matches part of a text or a whole number",
    (keyword) => {
      const outcome = importOne(withDetection(`k: ${keyword}\ncondition: k`));
      expect(matches(outcome, { deep: [{ id: 4625 }] })).toBe(true);
      expect(matches(outcome, { x: "event 4625 of today" })).toBe(true);
      expect(matches(outcome, { id: 46250 })).toBe(false);
    },
  );

  test("a keyword beyond 2^53 matches exactly", () => {
    const outcome = importOne(withDetection("k: [9007199254740993]\ncondition: k"));
    expect(matches(outcome, { deep: [{ id: 9007199254740993n }] })).toBe(true);
    expect(matches(outcome, { deep: [{ id: 9007199254740992n }] })).toBe(false);
  });

  test("redundant nesting is removed", () => {
    const outcome = importOne(withDetection(`${ABC}condition: ((((((((((sel_a))) and ((sel_b)))) and c)))))`));
    expect(outcome.rule!.conditions).toEqual([
      { field: "type", equals: "process_creation" },
      { field: "raw.a", in: [1, "1"] },
      { field: "raw.b", in: [1, "1"] },
      { field: "raw.c", in: [1, "1"] },
      { not: { any: expect.any(Array) } },
    ]);
  });
});

const REFUSED: readonly (readonly [detection: string, place: string, message: RegExp])[] = [
  ["s: { a|reverse: 1 }\ncondition: s", "detection.s.a|reverse", /unknown modifier reverse/],
  ["s: { a|re: '(?<=x)y' }\ncondition: s", "detection.s.a|re", /^RE2 has no look-behind.*: `\(\?<=x\)y`$/],
  ["s: { a|cidr: 10.0.0.0/99 }\ncondition: s", "detection.s.a|cidr", /network/],
  ["s: { a|expand: '%admins%' }\ncondition: s", "detection.s.a|expand", /%admins%.*mapping/],
  ["s: { a|hour: 24 }\ncondition: s", "detection.s.a|hour", /no hour is equal to 24/],
  ["s: { a|hour|gt: 23 }\ncondition: s", "detection.s.a|hour|gt", /no hour is gt 23/],
  ["s: { a|hour: night }\ncondition: s", "detection.s.a|hour", /hour takes a number/],
  ["s: { a|hour|contains: 3 }\ncondition: s", "detection.s.a|hour|contains", /hour and contains cannot/],
  ["s: { a|hour|day: 3 }\ncondition: s", "detection.s.a|hour|day", /hour and day cannot/],
  ["s: { '|hour': [3] }\ncondition: s", "detection.s.|hour", /hour requires a field/],
  ["s: { a|gt: many }\ncondition: s", "detection.s.a|gt", /number/],
  ["s: { a|exists: maybe }\ncondition: s", "detection.s.a|exists", /true or false/],
  ["s: { a|contains: null }\ncondition: s", "detection.s.a|contains", /null/],
  [
    "s: { a|contains|startswith: x }\ncondition: s",
    "detection.s.a|contains|startswith",
    /contains and startswith cannot be combined/,
  ],
  ["s: { a|base64: 'x*' }\ncondition: s", "detection.s.a|base64", /encoded/],
  ["s: { a: { b: 1 } }\ncondition: s", "detection.s.a", /value or a list/],
  ["s: { a..b: 1 }\ncondition: s", "detection.s.a..b", /not a field/],
  ["s: { a: [] }\ncondition: s", "detection.s.a", /no value/],
  ["s: { a: 1 }\ncondition: t", "detection.condition", /no selection t/],
  ["s: { a: 1 }\ncondition: 1 of t*", "detection.condition", /no selection matches t\*/],
  ["s: { a: 1 }\ncondition: s and", "detection.condition", /ends where/],
  ["s: { a: 1 }\ncondition: (s", "detection.condition", /not closed/],
  ["s: { a: 1 }\ncondition: s s", "detection.condition", /unexpected "s"/],
  ["s: { a: 1 }\ncondition: 2 of s*", "detection.condition", /"2 of" is not supported; use 1 of, any of or all of/],
  ["s: { a: 1 }\ncondition: s and some of them", "detection.condition", /"some of" is not supported/],
  ["s: { a: 1 }", "detection.condition", /required/],
  ["s: { a: 1 }\ncondition: []", "detection.condition", /empty/],
  ["s: { a: 1 }\ncondition: s | near t", "detection.condition", /aggregation "near t" is not supported/],
  ["s: { a: 1 }\ncondition: s | count() > 3", "detection.timeframe", /required/],
  ["s: { a: 1 }\ntimeframe: 5m\ncondition: s | count() < 1", "detection.condition", /leaves no possible count/],
];

describe("an unsupported rule is refused with the path of the fault", () => {
  test.each(REFUSED)("%j", (detection, place, message) => {
    const outcome = importOne(withDetection(detection));
    expect(outcome).toMatchObject({ kind: "refused", rule: null, title: "A rule", file: "rules.yml", line: 1 });
    expect(outcome.reasons).toContainEqual({ place, message: expect.stringMatching(message) });
  });

  test.each(["s and", "t", "1 of t*", "[]", "5", "[s, (]"])(
    "a faulty condition (%s) does not hide faults of the selections",
    (condition) => {
      const outcome = importOne(
        withDetection(`s: { a|reverse: 1 }\nfilter: [{ b|cidr: 10.0.0.0/99 }]\ncondition: ${condition}`),
      );
      expect(outcome.reasons.map(({ place }) => place)).toEqual(
        expect.arrayContaining(["detection.s.a|reverse", "detection.filter[0].b|cidr"]),
      );
      expect(outcome.reasons.some(({ place }) => place.startsWith("detection.condition"))).toBe(true);
      expect(new Set(outcome.reasons.map((reason) => JSON.stringify(reason))).size).toBe(outcome.reasons.length);
    },
  );

  test("a document with invalid YAML does not affect the others", () => {
    const good = withDetection("s: { a: 1 }\ncondition: s");
    const outcomes = importText(
      `${good}\n---\ntitle: [unclosed\n---\ntitle: No detection\n---\n- a list\n---\n${good}`,
    );
    expect(outcomes.map(({ kind }) => kind)).toEqual(["taken", "refused", "refused", "refused", "taken"]);
    expect(outcomes[1]!.line).toBeGreaterThan(6);
    expect(outcomes[2]!.reasons).toContainEqual({ place: "detection", message: "is required" });
    expect(outcomes[4]!.rule!.name).not.toBe(outcomes[0]!.rule!.name);
  });

  const RULE = "title: A\nlogsource: { category: c }\ndetection: { s: { a: 1 }, condition: s }\n";
  test.each([
    [RULE.replace("title: A\n", ""), "title", "is required"],
    [RULE.replace("title: A", "title: [A]"), "title", "takes a text"],
    [`${RULE}tags: {}`, "tags", "takes a text or a list of texts"],
    [`${RULE}author: { name: Ann }`, "author", "takes a text or a list of texts"],
    [RULE.replace("category: c", "category: [c]"), "logsource.category", "takes a text"],
    ["title: A\ncorrelation: { type: event_count, rules: {} }", "correlation.rules", "takes a name or a list of names"],
  ])("%j is refused with a readable message", (text, place, message) => {
    expect(importOne(text).reasons).toEqual([{ place, message }]);
  });

  test("a timeframe without an aggregation is dropped with a remark", () => {
    const { kind, remarks } = importOne(`${UNREMARKED}detection: { s: { a: 1 }, timeframe: 5m, condition: s }`);
    expect(kind).toBe("taken");
    expect(remarks).toEqual([
      { place: "detection.timeframe", message: expect.stringMatching(/without an aggregation/) },
    ]);
  });

  test("nesting beyond the limit of conditions is refused", () => {
    const nested = Array.from({ length: 12 }, (_, i) => (i % 2 ? "a and (" : "a or (")).join("") + "b" + ")".repeat(12);
    const outcome = importOne(withDetection(`a: { a: 1 }\nb: { b: 1 }\ncondition: ${nested}`));
    expect(outcome.reasons[0]).toEqual({
      place: `conditions[1]${".any[1].all[1]".repeat(4)}`,
      message: "nested deeper than 8",
    });
  });
});

describe("metadata of a rule is kept", () => {
  test("title, level, tags, references, false positives, author, status, id", () => {
    const { rule, remarks } = importOne(`
title: Odd Tool, Run Twice!
id: 6f0fb6a5-0000-4000-8000-000000000001
status: test
description: Finds the odd tool.
author: Ann Example
references: [https://example.com/odd]
tags: [attack.execution, attack.T1059.001]
falsepositives: [Administrators who test, Unknown]
level: informational
logsource: { category: process_creation }
detection: { s: { a: 1 }, condition: s }`);
    expect(remarks).toEqual([]);
    expect(rule).toMatchObject({
      name: "sigma.odd_tool_run_twice",
      title: "Odd Tool, Run Twice!",
      severity: "info",
      enabled: true,
      tags: ["attack.execution", "attack.t1059.001"],
      references: ["https://example.com/odd"],
      description: expect.stringMatching(
        /^Finds the odd tool\.\n\nKnown false positives: Administrators who test\.\n\n.*6f0fb6a5.*Ann Example.*test/,
      ),
    });
  });

  test("a title in any script gives a distinct rule name", () => {
    const nameOf = (title: string, id = "") =>
      importOne(withDetection("s: { a: 1 }\ncondition: s").replace("title: A rule", `title: ${title}${id}`)).rule!.name;
    expect(nameOf("Über Größe, naïve Łódź")).toBe("sigma.uber_grosse_naive_lodz");
    expect(nameOf("日本語の規則", "\nid: 6f0fb6a5-0000-4000-8000-000000000001")).toBe("sigma.rule_6f0fb6a5");
    const names = ["日本語の規則", "中文规则", "日本語の規則"].map((title) => nameOf(title));
    expect(names[0]).toMatch(/^sigma\.rule_[0-9a-f]{8}$/);
    expect([names[1] === names[0], names[2] === names[0]]).toEqual([false, true]);
  });

  test("an unknown level becomes medium and a deprecated rule is imported disabled, each with a remark", () => {
    const text = withDetection("s: { a: 1 }\ncondition: s").replace("level: high", "level: odd\nstatus: deprecated");
    const { rule, remarks } = importOne(text);
    expect(rule).toMatchObject({ severity: "medium", enabled: false });
    expect(remarks.map(({ place }) => place)).toEqual(["level", "status"]);
  });

  test("several authors become one line", () => {
    const text = `${withDetection("s: { a: 1 }\ncondition: s")}\nauthor: [Ann, Ben]`;
    expect(importOne(text).rule!.description).toContain("by Ann, Ben.");
  });

  test("a document shared by the others (action: global), and one that modifies the previous one (action: repeat)", () => {
    const outcomes = importText(`
action: global
title: Shared
level: low
logsource: { category: dns }
---
detection: { s: { a: 1 }, condition: s }
---
action: repeat
title: Changed
---
action: reset
---
title: Alone`);
    expect(outcomes.map(({ kind, title }) => [kind, title])).toEqual([
      ["taken", "Shared"],
      ["taken", "Changed"],
      ["refused", "Alone"],
    ]);
    expect(outcomes[1]!.rule!.severity).toBe("low");
  });
});

const UNREMARKED = "title: A\nlevel: low\nlogsource: { category: c }\n";

describe("a meaning that differs from Sigma's", () => {
  test.each([
    ["Image|exists: true", /^treats a field that is null or an empty list as missing/],
    ["Image|exists: false", /^treats a field that is null or an empty list as missing/],
    ["Image|fieldref: Other", /1 does not equal "1"$/],
    ["Image|fieldref|startswith: Other", /1 does not equal "1"$/],
  ])("%s is imported with a remark", (selection, message) => {
    const { kind, remarks } = importOne(`${UNREMARKED}detection: { s: { ${selection} }, condition: s }`);
    expect(kind).toBe("taken");
    expect(remarks).toEqual([
      { place: `detection.s.${selection.split(": ", 1)[0]}`, message: expect.stringMatching(message) },
    ]);
  });
});

describe("a test of text on a field that holds numbers", () => {
  test.each(["EventID|startswith: 46", "EventID: '46*'", "winlog.event_id|re: '^46'", "DestinationPort|contains: 44"])(
    "%s is accepted with a remark about what it does not match",
    (selection) => {
      const { kind, remarks } = importOne(`${UNREMARKED}detection: { s: { ${selection} }, condition: s }`);
      expect(kind).toBe("taken");
      const message = expect.stringMatching(/does not match if .* is a number/);
      expect(remarks).toEqual([{ place: `detection.s.${selection.split(": ", 1)[0]}`, message }]);
    },
  );

  test.each([
    "EventID: 46",
    "EventID: [1, '2']",
    "EventID: '*'",
    "CommandLine|contains: 44",
    "DestinationPort|gt: 1000",
  ])("%s needs no remark", (selection) => {
    expect(importOne(`${UNREMARKED}detection: { s: { ${selection} }, condition: s }`).remarks).toEqual([]);
  });
});
