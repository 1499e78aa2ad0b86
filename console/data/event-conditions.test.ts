import { expect, test } from "vitest";
import { boolOf, fieldAt, wordsOf, type Condition } from "./event-conditions.ts";

const condition = (field: string, operator: Condition["operator"], value: string): Condition => ({
  field,
  operator,
  value,
});

test("nothing to ask for", () => {
  expect(boolOf([], [])).toBeUndefined();
});

test("values of one field are alternatives, fields and words must all hold", () => {
  const conditions = [condition("type", "=", "a"), condition("raw.user", "=", "x"), condition("type", "=", "b")];
  expect(boolOf(conditions, ["w"])).toEqual({
    must: [{ field: "type", in: ["a", "b"] }, { field: "raw.user", equals: "x" }, { keyword: "w" }],
  });
});

test("what is filtered out is not required to be there", () => {
  expect(boolOf([condition("raw.user", "!=", "root"), condition("raw.user", "!~", "adm")], [])).toEqual({
    must_not: [
      { field: "raw.user", equals: "root" },
      { field: "raw.user", contains: "adm", ignore_case: true },
    ],
  });
});

test.each([
  ["443", { in: [443, "443"] }],
  ["true", { in: [true, "true"] }],
  ["10.0.0.0/8", { cidr: "10.0.0.0/8" }],
  ["adm*", { glob: "adm*", ignore_case: true }],
  ["a\\*b", { equals: "a*b" }],
  ["*", { exists: true }],
  ["12345678901234567890", { equals: "12345678901234567890" }],
])("= %s", (value, expected) => {
  expect(boolOf([condition("raw.x", "=", value)], [])).toEqual({ must: [{ field: "raw.x", ...expected }] });
});

test("networks and texts of one field are alternatives as well", () => {
  const bool = boolOf([condition("raw.ip", "=", "10.0.0.0/8"), condition("raw.ip", "=", "192.0.2.1")], []);
  expect(bool).toEqual({
    must: [
      {
        bool: {
          should: [
            { field: "raw.ip", cidr: "10.0.0.0/8" },
            { field: "raw.ip", equals: "192.0.2.1" },
          ],
        },
      },
    ],
  });
});

test("comparisons take numbers, and times for the timestamp", () => {
  const bool = boolOf([condition("raw.n", ">=", "5"), condition("timestamp", "<", "2026-11-15T00:00:00Z")], []);
  expect(bool).toEqual({
    must: [
      { field: "raw.n", gte: 5 },
      { field: "timestamp", lt: "2026-11-15T00:00:00Z" },
    ],
  });
});

test("a warning names the place of its field", () => {
  const bool = boolOf([condition("raw.usr", "=", "x"), condition("raw.ip", "!=", "y")], [])!;
  expect(fieldAt({ bool }, "query.bool.must[0].field")).toBe("raw.usr");
  expect(fieldAt({ bool }, "query.bool.must_not[0].field")).toBe("raw.ip");
  expect(fieldAt({ bool }, "query.bool.should[3].field")).toBeUndefined();
});

test("an entity is named by any of its fields", () => {
  expect(boolOf([condition("entity", "=", "user:ada"), condition("entity", "!=", "phone:114")], [])).toEqual({
    must: [{ bool: { should: [{ field: "raw.user", equals: "ada" }] } }],
    must_not: [
      {
        bool: {
          should: [
            { field: "raw.from", equals: "114" },
            { field: "raw.to", equals: "114" },
          ],
        },
      },
    ],
  });
});

test("a phrase is one word", () => {
  expect(wordsOf('ada "front door" x"')).toEqual(["ada", "front door", 'x"']);
});
