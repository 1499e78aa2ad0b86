import { describe, expect, test } from "vitest";
import { readBuiltinFiles } from "./builtin.ts";
import { lintRule } from "./lint.ts";
import { ruleFileParser } from "./rule-file.ts";

const SETTINGS = { platform: "platform", timezone: "UTC" };
const parse = ruleFileParser(SETTINGS);

const TESTS = readBuiltinFiles(SETTINGS)[0]!.input.tests;
const GOOD = "{ field: type, equals: x }";

function hintsOf(lines: string): string[] {
  const described = lines.includes("description:") ? "" : "description: D\n";
  const content = `name: a.b\n${described}severity: low\nactions: [{ alert: { channels: [] } }]\n${lines}`;
  const { documents, faults } = parse({ name: "a.yaml", content });
  expect(faults).toEqual([]);
  return lintRule({ input: { ...documents[0]!.input, tests: TESTS } }).map(
    ({ path, message }) => `${path}: ${message}`,
  );
}

describe("a hint", () => {
  test.each([
    [`conditions: [${GOOD}, { field: raw.srcip, equals: a }]`, /^conditions\[1\]\.field: .*did you mean raw\.src_ip/],
    [
      `conditions: [${GOOD}, { field: raw.dst_port, equals: "22" }]`,
      /^conditions\[1\]\.equals: .*number, which never equals a string/,
    ],
    [
      `conditions: [${GOOD}, { any: [{ field: raw.user, in: [1, 2] }] }]`,
      /^conditions\[1\]\.any\[0\]\.in: .*string, which never/,
    ],
    [
      `conditions: [${GOOD}, { field: raw.user, equals_field: raw.usre }]`,
      /equals_field: raw\.usre.*did you mean raw\.user/,
    ],
    [`conditions: [${GOOD}, { field: severity, gt: 3 }]`, /^conditions\[1\]\.gt: severity .*never matches; use in/],
    [`conditions: [${GOOD}, { not: { field: type, lte: 3 } }]`, /^conditions\[1\]\.not\.lte: type .*never matches/],
    [`conditions: [${GOOD}, { field: raw.user, gte: 3 }]`, /^conditions\[1\]\.gte: raw\.user .*never matches/],
    [`conditions: [{ field: severity, equals: high }]`, /^conditions: runs on every event/],
    [`conditions: [{ any: [${GOOD}, { field: raw.a, exists: true }] }]`, /^conditions: runs on/],
    [`conditions: [{ not: ${GOOD} }]`, /^conditions: runs on/],
    [`conditions: [{ keyword: mimi }]`, /searches every value/],
    [`conditions: [${GOOD}, { field: raw.*, contains: mimi }]`, /^conditions\[1\]: searches every value/],
    [`conditions: [${GOOD}, { not: ${GOOD} }]`, /^conditions: can never match: type equals "x" contradicts not type/],
    [
      `conditions: [${GOOD}]\nwindow: 5m\ngroup_by: raw.user\nsequence: [{ name: a, conditions: [${GOOD}] }, { name: b, conditions: [{ field: type, equals: y }] }]`,
      /^sequence\[1\]\.conditions: can never match: type/,
    ],
    [`conditions: [${GOOD}, { field: raw.a, regex: '.*a?b?' }]`, /regex: slow: .*leading \.\*/],
    [`conditions: [${GOOD}, { field: raw.a, regex: 'abcd{500}' }]`, /regex: slow: .*\{500\}/],
    [`conditions: [${GOOD}, { field: raw.a, regex: '[a-z]+\\d' }]`, /regex: slow: .*no 3 plain/],
    [`conditions: [${GOOD}, { field: raw.a, regex: 'abcd|e' }]`, /regex: slow: .*no 3 plain/],
    [`conditions: [${GOOD}]\nwindow: 5m\nthreshold: { count: 5 }`, /^threshold\.group_by: missing/],
    [
      `conditions: [${GOOD}]\nwindow: 5m\nthreshold: { count: 1, group_by: raw.user }`,
      /^threshold\.count: 1 fires on every/,
    ],
    [
      `conditions: [${GOOD}]\nwindow: 5m\nthreshold: { count: 5, group_by: raw.user, distinct: raw.user }`,
      /^threshold\.distinct: is in group_by/,
    ],
    [`conditions: [${GOOD}]\nwindow: 5m\nthreshold: { count: 5, group_by: id }`, /^group_by: id is different/],
    [`conditions: [${GOOD}]\ndedup: { period: 5s }`, /^dedup\.period: is so short/],
    [`conditions: [${GOOD}]\ntitle: "From {{src_ip}}"`, /^title: \{\{src_ip\}\} stays empty/],
    [
      `conditions: [${GOOD}]\ntitle: "From {{raw.src_ip"`,
      /^title: \{\{ is shown verbatim: the closing \}\} is missing/,
    ],
    [
      `conditions: [${GOOD}]\ntitle: "From {{the address}}"`,
      /^title: \{\{the address\}\} is shown verbatim: a placeholder/,
    ],
    [`conditions: [${GOOD}]\ntitle: "From {{raw.srcip}}"`, /^title: raw\.srcip is not .*did you mean raw\.src_ip/],
    [
      `conditions: [${GOOD}]\ndescription: "In {{ enrichment.geo.contry }}"`,
      /^description: .*did you mean enrichment\.geo\.country/,
    ],
    [
      `conditions: [${GOOD}]\ngroup_by: raw.job\nabsence: 1h\ntitle: "No {{raw.name}}"`,
      /^title: \{\{raw\.name\}\} stays/,
    ],
    [
      `conditions: [${GOOD}]\nwindow: 5m\nthreshold: { count: 5, group_by: raw.srcip }`,
      /^threshold\.group_by: .*did you mean raw\.src_ip/,
    ],
    [`conditions: [${GOOD}]\ndedup: { by: raw.camrea }`, /^dedup\.by: .*did you mean raw\.camera/],
    [
      `conditions: []\nwindow: 5m\nsequence: [{ name: a, conditions: [${GOOD}] }, { name: b, conditions: [{ field: raw.a, gt: 3 }] }]`,
      /^sequence\[1\]\.conditions: runs on/,
    ],
  ])("%s", (lines, message) => {
    expect(hintsOf(lines)).toContainEqual(expect.stringMatching(message));
  });

  test("is not given for a good rule", () => {
    const conditions = `conditions: [${GOOD}, { field: raw.dst_port, in: [22, 23] }, { field: raw.custom_thing, regex: 'evil\\d+' }]`;
    expect(hintsOf(`${conditions}\ntitle: "From {{raw.src_ip}}"`)).toEqual([]);
    const absence = `conditions: [${GOOD}]\ngroup_by: raw.job\nabsence: 1h`;
    expect(hintsOf(`${absence}\ntitle: "No {{type}} of {{raw.job}} since {{timestamp}}"`)).toEqual([]);
    expect(hintsOf(`conditions: [${GOOD}, { field: timestamp, gt: "2026-01-01T00:00:00Z" }]`)).toEqual([]);
    expect(hintsOf(`conditions: [{ field: raw.a, regex: '(a|b)\\.exec' }]`)).toEqual([]);
  });

  test("is given for a built-in rule only if the rule is intended so", () => {
    const hints = readBuiltinFiles(SETTINGS).flatMap((document) =>
      lintRule(document).map(({ path }) => `${document.input.name} ${path}`),
    );
    expect(hints).toEqual([
      // Event types of custom applications are unknown in advance.
      "custom.critical_event conditions",
      // It runs only on failed queries.
      "network.dns_many_failures conditions[2].not.regex",
      // The camera suffices as a group.
      "protect.several_cameras_offline threshold.group_by",
      // The events have no field in common.
      "site.door_after_camera_blinded group_by",
      "site.intrusion_across_domains group_by",
    ]);
  });

  test("is given for a rule without tests", () => {
    const { documents } = parse({
      name: "a.yaml",
      content: `{ name: a.b, description: D, severity: low, actions: [{ alert: { channels: [] } }], conditions: [${GOOD}] }`,
    });
    expect(lintRule(documents[0]!)).toEqual([{ path: "tests", message: expect.any(String) }]);
  });
});
