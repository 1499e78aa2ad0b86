import { describe, expect, test } from "vitest";
import { faultsOf } from "../lib/fault.ts";
import { compileCondition, OPERATOR_NAMES, toFieldTest, toKeywordTest } from "./condition.ts";
import { fieldTestSchema, keywordSchema } from "./condition-schema.ts";
import type { Event, JsonObject } from "./event.ts";

const event = (raw: JsonObject, more: Partial<Event> = {}): Event => ({
  id: "evt_1",
  type: "login_failure",
  source: "custom",
  class: "security",
  severity: "high",
  timestamp: "2026-11-13T23:30:00.000Z",
  raw,
  enrichment: {},
  ...more,
});

const holds = (test: object, raw: JsonObject): boolean =>
  compileCondition(toFieldTest(fieldTestSchema.parse({ field: "raw.x", ...test })))(event(raw));

const TABLE: readonly [operator: string, rows: readonly [test: object, raw: JsonObject, holds: boolean][]][] = [
  [
    "equals",
    [
      [{ equals: "a" }, { x: "a" }, true],
      [{ equals: "a" }, { x: "A" }, false],
      [{ equals: "a", ignore_case: true }, { x: "A" }, true],
      [{ equals: 1 }, { x: "1" }, false],
      [{ equals: true }, { x: true }, true],
      [{ equals: "a" }, { x: ["b", "a"] }, true],
      [{ equals: "a" }, { x: { a: "a" } }, false],
      [{ equals: "a" }, {}, false],
    ],
  ],
  [
    "not_equals",
    [
      [{ not_equals: "a" }, { x: "b" }, true],
      [{ not_equals: "a" }, { x: ["b", "a"] }, false],
      [{ not_equals: "a" }, {}, false],
      [{ not_equals: "a" }, { x: null }, false],
    ],
  ],
  [
    "in and not_in",
    [
      [{ in: ["a", 2] }, { x: 2 }, true],
      [{ in: ["a", 2] }, { x: "2" }, false],
      [{ in: ["ÄB"], ignore_case: true }, { x: "äb" }, true],
      [{ not_in: ["a"] }, { x: "b" }, true],
      [{ not_in: ["a"] }, {}, false],
    ],
  ],
  [
    "contains",
    [
      [{ contains: "bc" }, { x: "abcd" }, true],
      [{ contains: ["zz", "bc"] }, { x: "abcd" }, true],
      [{ contains: ["zz", "yy"] }, { x: "abcd" }, false],
      [{ contains: "BC", ignore_case: true }, { x: "abcd" }, true],
      [{ contains: "1" }, { x: 12 }, false],
    ],
  ],
  [
    "starts_with, prefix and ends_with",
    [
      [{ starts_with: "ab" }, { x: "abc" }, true],
      [{ prefix: ["x", "ab"] }, { x: "abc" }, true],
      [{ starts_with: "bc" }, { x: "abc" }, false],
      [{ prefix: "bc" }, { x: "abc" }, false],
      [{ ends_with: ["x", "bc"] }, { x: "abc" }, true],
      [{ ends_with: "BC", ignore_case: true }, { x: "abc" }, true],
      [{ ends_with: "ab" }, { x: "abc" }, false],
    ],
  ],
  [
    "glob",
    [
      [{ glob: "a*c" }, { x: "abc" }, true],
      [{ glob: "a*c" }, { x: "abcd" }, false],
      [{ glob: ["z*", "?b?"] }, { x: "abc" }, true],
      [{ glob: "A*", ignore_case: true }, { x: "abc" }, true],
      [{ glob: "*" }, { x: 1 }, false],
      [{ glob: "\\*" }, { x: "*" }, true],
    ],
  ],
  [
    "regex",
    [
      [{ regex: "^a.c$" }, { x: "abc" }, true],
      [{ regex: ["^z", "C$"], ignore_case: true }, { x: "abc" }, true],
      [{ regex: "end$" }, { x: `${"x".repeat(65_536)}end` }, true],
      [{ regex: "mid" }, { x: `${"x".repeat(32_768)}mid${"x".repeat(32_768)}` }, false],
      [{ regex: "end$" }, { x: `${"x".repeat(65_533)}end` }, true],
    ],
  ],
  [
    "cidr",
    [
      [{ cidr: "10.0.0.0/8" }, { x: "10.9.9.9" }, true],
      [{ cidr: ["192.0.2.0/24", "2001:db8::/32"] }, { x: "2001:DB8:0::1" }, true],
      [{ cidr: "10.0.0.0/8" }, { x: "::ffff:10.0.0.1" }, true],
      [{ cidr: "10.0.0.0/8" }, { x: "10.0.0" }, false],
      [{ cidr: "::/0" }, { x: "2001:db8::1" }, true],
      [{ cidr: ["::/0", "::/64", "::fffe:0:0/95"] }, { x: "10.9.9.9" }, false],
      [{ cidr: "::/0" }, { x: "::ffff:10.0.0.1" }, false],
      [{ cidr: "::ffff:10.0.0.0/104" }, { x: "10.9.9.9" }, true],
    ],
  ],
  [
    "gt, gte, lt and lte",
    [
      [{ gt: 1 }, { x: 2 }, true],
      [{ gt: 2 }, { x: 2 }, false],
      [{ gte: 2 }, { x: 2 }, true],
      [{ lt: 2 }, { x: "1" }, false],
      [{ lte: 2 }, { x: [5, 2] }, true],
      [{ field: "timestamp", gt: "2026-11-13T23:00:00Z" }, {}, true],
      [{ field: "timestamp", lte: "2026-11-14T00:29:59+01:00" }, {}, false],
      [{ field: "timestamp", gte: "2026-11-13T23:30:00.0001Z" }, {}, false],
      [{ field: "timestamp", lt: "2026-11-13T23:30:00.0001Z" }, {}, true],
    ],
  ],
  [
    "during",
    [
      [{ field: "timestamp", during: "22:00-06:00" }, {}, true],
      [{ field: "timestamp", during: "fri" }, {}, true],
      [{ field: "timestamp", during: "sat Europe/Berlin" }, {}, true],
      [{ field: "timestamp", during: "mon-fri 08:00-18:00" }, {}, false],
    ],
  ],
  [
    "time_part",
    [
      [{ time_part: "minute 30" }, { x: "2026-11-13T23:30:59.999Z" }, true],
      [{ time_part: "minute 31-" }, { x: "2026-11-13T23:30:59.999Z" }, false],
      [{ time_part: "hour 22-5" }, { x: "2026-11-13T23:30:00Z" }, true],
      [{ time_part: "hour 22-5" }, { x: "2026-11-13T06:00:00Z" }, false],
      [{ time_part: "hour 21" }, { x: "2026-11-13T23:30:00+02:00" }, true],
      [{ time_part: "hour 23" }, { x: "2026-11-13 23:30:00.123" }, true],
      [{ time_part: "hour 0" }, { x: "2026-11-13" }, true],
      [{ time_part: ["day 12", "day 13"] }, { x: ["no time", "2026-11-13T23:30:00Z"] }, true],
      [{ time_part: "week 1" }, { x: "2025-12-29T00:00:00Z" }, true],
      [{ time_part: "week 53" }, { x: "2027-01-01T00:00:00Z" }, true],
      [{ time_part: "week 52" }, { x: "2027-01-01T00:00:00Z" }, false],
      [{ time_part: "week 1" }, { x: "1970-01-01T00:00:00Z" }, true],
      [{ time_part: "month 1-3" }, { x: "2026-04-01" }, false],
      [{ time_part: "month 11-" }, { x: "2026-11-13" }, true],
      [{ time_part: "year 2027-" }, { x: "2026-12-31T23:30:00-01:00" }, true],
      [{ time_part: "year -2025" }, { x: "2026-01-01" }, false],
      [{ time_part: "year 0-9999" }, { x: 1_763_000_000_000 }, false],
      [{ time_part: "year 0-9999" }, { x: "2026-02-30" }, false],
      [{ time_part: "year 0-9999" }, { x: {} }, false],
      [{ field: "timestamp", time_part: "hour 23" }, {}, true],
      [{ field: "timestamp", time_part: "hour 0-22" }, {}, false],
    ],
  ],
  [
    "equals_field",
    [
      [{ equals_field: "raw.y" }, { x: "a", y: "a" }, true],
      [{ equals_field: "raw.y" }, { x: "a", y: "A" }, false],
      [{ equals_field: "raw.y", ignore_case: true }, { x: "a", y: "A" }, true],
      [{ equals_field: "raw.y" }, { x: 1, y: "1" }, false],
      [{ equals_field: "raw.y" }, { x: [1, 2], y: [3, 2] }, true],
      [{ equals_field: "raw.y" }, { x: {}, y: {} }, false],
      [{ equals_field: "raw.y" }, {}, false],
      [{ equals_field: "type" }, { x: "login_failure" }, true],
    ],
  ],
  [
    "contains_field, starts_with_field and ends_with_field",
    [
      [{ contains_field: "raw.y" }, { x: "abc", y: "b" }, true],
      [{ contains_field: "raw.y" }, { x: "abc", y: "" }, false],
      [{ contains_field: "raw.y" }, { x: "a1c", y: 1 }, false],
      [{ starts_with_field: "raw.y" }, { x: "abc", y: ["z", "ab"] }, true],
      [{ starts_with_field: "raw.y" }, { x: "abc", y: "bc" }, false],
      [{ ends_with_field: "raw.y", ignore_case: true }, { x: "abc", y: "BC" }, true],
      [{ ends_with_field: "raw.y" }, { x: "abc", y: "BC" }, false],
    ],
  ],
  [
    "exists",
    [
      [{ exists: true }, { x: {} }, true],
      [{ exists: true }, { x: null }, false],
      [{ exists: true }, { x: [] }, false],
      [{ exists: false }, {}, true],
    ],
  ],
  [
    "any field",
    [
      [{ field: "*", equals: 5 }, { deep: [{ er: 5 }] }, true],
      [{ field: "*", equals: "5" }, { deep: [{ er: 5 }] }, false],
      [{ field: "*", equals: "login_failure" }, {}, true],
      [{ field: "*", equals: "custom" }, {}, false],
      [{ field: "*", contains: "deep" }, { deep: 1 }, false],
      [{ field: "*", cidr: "10.0.0.0/8" }, { a: ["x", "10.1.1.1"] }, true],
    ],
  ],
  [
    "any field of raw",
    [
      [{ field: "raw.*", equals: 5 }, { deep: [{ er: 5 }] }, true],
      [{ field: "raw.*", equals: "login_failure" }, {}, false],
      [{ field: "raw.*", equals: "login_failure" }, { a: "login_failure" }, true],
      [{ field: "raw.*", contains: "deep" }, { deep: 1 }, false],
      [{ field: "raw.*", contains: "x" }, { "*": "xyz" }, true],
    ],
  ],
];

describe.each(TABLE)("%s", (_, rows) => {
  test.each(rows)("%j on %j: %s", (condition, raw, wanted) => {
    expect(holds(condition, raw)).toBe(wanted);
  });
});

test("every operator has rows in the table, of events that match and of events that do not", () => {
  const rows = TABLE.flatMap(([, each]) => each);
  const missing = OPERATOR_NAMES.flatMap((name) =>
    [true, false]
      .filter((wanted) => !rows.some(([condition, , matches]) => name in condition && matches === wanted))
      .map((wanted) => `${name}: no row that is ${wanted}`),
  );
  expect(missing, "add rows to TABLE").toEqual([]);
});

test("a keyword matches in any field, ignoring case unless told otherwise", () => {
  const found = (input: object, raw: JsonObject) =>
    compileCondition(toKeywordTest(keywordSchema.parse(input)))(event(raw));
  expect(found({ keyword: "MIMIKATZ" }, { a: { b: ["run mimikatz now"] } })).toBe(true);
  expect(found({ keyword: ["nothing", "mimikatz"] }, { a: "Mimikatz" })).toBe(true);
  expect(found({ keyword: "MIMIKATZ", ignore_case: false }, { a: "mimikatz" })).toBe(false);
  expect(found({ keyword: "mimikatz" }, { mimikatz: 1 })).toBe(false);
});

test.each([
  [{ field: "raw.x" }, "", "needs an operator"],
  [{ field: "raw.x", equals: 1, gt: 2 }, "", "takes one operator, not equals and gt"],
  [{ field: "raw.x", like: "a" }, "like", "is unknown"],
  [{ field: "raw.x", regex: "x(?<=a)b" }, "regex", "RE2 has no look-behind, (?<=...) and (?<!...): `(?<=a)b`"],
  [{ field: "raw.x", regex: "(?<!a)b" }, "regex", "RE2 has no look-behind"],
  [{ field: "raw.x", regex: "a(?!b)" }, "regex", "RE2 has no look-ahead"],
  [{ field: "raw.x", regex: "(?>a)" }, "regex", "RE2 has no atomic groups"],
  [{ field: "raw.x", regex: "(a)\\1" }, "regex", "RE2 has no back-references"],
  [{ field: "raw.x", regex: ["a", "("] }, "regex[1]", "not a valid RE2 pattern"],
  [{ field: "raw.x", cidr: ["10.0.0.0/8", "10.0.0.0/33"] }, "cidr[1]", "a network such as"],
  [{ field: "raw.x", during: "22:00-06:00" }, "during", "only works on timestamp"],
  [{ field: "timestamp", during: "late" }, "during", "days"],
  [{ field: "raw.x", time_part: "late" }, "time_part", "a part of a time"],
  [{ field: "raw.x", time_part: "hour -" }, "time_part", "a part of a time"],
  [{ field: "raw.x", time_part: ["hour 1", "hour 24"] }, "time_part[1]", "0 to 23"],
  [{ field: "raw.x", time_part: "year 2026-2025" }, "time_part", "first year"],
  [{ field: "raw.*", time_part: "hour 1" }, "time_part", "any field (raw.*) takes"],
  [{ field: "raw.x", equals_field: "elsewhere" }, "equals_field", "not a field"],
  [{ field: "*", gt: 1 }, "gt", "any field (*) takes"],
  [{ field: "raw.*", exists: true }, "exists", "any field (raw.*) takes"],
  [{ field: "raw.x", equals_field: "raw.*" }, "equals_field", "allowed in conditions only"],
  [{ field: "id", contains: "evt_" }, "contains", "id takes equals"],
  [{ field: "raw.x", equals_field: "id" }, "equals_field", "every id is different"],
  [{ field: "raw.x", gt: 1, ignore_case: true }, "ignore_case", "does not compare text"],
  [{ field: "elsewhere", equals: 1 }, "field", "not a field"],
])("%j is refused on %s: %s", (input, field, words) => {
  const parsed = fieldTestSchema.safeParse(input);
  expect(parsed.success).toBe(false);
  expect(faultsOf(parsed.error!)).toContainEqual({ field, message: expect.stringContaining(words) });
});
