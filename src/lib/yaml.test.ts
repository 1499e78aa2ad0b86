import * as fc from "fast-check";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { parseExact } from "./exact-json.ts";
import { parseYaml } from "./yaml.ts";

const read = (text: string) =>
  parseYaml(text, 100).map((document) =>
    "fault" in document ? ["fault", document.line] : [document.value, document.line],
  );

test.each([
  ["a: 1\n", [[{ a: 1 }, 1]]],
  ["", []],
  ["# nothing\n---\n---\n\n", []],
  [
    "---\na: 1\n---\nb: 2\n",
    [
      [{ a: 1 }, 2],
      [{ b: 2 }, 4],
    ],
  ],
  [
    "--- { a: 1 }\n--- |\n  text\n",
    [
      [{ a: 1 }, 1],
      ["text\n", 2],
    ],
  ],
  [
    "a: |\n  ---\n  not a mark\n---\r\nb: 2\r\n",
    [
      [{ a: "---\nnot a mark\n" }, 1],
      [{ b: 2 }, 5],
    ],
  ],
  [
    "a: [\n---\nb: 2\n---\nc: }\n",
    [
      ["fault", 2],
      [{ b: 2 }, 3],
      ["fault", 5],
    ],
  ],
  [
    "%YAML 1.2\n---\na: 1\n...\n---\nb: 2\n",
    [
      [{ a: 1 }, 3],
      [{ b: 2 }, 6],
    ],
  ],
  ["a: 1\na: 2\n", [["fault", 2]]],
  ["---- a\n", [["---- a", 1]]],
])("%j", (text, documents) => {
  expect(read(text)).toEqual(documents);
});

test("integers beyond 2^53 are bigint in any notation, and no other numbers are", () => {
  const text =
    "a: 9007199254740993\nb: [9007199254740991, 1.5, 0x20000000000001, 1e23, -1.5e+16, '9007199254740993']\n7: x\n";
  const [document] = parseYaml(text, 1);
  expect(document).toMatchObject({
    value: {
      a: 9007199254740993n,
      b: [9007199254740991, 1.5, 9007199254740993n, 10n ** 23n, -15_000_000_000_000_000n, "9007199254740993"],
      7: "x",
    },
  });
});

test("the line is that of the value or of its nearest existing ancestor", () => {
  const [, second] = parseYaml("x: 1\n---\na:\n  - b: 1\n  - b: 2\n", 10);
  if (!second || "fault" in second) throw new Error("not read");
  expect([["a", 1, "b"], ["a", 1, "c"], ["a", 7], ["z"]].map((path) => second.lineOf(path))).toEqual([5, 5, 4, 3]);
});

test("too many documents are one fault", () => {
  expect(parseYaml("a: 1\n---\nb: 1\n---\nc: 1\n", 2)).toEqual([{ line: 1, fault: "more than 2 documents" }]);
});

test("a document that is too long is a fault, and its neighbours are read", () => {
  const long = `b: [${"x, ".repeat(400_000)}]`;
  expect(read(`a: 1\n---\n${long}\n---\nc: 3\n`)).toEqual([
    [{ a: 1 }, 1],
    ["fault", 2],
    [{ c: 3 }, 5],
  ]);
});

test("a duplicate key is a fault with its line, however many keys there are", () => {
  const keys = Array.from({ length: 20_000 }, (_, i) => `  k${i}: ${i}\n`).join("");
  expect(read(`a:\n${keys}`)).toMatchObject([[{ a: { k19999: 19_999 } }, 1]]);
  const fault = "duplicate key in a map";
  expect(parseYaml(`a:\n${keys}  k7: 1\n`, 1)).toEqual([{ line: 20_002, fault }]);
  expect(parseYaml("a: { 1: x, '1': y, ? [1] : z, ? [2] : z }\nb: [{ c: 1, c: 2 }]\n", 1)).toEqual([
    { line: 2, fault },
  ]);
});

test("exponential aliases and endless nesting are faults with messages of our own", () => {
  const copies = (count: number) => `[${Array(count).fill("*a").join(", ")}]`;
  const [few] = parseYaml(`a: &a [1]\nb: ${copies(50)}\n`, 1);
  expect(few).toMatchObject({ value: { b: { length: 50 } } });
  const fault = "has more than 100 copies by aliases";
  expect(parseYaml(`a: &a [1, 2]\nb: ${copies(200)}\n`, 1)).toEqual([{ line: 1, fault }]);
  const bomb = Array.from({ length: 9 }, (_, i) => `n${i + 1}: &n${i + 1} [${Array(9).fill(`*n${i}`).join(", ")}]\n`);
  expect(parseYaml(`n0: &n0 [x]\n${bomb.join("")}`, 1)).toEqual([{ line: 1, fault }]);
  expect(parseYaml(`a: ${"[".repeat(5000)}${"]".repeat(5000)}`, 1)).toEqual([{ line: 1, fault: "is nested too deep" }]);
});

test("documents written one after the other are read back unchanged", () => {
  const value = fc.jsonValue({ maxDepth: 3 }).filter((json) => json !== null);
  fc.assert(
    fc.property(fc.array(value, { maxLength: 5 }), (values) => {
      const text = values.map((item) => `---\n${stringify(item)}`).join("");
      const read = parseYaml(text, 10).map((document) => ("value" in document ? document.value : document));
      // JSON has no -0.
      expect(parseExact(JSON.stringify(read))).toEqual(parseExact(JSON.stringify(values)));
    }),
  );
});
