import { describe, expect, test } from "vitest";
import { importText, matches, withDetection } from "./testing/imported.ts";

describe("a filter", () => {
  const RULES = `${withDetection("s: { a: 1 }\ncondition: s")}\nname: first\n---\n${withDetection("s: { a: 2 }\ncondition: s")}\n---\n`;
  const filter = (rules: string, condition = "not s") =>
    `title: A filter\nlogsource: { category: process_creation, product: windows }\nfilter: { rules: ${rules}, s: { user: root }, condition: ${condition} }`;

  test("adds a condition to the rules that it names, or to all rules of its log source", () => {
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
  ])("of the log source %s applies to %s of its rules, in every part of it", (logsource, rules, isMeant) => {
    const text = filter(rules).replace("{ category: process_creation, product: windows }", logsource);
    expect(matches(importText(RULES + text)[1]!, { a: 2, user: "root" })).toBe(!isMeant);
  });

  const of = (logsource: string, rules: string) =>
    filter(rules).replace("{ category: process_creation, product: windows }", logsource);

  test.each([
    ["{ product: linux }", "it is for the product linux, the rule has windows"],
    ["{ product: windows, service: sysmon }", "it is for the service sysmon, the rule has none"],
    [
      "{ category: dns, product: linux }",
      "it is for the category dns, the rule has process_creation; it is for the product linux, the rule has windows",
    ],
  ])("of the log source %s does not apply to a named rule of another log source, with a remark", (logsource, why) => {
    const [first, second, refused] = importText(RULES + of(logsource, "[first]"));
    expect([matches(first!, { a: 1 }), matches(first!, { a: 1, user: "root" })]).toEqual([true, true]);
    expect(first!.remarks).toContainEqual({
      place: "logsource",
      message: `the filter "A filter" names this rule and is not applied to it: ${why}`,
    });
    expect(second!.remarks.filter(({ place }) => place === "logsource")).toEqual([]);
    expect(refused).toMatchObject({ kind: "refused" });
    expect(refused!.reasons).toEqual([{ place: "logsource", message: "covers none of the named rules" }]);
  });

  test.each(["{ product: windows }", "{ category: process_creation }"])(
    "of the wider log source %s applies to the rules that it names",
    (logsource) => {
      const [first, second] = importText(RULES + of(logsource, "[first]"));
      expect([matches(first!, { a: 1 }), matches(first!, { a: 1, user: "root" })]).toEqual([true, false]);
      expect(matches(second!, { a: 2, user: "root" })).toBe(true);
    },
  );

  test("applies to the rules of its log source and counts the named rules of others", () => {
    const linux = withDetection("s: { a: 3 }\ncondition: s").replace("product: windows", "product: linux");
    const [first, , other, part] = importText(`${RULES}${linux}\nname: other\n---\n${filter("[first, other]")}`);
    expect([matches(first!, { a: 1, user: "root" }), matches(other!, { a: 3, user: "root" })]).toEqual([false, true]);
    expect(part!.remarks).toEqual([
      { place: "logsource", message: "not applied to named rules of another log source: 1" },
      { place: "", message: "applied to rules of this import: 1" },
    ]);
  });

  test("of another log source is reported to the rule that it names, up to a limit", () => {
    const one = of("{ product: linux }", "[first]");
    const filters = Array.from({ length: 13 }, (_, i) => one.replace("A filter", `Filter ${i}`)).join("\n---\n");
    const told = importText(RULES + filters)[0]!.remarks.filter(({ message }) => message.includes("filter"));
    expect(told).toHaveLength(11);
    expect(told.at(-1)!.message).toBe("3 more filters name this rule and are not applied to it");
  });

  test("without a not restricts the rules to events that satisfy it, with a remark", () => {
    const [first, , part] = importText(RULES + filter("[first]", "s"));
    expect([matches(first!, { a: 1 }), matches(first!, { a: 1, user: "root" })]).toEqual([false, true]);
    expect(part!.remarks).toContainEqual({ place: "filter.condition", message: expect.stringMatching(/has no not/) });
    const negated = importText(RULES + filter("[first]", "'(not s)'"))[2]!;
    expect(negated.remarks.map(({ place }) => place)).toEqual([""]);
  });

  test.each([
    [filter("[nobody]"), "filter.rules", /names no rule/],
    [filter("[first]", "not t"), "filter.condition", /no selection t/],
    [filter("[]"), "filter.rules", /required/],
  ])("%s is refused, and the rules are imported", (text, place, message) => {
    const outcomes = importText(RULES + text);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["taken", "taken", "refused"]);
    expect(outcomes[2]!.reasons).toEqual([{ place, message: expect.stringMatching(message) }]);
  });
});
