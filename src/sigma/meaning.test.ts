import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileCondition } from "../model/condition.ts";
import { sourceNames, type Event, type JsonObject } from "../model/event.ts";
import { toConditions } from "../model/rule.ts";
import { importSigma } from "./import.ts";

// An independent, simple implementation of Sigma's semantics, compared with the import.

const sources = sourceNames("platform");

function holds(detection: object): (raw: JsonObject) => boolean {
  const content = JSON.stringify({ title: "T", level: "low", logsource: { category: "c" }, detection });
  const [outcome] = importSigma([{ name: "a.yml", content }], { sources });
  if (!outcome!.rule) throw new Error(JSON.stringify(outcome!.reasons));
  const matches = compileCondition(toConditions(outcome!.rule.conditions));
  return (raw) => matches({ ...EVENT, raw });
}

const EVENT: Omit<Event, "raw"> = {
  id: "evt_1",
  type: "c",
  source: "custom",
  class: "security",
  severity: "info",
  timestamp: "2026-11-15T10:00:00.000Z",
  enrichment: {},
};

/** A small alphabet, rich in wildcards and escapes, so that random texts often match. */
const text = fc.string({ unit: fc.constantFrom("a", "B", "*", "?", "\\", "."), maxLength: 6 });
const subject = fc.string({ unit: fc.constantFrom("a", "b", "*", "?", "\\", "."), maxLength: 8 });

/** Sigma's wildcards as a regular expression, character by character. */
function expressionOf(pattern: string): string {
  let expression = "";
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!;
    if (char === "\\" && "*?\\".includes(pattern[i + 1] ?? " ")) expression += `\\${pattern[++i]}`;
    else if (char === "*") expression += "[^]*";
    else if (char === "?") expression += "[^]";
    else expression += char.replace(/[\\.]/, "\\$&");
  }
  return expression;
}

describe("a text with wildcards", () => {
  const places = [
    ["", "^", "$"],
    ["|contains", "", ""],
    ["|startswith", "^", ""],
    ["|endswith", "", "$"],
  ] as const;

  test.each(places)("field%s matches like its regular expression", (modifier, start, end) => {
    fc.assert(
      fc.property(text, subject, (pattern, value) => {
        const plain = new RegExp(`${start}${expressionOf(pattern)}${end}`, "i").test(value);
        expect(holds({ s: { [`f${modifier}`]: pattern }, condition: "s" })({ f: value })).toBe(plain);
        const cased = new RegExp(`${start}${expressionOf(pattern)}${end}`).test(value);
        expect(holds({ s: { [`f${modifier}|cased`]: pattern }, condition: "s" })({ f: value })).toBe(cased);
      }),
    );
  });
});

test("a base64offset value is found at any offset of an encoded text", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "Z", "0", " ", "/"), maxLength: 9 });
  const needle = fc.string({ unit: fc.constantFrom("x", "Y", "-", "é"), minLength: 3, maxLength: 9 });
  fc.assert(
    fc.property(letters, needle, letters, fc.constantFrom("", "wide|"), (before, wanted, after, wide) => {
      const encoding = wide === "" ? "utf8" : "utf16le";
      const value = Buffer.from(before + wanted + after, encoding).toString("base64");
      expect(holds({ s: { [`f|${wide}base64offset|contains`]: wanted }, condition: "s" })({ f: value })).toBe(true);
    }),
  );
});

type Logic = { word: "and" | "or"; parts: Logic[] } | { not: Logic } | { name: string };

const { logic } = fc.letrec<{ logic: Logic }>((tie) => ({
  logic: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.record({ name: fc.constantFrom("p", "q", "r") }),
    fc.record({ not: tie("logic") }),
    fc.record({
      word: fc.constantFrom("and" as const, "or" as const),
      parts: fc.array(tie("logic"), { minLength: 1, maxLength: 3 }),
    }),
  ),
}));

function write(node: Logic): string {
  if ("name" in node) return node.name;
  if ("not" in node) return `not (${write(node.not)})`;
  return `(${node.parts.map(write).join(` ${node.word} `)})`;
}

function evaluate(node: Logic, truth: Record<string, boolean>): boolean {
  if ("name" in node) return truth[node.name]!;
  if ("not" in node) return !evaluate(node.not, truth);
  return node.word === "and"
    ? node.parts.every((part) => evaluate(part, truth))
    : node.parts.some((part) => evaluate(part, truth));
}

test("and, or and not combine correctly, however they are nested", () => {
  const truths = fc.record({ p: fc.boolean(), q: fc.boolean(), r: fc.boolean() });
  fc.assert(
    fc.property(logic, truths, (node, truth) => {
      const matches = holds({ p: { p: 1 }, q: { q: 1 }, r: { r: 1 }, condition: write(node) });
      const raw = Object.fromEntries(Object.entries(truth).map(([name, value]) => [name, value ? 1 : 0]));
      expect(matches(raw)).toBe(evaluate(node, truth));
    }),
  );
});

test("every document has one outcome, and nothing throws, whatever is imported", () => {
  const key = fc.constantFrom(
    "title",
    "logsource",
    "detection",
    "condition",
    "correlation",
    "filter",
    "rules",
    "type",
    "a|re",
    "a|expand",
    "__proto__",
    "constructor",
    "a|all|contains",
    "timespan",
    "id",
    "name",
    "tags",
    "action",
  );
  const scalar = fc.oneof(
    fc.constant(null),
    fc.boolean(),
    fc.integer(),
    fc.constantFrom("s", "1 of them", "event_count", "(", "*", "5m", "global", "constructor", "%a%"),
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      scalar,
      fc.array(tie("tree"), { maxLength: 3 }),
      fc.dictionary(key, tie("tree"), { maxKeys: 5 }),
    ),
  }));
  const shaped = fc.record(
    {
      title: scalar,
      level: scalar,
      logsource: fc.constant({ category: "c" }),
      detection: tree,
      correlation: tree,
      filter: tree,
    },
    { requiredKeys: ["title"] },
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(shaped, tree), { maxLength: 4 }), fc.string(), (documents, rest) => {
      const content = [...documents.map((document) => JSON.stringify(document)), rest].join("\n---\n");
      for (const outcome of importSigma([{ name: "a.yml", content }], { sources })) {
        expect(outcome.kind === "refused").toBe(outcome.reasons.length > 0);
        expect(outcome.kind === "taken").toBe(outcome.rule !== null);
      }
    }),
    { numRuns: 1000 },
  );
});
