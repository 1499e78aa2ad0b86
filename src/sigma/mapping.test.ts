import { describe, expect, test } from "vitest";
import { importOne, importText, matches, withDetection } from "./testing/imported.ts";
import { parseMapping } from "./mapping.ts";

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

  test("gives the source, conditions, field paths and placeholder values", () => {
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

  test("a value with two placeholders becomes every combination; a recursive placeholder ends", () => {
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

  test.each([
    ["\\%plain%name%", "%plainx"],
    ["100\\%", "100%"],
    ["\\%name\\%", "%name%"],
    ["\\\\%name%", "\\x"],
    ["a\\*%name%", "a*x"],
    ["%name", "%name"],
    ["50 % of %name%", "50 % of x"],
  ])("a backslash escapes a percent sign of %s", (value, meant) => {
    const detection = { s: { "f|expand": value }, condition: "s" };
    const text = JSON.stringify({ title: "A", logsource: { category: "process_creation" }, detection });
    const outcome = importOne(text, "placeholders: { name: [x] }");
    expect([matches(outcome, { f: meant }), matches(outcome, { f: `${meant}!` })]).toEqual([true, false]);
  });

  test("an invalid mapping is refused with the line of the fault", () => {
    expect(
      parseMapping("prefix: raw.\nlogsources:\n  - category: x\n    conditions: [{ field: nope, equals: 1 }]"),
    ).toEqual({
      faults: [{ line: 4, path: "logsources[0].conditions[0].field", message: expect.stringMatching(/not a field/) }],
    });
    expect(parseMapping("fields: { a: b }")).toMatchObject({ faults: [{ line: 1, path: "fields.a" }] });
    expect(parseMapping("fields: { a: [raw.b, c] }")).toMatchObject({ faults: [{ line: 1 }] });
    expect(parseMapping("fields: { a: raw.* }")).toMatchObject({ faults: [{ path: "fields.a" }] });
    expect(parseMapping("nope: 1")).toMatchObject({ faults: [{ path: "nope" }] });
    expect(parseMapping("a: [")).toMatchObject({ faults: [{ line: 1 }] });
  });

  test("a field may have several paths, also relative to the prefix", () => {
    const mapping = `
prefix: raw.log.
logsources:
  - category: c
    fields: { who: ["{prefix}user", raw.account] }`;
    const importWith = (detection: string) =>
      importOne(`title: A\nlogsource: { category: c }\ndetection: { ${detection}, condition: s }`, mapping);
    const found = importWith("s: { who: ann }");
    const both = importWith("s: { 'who|contains|all': [a, n] }");
    const missing = importWith("s: { who: [null, ann] }");
    const same = importWith("s: { 'other|fieldref': who }");
    const cases = [
      { log: { user: "Ann" } },
      { account: "ann" },
      { log: { user: "ben" }, account: "ann" },
      { log: { user: "a" }, account: "n" },
      {},
      { user: "ann" },
    ];
    const seen = (outcome: ReturnType<typeof importOne>) => cases.map((raw) => matches(outcome, raw));
    expect(seen(found)).toEqual([true, true, true, false, false, false]);
    expect(seen(both)).toEqual([true, true, true, true, false, false]);
    expect(seen(missing)).toEqual([true, true, true, false, true, true]);
    expect(matches(same, { log: { other: "ann" }, account: "Ann" })).toBe(true);
    expect(matches(same, { log: { other: "ann" }, account: "Ben" })).toBe(false);
  });

  test("a user's mapping takes precedence over the default, and an entry over its mapping", () => {
    const rule = `title: A\nlogsource: { product: windows, service: windefend }\ndetection: { s: { ThreatName: x }, condition: s }`;
    const fieldOf = (mapping: string) => importOne(rule, mapping).rule!.conditions[1];
    expect(fieldOf("prefix: raw.log.")).toMatchObject({
      any: [{ field: "raw.log.ThreatName" }, { field: "raw.log.Threat Name" }],
    });
    expect(fieldOf("fields: { ThreatName: raw.threat }")).toMatchObject({ field: "raw.threat" });
    const entry =
      "logsources: [{ product: windows, service: windefend, conditions: [{ field: type, equals: av }], fields: { ThreatName: raw.name } }]";
    expect(fieldOf(`fields: { ThreatName: raw.threat }\n${entry}`)).toMatchObject({ field: "raw.name" });
  });

  test("grouping by a field with several paths gives a remark", () => {
    const text = `title: A
name: a
logsource: { product: windows, service: windefend }
detection: { s: { EventID: 1116 }, condition: s }
---
title: Many
level: high
correlation: { type: event_count, rules: [a], group-by: [ThreatName], timespan: 5m, condition: { gte: 5 } }`;
    const [base, many] = importText(text);
    expect(many!.rule!.threshold).toMatchObject({ group_by: "raw.ThreatName" });
    expect(base!.remarks.map(({ message }) => message)).toContain(
      "ThreatName is grouped and counted by raw.ThreatName only, not by raw.Threat Name",
    );
  });

  test("null matches a log source without the key", () => {
    const mapping =
      "logsources: [{ product: beos, category: null, service: null, conditions: [{ field: type, equals: b }] }]";
    const first = (logsource: string) =>
      importOne(rule(logsource).replace(/, 'who.*?'%admins%'/, ""), mapping).rule!.conditions[0];
    expect(first("{ product: beos }")).toEqual({ field: "type", equals: "b" });
    expect(first("{ product: beos, category: c }")).toEqual({ field: "type", equals: "c" });
  });

  test("conditions of the product are added if the entry does not name it", () => {
    const mapping = "products: { windows: {}, beos: { conditions: [{ field: raw.kernel, equals: haiku }] } }";
    const conditionsFor = (product: string) => {
      const text = `title: A\nlevel: low\nlogsource: { category: c, product: ${product} }\ndetection: { s: { a: x }, condition: s }`;
      const { rule: made, remarks } = importOne(text, mapping);
      expect(remarks).toEqual([]);
      return made!.conditions.slice(2);
    };
    expect(conditionsFor("BeOS")).toEqual([{ field: "raw.kernel", equals: "haiku" }]);
    expect(conditionsFor("windows")).toEqual([]);
    expect(conditionsFor("linux")).toEqual([{ not: expect.anything() }]);
  });

  test("a source that the platform does not have refuses the rule", () => {
    const outcome = importOne(rule("{ category: proxy }"), MAPPING.replace("platform_network", "nowhere"));
    expect(outcome.reasons).toEqual([{ place: "source", message: expect.stringMatching(/must be one of any/) }]);
  });
});

describe("the default mapping", () => {
  test.each([
    ["{ category: process_creation, product: windows }", { field: "type", equals: "process_creation" }],
    ["{ product: windows, service: security }", { field: "raw.Channel", equals: "Security", ignore_case: true }],
    ["{ product: windows, service: odd }", { field: "raw.Channel", contains: "odd", ignore_case: true }],
    ["{ product: aws, service: cloudtrail }", { field: "type", equals: "cloudtrail" }],
    ["{ product: zeek }", { field: "type", equals: "zeek" }],
  ])("%s", (logsource, condition) => {
    const text = `title: A\nlevel: low\nlogsource: ${logsource}\ndetection: { s: { a: 1 }, condition: s }`;
    expect(importOne(text).rule!.conditions[0]).toEqual(condition);
  });

  test.each([
    ["{ category: process_creation, product: linux }", []],
    ["{ category: file_event, product: beos, service: x }", ["logsource.product: beos", "logsource.service: x"]],
    ["{ category: file_event, product: windows, service: sysmon }", ["logsource.category: file_event"]],
    ["{ product: aws, service: cloudtrail }", ["logsource.product: aws"]],
    ["{ product: windows, service: security }", []],
    ["{ category: process_creation }", []],
  ])("keys of %s that it does not cover give a remark", (logsource, said) => {
    const text = `title: A\nlevel: low\nlogsource: ${logsource}\ndetection: { s: { a: 1 }, condition: s }`;
    const { remarks } = importOne(text);
    expect(remarks.map(({ place, message }) => `${place}: ${message.split(" is ignored", 1)[0]}`)).toEqual(said);
  });

  test("a mapping that identifies the product adds its conditions without a remark", () => {
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
