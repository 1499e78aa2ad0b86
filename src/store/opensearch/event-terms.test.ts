import { expect, test } from "vitest";
import type { Event } from "../../model/event.ts";
import { isCutTerm, pathLead, termsOf, valueOfTerm, valueTerm } from "./event-terms.ts";

const event = (raw: Event["raw"]): Event => ({
  id: "evt_1",
  type: "t",
  source: "custom",
  class: "security",
  severity: "info",
  timestamp: "2026-06-10T00:00:00.000Z",
  raw,
  enrichment: {},
});
const compare = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

test("terms sort as their values do: numbers, texts, false, true", () => {
  const values = [
    -(10n ** 300n),
    -(2n ** 64n),
    -(2n ** 53n) - 1n,
    -(2n ** 53n),
    -Number.MAX_SAFE_INTEGER,
    -1.5,
    -1e-7,
    0,
    5e-324,
    0.1,
    1,
    22,
    443,
    Number.MAX_SAFE_INTEGER,
    2n ** 53n,
    2n ** 53n + 1n,
    10n ** 21n,
    10n ** 300n,
    "",
    "1",
    "a",
    "é",
    "\u{10ffff}",
    false,
    true,
  ];
  const terms = values.map(valueTerm);
  expect(terms).toEqual(terms.toSorted(compare));
  expect(terms.map(valueOfTerm)).toEqual(values);
  expect(new Set(terms).size).toBe(values.length);
  expect(valueTerm(-0)).toBe(valueTerm(0));
  expect(valueTerm(2 ** 60)).toBe(valueTerm(2n ** 60n));
});

test("the term of a long text has its beginning, tells it from others and stays within OpenSearch's limit", () => {
  const long = "😀".repeat(700);
  expect(isCutTerm(valueTerm(long))).toBe(true);
  expect(isCutTerm(valueTerm("x".repeat(1000)))).toBe(false);
  expect(valueTerm(`${long}a`)).not.toBe(valueTerm(`${long}b`));
  expect(valueTerm(long).isWellFormed()).toBe(true);
  expect(Buffer.byteLength(pathLead("😀".repeat(256)) + valueTerm("\uffff".repeat(5000)))).toBeLessThan(32_766);
});

test("paths that contain the separator are told apart from values", () => {
  const leads = ["raw.a", "raw.a\u001f", "raw.a\u001e", "raw.a\u001e2", "raw.a\u001f2x"].map(pathLead);
  expect(new Set(leads).size).toBe(leads.length);
  for (const lead of leads) expect(lead.indexOf("\u001f")).toBe(lead.length - 1);
});

test("an event with very many values is marked", () => {
  const few = termsOf(event({ list: [1, 2] }));
  expect(few.isPartial).toBe(false);
  const many = termsOf(event({ list: Array.from({ length: 6000 }, (_, n) => n) }));
  expect(many.isPartial).toBe(true);
  expect(many.terms.length).toBeLessThan(6000);
  expect(termsOf(event({ ["k".repeat(600)]: { x: 1 } })).isPartial).toBe(true);
});
