import { describe, expect, test } from "vitest";
import { compileCondition } from "../model/condition.ts";
import { sourceNames, type Event, type JsonObject } from "../model/event.ts";
import { toConditions } from "../model/rule.ts";
import { importSigma, type SigmaOutcome } from "./import.ts";
import { parseMapping, type Mapping } from "./mapping.ts";

const sources = sourceNames("platform");

function importText(content: string, mapping?: string): SigmaOutcome[] {
  return importSigma([{ name: "rules.yml", content }], { sources, mapping: mapping ? mappingOf(mapping) : undefined });
}

function mappingOf(text: string): Mapping {
  const outcome = parseMapping(text);
  if ("faults" in outcome) throw new Error(JSON.stringify(outcome.faults));
  return outcome.mapping;
}

function importOne(content: string, mapping?: string): SigmaOutcome {
  const outcomes = importText(content, mapping);
  expect(outcomes).toHaveLength(1);
  return outcomes[0]!;
}

const HEAD = "title: A rule\nlevel: high\nlogsource: { category: process_creation, product: windows }\n";

const UNREMARKED = "title: A\nlevel: low\nlogsource: { category: c }\n";

/** The lines of a `detection`, in a rule that is otherwise complete. */
function withDetection(detection: string): string {
  return `${HEAD}detection:\n${detection
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n")}`;
}

function event(raw: JsonObject, type = "process_creation"): Event {
  return {
    id: "evt_1",
    type,
    source: "custom",
    class: "security",
    severity: "info",
    timestamp: "2026-11-15T10:00:00.000Z",
    raw,
    enrichment: {},
  };
}

function matches(outcome: SigmaOutcome, raw: JsonObject): boolean {
  expect(outcome.reasons).toEqual([]);
  return compileCondition(toConditions(outcome.rule!.conditions))(event(raw));
}

/** What stands under `selection`, an event that it must find, one that it must not. */
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
  ["Number: '9007199254740993'", { Number: "9007199254740993" }, { Number: 9007199254740992 }],
  ["Image|exists: true", { Image: "" }, { Image: null }],
  ["Image|exists: false", { Image: null }, { Image: "" }],
  ["Image|neq: x", { Image: "y" }, { Image: "X" }],
  ["CommandLine|re: 'a{3}\\d+'", { CommandLine: "xaaa12" }, { CommandLine: "xAAA12" }],
  ["CommandLine|re|i: 'a{3}'", { CommandLine: "AAA" }, { CommandLine: "AA" }],
  ["CommandLine|re|s: 'a.b'", { CommandLine: "a\nb" }, { CommandLine: "ab" }],
  ["CommandLine|re|m: '^b$'", { CommandLine: "a\nb\nc" }, { CommandLine: "a b c" }],
  ["CommandLine|re: ['^a', 'z$']", { CommandLine: "..z" }, { CommandLine: "za" }],
  ["DestinationIp|cidr: 10.0.0.0/8", { DestinationIp: "10.9.8.7" }, { DestinationIp: "11.0.0.1" }],
  ["DestinationIp|cidr: [10.0.0.0/8, 'fe80::/10']", { DestinationIp: "fe80::1" }, { DestinationIp: "2001:db8::1" }],
  ["Size|gt: 10", { Size: 11 }, { Size: 10 }],
  ["Size|gte: 10", { Size: 10 }, { Size: 9 }],
  ["Size|lt: 10", { Size: 9 }, { Size: 10 }],
  ["Size|lte: '10'", { Size: 10 }, { Size: 11 }],
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

  test("a list of more values than one test may have is several tests", () => {
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

  test("several conditions: any of them", () => {
    const outcome = importOne(withDetection(`${ABC}condition: [sel_a, sel_b and c]`));
    expect(["a", "b c", "b"].map((names) => matches(outcome, rawOf(names)))).toEqual([true, true, false]);
  });

  test("a list of maps: any of them; a map: all of its lines", () => {
    const outcome = importOne(withDetection("s:\n  - { a: 1, b: 1 }\n  - c: 1\ncondition: s"));
    expect(["a b", "c", "a"].map((names) => matches(outcome, rawOf(names)))).toEqual([true, true, false]);
  });

  test("keywords stand in any field", () => {
    const outcome = importOne(withDetection("k: [Mimi, 'kat*z']\ncondition: k"));
    expect(matches(outcome, { deep: { inside: ["some mimi here"] } })).toBe(true);
    expect(matches(outcome, { x: "KATTTZ" })).toBe(true);
    expect(matches(outcome, { x: "kat", y: "z" })).toBe(false);
    const both = importOne(withDetection("k:\n  '|all': [one, two]\ncondition: k"));
    expect(matches(both, { a: "one", b: "TWO" })).toBe(true);
    expect(matches(both, { a: "one" })).toBe(false);
  });

  test.each(["4625", "'4625'", "[nothing, 4625]"])("the keyword %s stands in a text, or is a number", (keyword) => {
    const outcome = importOne(withDetection(`k: ${keyword}\ncondition: k`));
    expect(matches(outcome, { deep: [{ id: 4625 }] })).toBe(true);
    expect(matches(outcome, { x: "event 4625 of today" })).toBe(true);
    expect(matches(outcome, { id: 46250 })).toBe(false);
  });

  test("nesting that says nothing more is not kept", () => {
    const outcome = importOne(withDetection(`${ABC}condition: ((((((((((sel_a))) and ((sel_b)))) and c)))))`));
    expect(outcome.rule!.conditions).toEqual([
      { field: "type", equals: "process_creation" },
      { field: "raw.a", in: [1, "1"] },
      { field: "raw.b", in: [1, "1"] },
      { field: "raw.c", in: [1, "1"] },
    ]);
  });
});

const REFUSED: readonly (readonly [detection: string, place: string, message: RegExp])[] = [
  ["s: { a|reverse: 1 }\ncondition: s", "detection.s.a|reverse", /no modifier reverse/],
  ["s: { a|re: '(?<=x)y' }\ncondition: s", "detection.s.a|re", /RE2/],
  ["s: { a|cidr: 10.0.0.0/99 }\ncondition: s", "detection.s.a|cidr", /network/],
  ["s: { a|expand: '%admins%' }\ncondition: s", "detection.s.a|expand", /%admins%.*mapping/],
  ["s: { a|hour: 3 }\ncondition: s", "detection.s.a|hour", /part of a time/],
  ["s: { a|gt: many }\ncondition: s", "detection.s.a|gt", /number/],
  ["s: { a|exists: maybe }\ncondition: s", "detection.s.a|exists", /true or false/],
  ["s: { a|contains: null }\ncondition: s", "detection.s.a|contains", /null/],
  ["s: { a|contains|startswith: x }\ncondition: s", "detection.s.a|contains|startswith", /together/],
  ["s: { a|base64: 'x*' }\ncondition: s", "detection.s.a|base64", /encoded/],
  ["s: { a: { b: 1 } }\ncondition: s", "detection.s.a", /value or a list/],
  ["s: { a..b: 1 }\ncondition: s", "detection.s.a..b", /not a field/],
  ["s: { a: [] }\ncondition: s", "detection.s.a", /no value/],
  ["s: { a: 1 }\ncondition: t", "detection.condition", /no selection t/],
  ["s: { a: 1 }\ncondition: 1 of t*", "detection.condition", /no selection is called t\*/],
  ["s: { a: 1 }\ncondition: s and", "detection.condition", /ends where/],
  ["s: { a: 1 }\ncondition: (s", "detection.condition", /not closed/],
  ["s: { a: 1 }\ncondition: s s", "detection.condition", /not expected/],
  ["s: { a: 1 }\ncondition: 2 of s*", "detection.condition", /"2 of" is not taken: only 1 of, any of and all of/],
  ["s: { a: 1 }\ncondition: s and some of them", "detection.condition", /"some of" is not taken/],
  ["s: { a: 9007199254740993 }\ncondition: s", "detection.s.a", /^9007199254740993 is larger.*quotes/],
  ["s: { a: [1, -9007199254740993] }\ncondition: s", "detection.s.a", /^-9007199254740993 is larger/],
  ["s: { a: 0x8010000000000000 }\ncondition: s", "detection.s.a", /^9227875636482146304 is larger/],
  ["s: [9007199254740993]\ncondition: s", "detection.s", /larger/],
  ["s: { a|gt: '9007199254740993' }\ncondition: s", "detection.s.a|gt", /^9007199254740993 is larger/],
  ["s: { a: 1 }", "detection.condition", /required/],
  ["s: { a: 1 }\ncondition: []", "detection.condition", /empty/],
  ["s: { a: 1 }\ncondition: s | near t", "detection.condition", /aggregation "near t" is not taken/],
  ["s: { a: 1 }\ncondition: s | count() > 3", "detection.timeframe", /required/],
  ["s: { a: 1 }\ntimeframe: 5m\ncondition: s | count() < 3", "detection.condition", /an upper bound cannot/],
];

describe("what cannot be taken is said, with its place", () => {
  test.each(REFUSED)("%j", (detection, place, message) => {
    const outcome = importOne(withDetection(detection));
    expect(outcome).toMatchObject({ kind: "refused", rule: null, title: "A rule", file: "rules.yml", line: 1 });
    expect(outcome.reasons).toContainEqual({ place, message: expect.stringMatching(message) });
  });

  test("one document that is no YAML leaves the others alone", () => {
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
  ])("%j is told in words", (text, place, message) => {
    expect(importOne(text).reasons).toEqual([{ place, message }]);
  });

  test("nested deeper than the language of conditions goes", () => {
    const nested = Array.from({ length: 12 }, (_, i) => (i % 2 ? "a and (" : "a or (")).join("") + "b" + ")".repeat(12);
    const outcome = importOne(withDetection(`a: { a: 1 }\nb: { b: 1 }\ncondition: ${nested}`));
    expect(outcome.reasons[0]).toEqual({ place: "conditions", message: "nested deeper than 8" });
  });
});

describe("what a rule says about itself is kept", () => {
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

  test("a level that is not known is medium, and said; a deprecated rule is not enabled, and said", () => {
    const text = withDetection("s: { a: 1 }\ncondition: s").replace("level: high", "level: odd\nstatus: deprecated");
    const { rule, remarks } = importOne(text);
    expect(rule).toMatchObject({ severity: "medium", enabled: false });
    expect(remarks.map(({ place }) => place)).toEqual(["logsource.product", "level", "status"]);
  });

  test("several authors stand in one line", () => {
    const text = `${withDetection("s: { a: 1 }\ncondition: s")}\nauthor: [Ann, Ben]`;
    expect(importOne(text).rule!.description).toContain("by Ann, Ben.");
  });

  test("a document that others share (action: global), and one that changes the one before (action: repeat)", () => {
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

describe("a filter", () => {
  const RULES = `${withDetection("s: { a: 1 }\ncondition: s")}\nname: first\n---\n${withDetection("s: { a: 2 }\ncondition: s")}\n---\n`;
  const filter = (rules: string, condition = "not s") =>
    `title: A filter\nlogsource: { category: process_creation, product: windows }\nfilter: { rules: ${rules}, s: { user: root }, condition: ${condition} }`;

  test("is one more condition of the rules that it names, or of all of its log source", () => {
    const [first, second, part] = importText(RULES + filter("[first]"));
    expect(part).toMatchObject({ kind: "part", rule: null, reasons: [], remarks: [{ message: expect.any(String) }] });
    expect([matches(first!, { a: 1 }), matches(first!, { a: 1, user: "root" })]).toEqual([true, false]);
    expect(matches(second!, { a: 2, user: "root" })).toBe(true);
    expect(importText(RULES + filter("any")).map((outcome) => outcome.kind)).toEqual(["taken", "taken", "part"]);
    expect(matches(importText(RULES + filter("any"))[1]!, { a: 2, user: "root" })).toBe(false);
  });

  test.each([
    ["{ product: windows }", "all", true],
    ["{ category: process_creation }", "any", true],
    ["{ product: linux }", "any", false],
    ["{ product: windows, service: sysmon }", "any", false],
  ])("of the log source %s is for %s of its rules, in whatever part of it", (logsource, rules, isMeant) => {
    const text = filter(rules).replace("{ category: process_creation, product: windows }", logsource);
    expect(matches(importText(RULES + text)[1]!, { a: 2, user: "root" })).toBe(!isMeant);
  });

  test("without a not leaves only what it holds for, and that is said", () => {
    const [first, , part] = importText(RULES + filter("[first]", "s"));
    expect([matches(first!, { a: 1 }), matches(first!, { a: 1, user: "root" })]).toEqual([false, true]);
    expect(part!.remarks).toContainEqual({ place: "filter.condition", message: expect.stringMatching(/has no not/) });
    const negated = importText(RULES + filter("[first]", "'(not s)'"))[2]!;
    expect(negated.remarks.map(({ place }) => place)).toEqual([""]);
  });

  test.each([
    [filter("[nobody]"), "filter.rules", /none of them/],
    [filter("[first]", "not t"), "filter.condition", /no selection t/],
    [filter("[]"), "filter.rules", /required/],
  ])("%s is refused, and the rules are not", (text, place, message) => {
    const outcomes = importText(RULES + text);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["taken", "taken", "refused"]);
    expect(outcomes[2]!.reasons).toEqual([{ place, message: expect.stringMatching(message) }]);
  });
});

describe("a mapping", () => {
  const DETECTION = "detection: { s: { src: x, kept: y, 'who|expand': '%admins%' }, condition: s }";
  const rule = (logsource: string) => `title: A\nlevel: low\nlogsource: ${logsource}\n${DETECTION}`;
  const MAPPING = `
prefix: raw.log.
fields: { src: raw.src_ip }
placeholders: { admins: [root, "0"] }
logsources:
  - category: proxy
    source: platform_network
    conditions: [{ field: type, equals: web_request }]
    fields: { src: raw.client }
  - { product: linux, service: "*", conditions: [{ field: raw.program, equals: "{service}" }] }`;

  test("gives the source, further conditions, names of fields, values of placeholders", () => {
    expect(importOne(rule("{ category: proxy }"), MAPPING).rule).toMatchObject({
      source: "platform_network",
      conditions: [
        { field: "type", equals: "web_request" },
        { field: "raw.client", equals: "x", ignore_case: true },
        { field: "raw.log.kept", equals: "y", ignore_case: true },
        { field: "raw.log.who", in: ["root", "0", 0], ignore_case: true },
      ],
    });
    expect(importOne(rule("{ product: linux, service: sshd }"), MAPPING).rule).toMatchObject({
      source: "any",
      conditions: [{ field: "raw.program", equals: "sshd" }, { field: "raw.src_ip" }, {}, {}],
    });
    expect(importOne(rule("{ category: other }"), MAPPING).rule!.conditions[0]).toEqual({
      field: "type",
      equals: "other",
    });
  });

  test("a value with two placeholders is every combination; one that stands for itself does not go on for ever", () => {
    const expanding = (value: string) =>
      `title: A\nlogsource: { category: c }\ndetection: { s: { 'f|expand': '${value}' }, condition: s }`;
    const mapping = "placeholders: { a: [x, y], b: [1, 2], loop: ['%loop%%loop%'] }";
    const outcome = importOne(expanding("%a%-%b%"), mapping);
    expect(outcome.rule!.conditions[1]).toEqual({
      field: "raw.f",
      in: ["x-1", "x-2", "y-1", "y-2"],
      ignore_case: true,
    });
    expect(importOne(expanding("%loop%"), mapping).kind).toBe("refused");
  });

  test("one that nobody can use is refused with its line", () => {
    expect(
      parseMapping("prefix: raw.\nlogsources:\n  - category: x\n    conditions: [{ field: nope, equals: 1 }]"),
    ).toEqual({
      faults: [{ line: 4, path: "logsources[0].conditions[0].field", message: expect.stringMatching(/not a field/) }],
    });
    expect(parseMapping("fields: { a: b }")).toMatchObject({ faults: [{ line: 1, path: "fields.a" }] });
    expect(parseMapping("nope: 1")).toMatchObject({ faults: [{ path: "nope" }] });
    expect(parseMapping("a: [")).toMatchObject({ faults: [{ line: 1 }] });
  });

  test("a source that the platform does not have is a reason not to take the rule", () => {
    const outcome = importOne(rule("{ category: proxy }"), MAPPING.replace("platform_network", "nowhere"));
    expect(outcome.reasons).toEqual([{ place: "source", message: expect.stringMatching(/must be one of any/) }]);
  });
});

describe("a test of text on a field that holds numbers", () => {
  test.each(["EventID|startswith: 46", "EventID: '46*'", "winlog.event_id|re: '^46'", "DestinationPort|contains: 44"])(
    "%s is taken, and what it does not find is said",
    (selection) => {
      const { kind, remarks } = importOne(`${UNREMARKED}detection: { s: { ${selection} }, condition: s }`);
      expect(kind).toBe("taken");
      const message = expect.stringMatching(/is a number and not a text, it finds nothing/);
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

describe("the default mapping", () => {
  test.each([
    ["{ category: process_creation, product: windows }", { field: "type", equals: "process_creation" }],
    ["{ product: windows, service: security }", { field: "raw.Channel", equals: "Security", ignore_case: true }],
    ["{ product: windows, service: odd }", { field: "raw.Channel", contains: "odd", ignore_case: true }],
    ["{ product: linux, service: auditd }", { field: "type", equals: "auditd" }],
    ["{ product: zeek }", { field: "type", equals: "zeek" }],
  ])("%s", (logsource, condition) => {
    const text = `title: A\nlevel: low\nlogsource: ${logsource}\ndetection: { s: { a: 1 }, condition: s }`;
    expect(importOne(text).rule!.conditions[0]).toEqual(condition);
  });

  test.each([
    ["{ category: process_creation, product: linux }", ["logsource.product: linux"]],
    ["{ category: file_event, product: linux, service: x }", ["logsource.product: linux", "logsource.service: x"]],
    ["{ category: file_event, product: windows, service: sysmon }", ["logsource.category: file_event"]],
    ["{ product: linux, service: auditd }", ["logsource.product: linux"]],
    ["{ product: windows, service: security }", []],
    ["{ category: process_creation }", []],
  ])("what it does not tell of %s is said", (logsource, said) => {
    const text = `title: A\nlevel: low\nlogsource: ${logsource}\ndetection: { s: { a: 1 }, condition: s }`;
    const { remarks } = importOne(text);
    expect(remarks.map(({ place, message }) => `${place}: ${message.split(" is not looked at", 1)[0]}`)).toEqual(said);
  });

  test("a mapping that tells the product asks for it, and nothing is left to say", () => {
    const mapping = `
logsources:
  - category: "*"
    product: "*"
    conditions: [{ field: type, equals: "{category}" }, { field: raw.os, equals: "{product}" }]`;
    const outcome = importOne(withDetection("s: { a: 1 }\ncondition: s"), mapping);
    expect(outcome.remarks).toEqual([]);
    expect(["windows", "linux"].map((os) => matches(outcome, { a: 1, os }))).toEqual([true, false]);
  });

  test("a rule without a log source is refused", () => {
    const outcome = importOne("title: A\nlevel: low\nlogsource: {}\ndetection: { s: { a: 1 }, condition: s }");
    expect(outcome.reasons).toEqual([{ place: "logsource", message: expect.any(String) }]);
  });
});
