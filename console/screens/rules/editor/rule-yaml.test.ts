import { expect, test } from "vitest";
import { readYaml, rangeOf, updateYaml, writeYaml } from "./rule-yaml.ts";

const TEXT = `# ours
name: site.failed_logins # unique
description: Five failed logins
severity: high
conditions:
  - { field: type, equals: login_failure }
  - any:
      - { field: raw.src_ip, cidr: 10.0.0.0/99 } # inside
actions: [{ alert: { channels: [] } }]
`;

test("a rule is written in the usual order and read back", () => {
  const rule = { severity: "high", window: "5m", name: "a.b", conditions: [{ field: "raw.a", in: ["5", 5, true] }] };
  const text = writeYaml(rule);
  expect(text.indexOf("name:")).toBe(0);
  expect(text.indexOf("severity:")).toBeLessThan(text.indexOf("conditions:"));
  expect(readYaml(text).rule).toEqual(rule);
});

test("tests stand on one line, and a description as it is read", () => {
  const rule = {
    description:
      "One.\n\nTwo, which is longer than any line should be if lines were folded, but they are not: they wrap.",
    conditions: [{ field: "type", in: ["a", "b"] }, { any: [{ field: "raw.a", equals: 1 }] }],
  };
  expect(writeYaml(rule)).toBe(`description: |-
  One.

  Two, which is longer than any line should be if lines were folded, but they are not: they wrap.
conditions:
  - { field: type, in: [ a, b ] }
  - any:
      - { field: raw.a, equals: 1 }
`);
});

test("hours, times and words that other versions of YAML take for something else stay text", () => {
  expect(readYaml("during: 22:00-06:00\nat: 2026-11-03\nanswer: no").rule).toEqual({
    during: "22:00-06:00",
    at: "2026-11-03",
    answer: "no",
  });
});

test("a change made elsewhere leaves comments and layout of the rest alone", () => {
  const rule = readYaml(TEXT).rule!;
  expect(updateYaml(TEXT, rule)).toBe(TEXT);
  const changed = updateYaml(TEXT, { ...rule, severity: "low", window: "5m" });
  expect(changed).toContain("# ours\nname: site.failed_logins # unique");
  expect(changed).toContain("severity: low");
  expect(changed).toContain("# inside");
  expect(readYaml(changed).rule).toEqual({ ...rule, severity: "low", window: "5m" });
});

test("what is no YAML, or no rule, has a place", () => {
  const [fault] = readYaml("name: [a").faults!;
  expect(fault!.from).toBeGreaterThan(0);
  expect(readYaml("- a").faults).toHaveLength(1);
  expect(readYaml("a: &a [*a]").faults).toHaveLength(1);
  expect(readYaml("a: 1\n---\nb: 2").faults).toHaveLength(1);
});

test("a field that the service refuses is found in the text", () => {
  const at = (path: readonly (string | number)[]) => {
    const { from, to } = rangeOf(TEXT, path);
    return TEXT.slice(from, to);
  };
  expect(at(["conditions", 1, "any", 0, "cidr"])).toBe("cidr: 10.0.0.0/99");
  expect(at(["severity"])).toBe("severity: high");
  expect(at(["conditions", 0])).toBe("{ field: type, equals: login_failure }");
  // A missing one is shown at what it should stand in, and at the first line where that is the whole rule.
  expect(rangeOf(TEXT, ["actions", 0, "alert", "channels", 3]).from).toBe(TEXT.indexOf("channels"));
  expect(rangeOf(TEXT, ["window"])).toEqual({ from: 0, to: 6 });
});
