import { expect, test } from "vitest";
import type { Condition } from "../../data/event-conditions.ts";
import { parseTyped, readConditions, typedCondition, unfinished, writeConditions } from "./filter-text.ts";

const condition = (field: string, operator: Condition["operator"], value: string): Condition => ({
  field,
  operator,
  value,
});

test("conditions read in the address as they are meant", () => {
  const conditions = [condition("raw.user", "=", "admin"), condition("type", "!=", "dns_query")];
  expect(writeConditions(conditions)).toBe("raw.user=admin,type!=dns_query");
  expect(readConditions("raw.user=admin,type!=dns_query")).toEqual(conditions);
});

test.each([
  condition("raw.message", "=", "a,b\\,c\\\\"),
  condition("raw.message", "~", "C:\\"),
  condition("raw.a=b,c", "!=", "x=y!~<z"),
  condition("raw.dst_port", ">=", "1024"),
  condition("raw.user", "=", "\\*"),
  condition("raw.door", "=", 'Loading dock, "east" <b>'),
])("%j survives the address", (one) => {
  const other = condition("raw.user", "!~", "x");
  expect(readConditions(writeConditions([one, other, one])!)).toEqual([one, other, one]);
});

test("what is no condition is left out", () => {
  expect(readConditions("nothing,=x,raw.user=,raw.port>many,,!x")).toEqual([]);
  expect(writeConditions([])).toBeUndefined();
});

test("fields may be named without raw", () => {
  expect(parseTyped('user=admin door="Loading dock" dst_port > 1024 severity!=info refused')).toEqual({
    conditions: [
      condition("raw.user", "=", "admin"),
      condition("raw.door", "=", "Loading dock"),
      condition("raw.dst_port", ">", "1024"),
      condition("severity", "!=", "info"),
    ],
    words: "refused",
  });
});

test("words stay words", () => {
  expect(parseTyped('"front door" ada 02:00:5e:66:06:66')).toEqual({
    conditions: [],
    words: '"front door" ada 02:00:5e:66:06:66',
  });
});

test.each([
  ["use", { before: "", name: "use", operator: undefined, value: "" }],
  ["ada user=ad", { before: "ada ", name: "user", operator: "=", value: "ad" }],
  ['door="Loading d', { before: "", name: "door", operator: "=", value: "Loading d" }],
  ["user!=", { before: "", name: "user", operator: "!=", value: "" }],
])("%s is being typed", (text, expected) => {
  expect(unfinished(text)).toEqual(expected);
});

test("a condition can be typed again", () => {
  const typed = typedCondition(condition("raw.door", "!=", "Loading dock"));
  expect(typed).toBe('door!="Loading dock"');
  expect(parseTyped(typed).conditions).toEqual([condition("raw.door", "!=", "Loading dock")]);
});
