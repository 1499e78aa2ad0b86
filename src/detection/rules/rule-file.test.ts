import { describe, expect, test } from "vitest";
import { ruleFileParser, toRule } from "./rule-file.ts";
import { runFileTests } from "./rule-file-tests.ts";
import { eventsOfTest } from "./test-events.ts";

const parse = ruleFileParser({ platform: "yard", timezone: "Europe/Berlin" });
const parseText = (content: string) => parse({ name: "rules.yaml", content });

const RULE = `
name: site.logins
description: Failed logins
severity: high
source: "{platform}_network"
conditions:
  - { field: type, equals: login_failure }
  - { field: timestamp, during: "22:00-06:00 {timezone}" }
window: 5m
threshold: { count: 3, group_by: raw.src_ip }
actions: [{ alert: { channels: [] } }]
`;

describe("a rule file", () => {
  test("holds rules as in the API, with the settings substituted", () => {
    const { documents, faults } = parseText(`${RULE}---${RULE.replace("site.logins", "site.others")}`);
    expect(faults).toEqual([]);
    expect(documents.map(({ input }) => input.name)).toEqual(["site.logins", "site.others"]);
    expect(documents[1]).toMatchObject({ line: 13, id: null, createdMs: null, input: { tests: [] } });
    expect(documents[0]!.input).toMatchObject({
      source: "yard_network",
      enabled: true,
      conditions: [{}, { field: "timestamp", during: "22:00-06:00 Europe/Berlin" }],
    });
  });

  test("holds integers of any size exactly", () => {
    const { documents, faults } = parseText(
      RULE.replace("equals: login_failure", "in: [x, 18446744073709551615, 0x20000000000001, 1e23]"),
    );
    expect(faults).toEqual([]);
    expect(documents[0]!.input.conditions[0]).toMatchObject({
      in: ["x", 18446744073709551615n, 9007199254740993n, 10n ** 23n],
    });
    const { faults: refused } = parseText(RULE.replace("count: 3", "count: 18446744073709551615"));
    expect(refused).toMatchObject([{ path: "threshold.count", message: "must be a number within ±9007199254740991" }]);
  });

  test("names the line and the path of every fault, and one bad document does not hide the others", () => {
    const bad = RULE.replace("equals: login_failure", "eqals: login_failure").replace(
      "severity: high",
      "severity: worst",
    );
    const { documents, faults } = parseText(`${RULE}---${bad}---\n- no rule\n---\nname: [\n`);
    expect(documents).toHaveLength(1);
    expect(faults).toEqual([
      { file: "rules.yaml", line: 15, path: "severity", message: expect.stringMatching(/one of critical/) },
      { file: "rules.yaml", line: 18, path: "conditions[0].eqals", message: "is unknown; did you mean equals?" },
      { file: "rules.yaml", line: 18, path: "conditions[0]", message: expect.stringMatching(/needs an operator/) },
      { file: "rules.yaml", line: 24, path: "", message: "is not a rule" },
      { file: "rules.yaml", line: 27, path: "", message: expect.any(String) },
    ]);
  });

  test.each([
    ["id: rule_1", "id"],
    ["created: yesterday", "created"],
    ["tests: [{ name: a, alerts: 1 }]", "tests[0].events"],
    ["tests: [{ name: a, alerts: 1, events: [{ type: x, at: 90s }] }]", "tests[0].events[0].at"],
    ["tests: [{ name: a, alerts: 1, events: [{ type: x, every: 1s }] }]", "tests[0].events[0].every"],
    ["tests: [{ name: a, alerts: 1, events: [{ type: x, source: nowhere }] }]", "tests[0].events[0].source"],
    ["tests: [{ name: a, alerts: 1, wait: long, events: [] }]", "tests[0].wait"],
    ["test: []", "test"],
  ])("refuses %s", (line, path) => {
    expect(parseText(RULE + line).faults).toEqual([expect.objectContaining({ path, line: 12 })]);
  });

  test("without a rule is a fault", () => {
    expect(parseText("# nothing\n").faults).toEqual([
      { file: "rules.yaml", line: 1, path: "", message: "holds no rule" },
    ]);
    expect(parseText("a".repeat(9 * 1024 * 1024)).faults).toEqual([
      expect.objectContaining({ message: expect.stringMatching(/exceeds 8388608 characters/) }),
    ]);
  });

  test("aliases that expand exponentially are refused", () => {
    const levels = Array.from(
      { length: 12 },
      (_, i) =>
        `l${i}: &l${i} [${
          i === 0
            ? "x"
            : Array(9)
                .fill(`*l${i - 1}`)
                .join(", ")
        }]`,
    );
    expect(parseText(levels.join("\n")).faults).toHaveLength(1);
  });

  test("an exception keeps its reason and expiry", () => {
    const exception = `exceptions: [{ conditions: [{ field: raw.a, equals: 1 }], reason: known, expires_at: "2027-01-01T00:00:00Z" }]`;
    const rule = toRule(parseText(RULE + exception).documents[0]!, { builtin: true });
    expect(rule.exceptions).toEqual([
      expect.objectContaining({ reason: "known", author: "system", expiresAt: Date.UTC(2027, 0, 1) }),
    ]);
  });
});

describe("the tests of a rule", () => {
  const EVENT = `{ type: login_failure, raw: { src_ip: "192.0.2.{n}", number: "{n}" }, repeat: 3, every: 30s }`;

  test("have events with times, numbers and defaults", () => {
    const { documents } = parseText(
      `${RULE}tests: [{ name: a, start: "2026-11-02T23:00:00Z", alerts: 1, events: [${EVENT}, { type: motion, at: +1m }] }]`,
    );
    const { input } = documents[0]!;
    const events = [...eventsOfTest(input.tests[0]!, input)];
    expect(events.map(({ timestamp, raw, source }) => [timestamp, raw, source])).toEqual([
      ["2026-11-02T23:00:00.000Z", { src_ip: "192.0.2.1", number: 1 }, "yard_network"],
      ["2026-11-02T23:00:30.000Z", { src_ip: "192.0.2.2", number: 2 }, "yard_network"],
      ["2026-11-02T23:01:00.000Z", { src_ip: "192.0.2.3", number: 3 }, "yard_network"],
      ["2026-11-02T23:01:00.000Z", {}, "yard_network"],
    ]);
    expect(events[3]).toMatchObject({ severity: "info", class: "security", enrichment: {} });
  });

  test("report deviations", () => {
    const same = EVENT.replace("{n}", "7");
    const outcomeOf = (claims: string) =>
      runFileTests(
        parseText(`${RULE}tests: [{ name: a, start: "2026-11-02T23:00:00Z", events: [${same}], ${claims} }]`).documents,
      )[0]!.faults;
    expect(outcomeOf("alerts: 1, event_count: 3, title: Failed logins")).toEqual([]);
    expect(outcomeOf("alerts: 0")).toEqual(['raises 1 alert, not 0: "Failed logins"']);
    expect(outcomeOf("alerts: 2, event_count: 9, title: Other")).toEqual([
      expect.stringMatching(/not 2/),
      "has 3 events in its alerts, not 9",
      'is titled "Failed logins", not "Other"',
    ]);
  });
});
