import { describe, expect, test } from "vitest";
import { importText, matches, withDetection } from "./imported.ts";

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
