import { describe, expect, test } from "vitest";
import { importOne, matches, withDetection } from "./imported.ts";
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
