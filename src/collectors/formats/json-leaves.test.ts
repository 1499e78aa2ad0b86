import { expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "./context.fixture.ts";
import { readDescriptions } from "./described/read-descriptions.ts";
import { jsonLeaves } from "./json-leaves.ts";
import { LineFormats } from "./line-formats.ts";
import { readWithFormats } from "./read-with-formats.ts";

test("the leaves of an object have their paths", () => {
  const text = 'x {"a":{"b":1,"c":"two"},"d":[1,"2",{"e":3}],"f":null,"g":true}';
  expect(jsonLeaves(text, 2)).toEqual({
    leaves: [
      ["a.b", "1"],
      ["a.c", "two"],
      ["d", '1, 2, {"e":3}'],
      ["g", "true"],
    ],
    leftOut: 0,
  });
  for (const other of ["[1]", "{", '{"a":1} and more', "null"]) expect(jsonLeaves(other, 0)).toBeUndefined();
});

test("leaves past the limits are counted", () => {
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`k${index}`, index])));
  expect(jsonLeaves(many, 0)).toMatchObject({ leftOut: 44 });
  const deep = `${'{"a":'.repeat(20)}1${"}".repeat(20)}`;
  expect(jsonLeaves(deep, 0)).toEqual({ leaves: [], leftOut: 1 });
});

test("a line that is nested as deep as its length allows neither throws nor takes long", () => {
  const { formats } = readDescriptions(`format: kettle
about: kettles
match: { contains: '"kettle"' }
json: true
events: [{ type: kettle_boiled, severity: low }]
tests: [{ line: '{"kettle":1}', type: kettle_boiled }]
`);
  const taught = new LineFormats({ shipped: [], taught: formats.map(({ description }) => description) });
  for (const part of ['{"a":', "["]) {
    const deep = part.repeat(60_000 / part.length) + "1" + (part === "[" ? "]" : "}").repeat(60_000 / part.length);
    for (const line of [`{"kettle":1,"x":${deep}}`, `{"x":${deep}}`]) {
      const event = onlyEvent(readWithFormats(taught, line, CONTEXT));
      expect(event.raw["line"]).toBe(line);
    }
  }
});
