import * as fc from "fast-check";
import { expect, test } from "vitest";
import { START_MS } from "../detection/testing/arbitrary-rules.ts";
import { DetectionEngine } from "../detection/detection-engine.ts";
import { idMaker } from "../lib/id.ts";
import { formatTime } from "../lib/time.ts";
import { compileCondition } from "../model/condition.ts";
import { sourceNames, type Event, type JsonObject, type JsonValue } from "../model/event.ts";
import { toConditions } from "../model/rule.ts";
import { plainRule } from "../model/rule.fixture.ts";
import { importSigma } from "./import.ts";
import {
  logicHolds,
  selectionHolds,
  textHolds,
  tokensOf,
  valuesAt,
  type Line,
  type Logic,
  type Scalar,
  type Selection,
} from "./specification.fixture.ts";

// Random Sigma rules, and events derived from them: some that satisfy every line, and the same with one line violated. The
// engine, the reference evaluator and a plain implementation of the Sigma specification must agree on each. Rules that the
// import deliberately treats differently, with a remark, are not generated.

const field = fc.constantFrom("f1", "f2", "f3", "f4");
const text = fc.string({
  unit: fc.constantFrom("a", "B", "c", "*", "?", "\\", "-", " ", "."),
  minLength: 1,
  maxLength: 6,
});

/** A text that the pattern matches: wildcards filled in, and case swapped where it does not matter. */
function filled(pattern: string, isCased: boolean, fill: string): string {
  const made = tokensOf(pattern).map((token) => ("any" in token ? fill : "one" in token ? "x" : token.char));
  const whole = made.join("");
  return isCased ? whole : [...whole].map((char, i) => (i % 2 ? char.toUpperCase() : char.toLowerCase())).join("");
}

const textLine = fc
  .record({
    field,
    values: fc.array(text, { minLength: 1, maxLength: 3 }),
    place: fc.constantFrom([], ["contains"], ["startswith"], ["endswith"]),
    flags: fc.subarray(["cased", "all", "neq", "windash"]),
    fill: fc.constantFrom("", "zz"),
    isList: fc.boolean(),
  })
  .map(({ field, values, place, flags, fill, isList }): Line => {
    const isCased = flags.includes("cased");
    const fits = values.map((value) => filled(value, isCased, fill));
    const before = place[0] === "contains" || place[0] === "endswith" ? "q" : "";
    const after = place[0] === "contains" || place[0] === "startswith" ? "q" : "";
    const around = fits.map((fit) => before + fit + after);
    const [first] = around as [string];
    return {
      field,
      values,
      modifiers: [...place, ...flags],
      holds: () => false,
      good: [
        isList ? ["nothing", ...around] : flags.includes("all") ? around.join("") : first,
        first.replace("-", "/"),
      ],
      bad: ["nothing", "", `${first}!`, first.slice(1), first.toUpperCase(), undefined, null, [], ["nothing"]],
    };
  });

const plainLine = fc
  .record({
    field,
    values: fc.array(fc.constantFrom<Scalar>(5, 0, -3, 1.5, "5", "x", "True", true, false, "", null), {
      minLength: 1,
      maxLength: 3,
    }),
    flags: fc.subarray(["cased", "neq"]),
  })
  .map(({ field, values, flags }): Line => {
    const [first] = values as [Scalar];
    return {
      field,
      values,
      modifiers: flags,
      holds: () => false,
      good: [first, String(first), ["other", first]],
      bad: [6, 50, "05", "5 ", "no", true, false, "TRUE", undefined, null, [7], 0],
    };
  });

/** PCRE patterns with equivalent JavaScript expressions. */
const PATTERNS: readonly (readonly [pattern: string, same: RegExp, good: string, bad: string])[] = [
  ["^a\\sb", /^a[\t\n\v\f\r ]b/, "a\vb", "a.b"],
  ["a[\\s.]+b", /a[\t\n\v\f\r .]+b/, "a .\v b", "a-b"],
  ["a\\Sb", /a[^\t\n\v\f\r ]b/, "a-b", "a\vb"],
  ["b$", /b(?=\n?(?![^]))/, "ab\n", "b\n\n"],
  ["a.c", /a[^\n]c/, "abc", "a\nc"],
  ["(ab|B+)c{2}", /(ab|B+)c{2}/, "xBBcc", "bcc"],
];

const patternLine = fc
  .record({
    field,
    rows: fc.subarray([...PATTERNS], { minLength: 1, maxLength: 3 }),
    flags: fc.subarray(["all", "neq"]),
  })
  .map(({ field, rows, flags }): Line => {
    const isFound = ([, same]: (typeof PATTERNS)[number], found: readonly JsonValue[]) =>
      found.some((value) => typeof value === "string" && same.test(value));
    return {
      field,
      values: rows.map(([pattern]) => pattern),
      modifiers: ["re", ...flags],
      holds: (found) =>
        flags.includes("all") ? rows.every((row) => isFound(row, found)) : rows.some((row) => isFound(row, found)),
      good: [rows.map(([, , good]) => good), rows[0]![2]],
      bad: [...rows.map(([, , , bad]) => bad), undefined, "", []],
    };
  });

const addressOf = (text: string) => text.split(".").reduce((number, part) => number * 256 + Number(part), 0);

const networkLine = fc
  .record({ field, bits: fc.integer({ min: 0, max: 32 }), address: fc.ipV4(), isNot: fc.boolean() })
  .map(({ field, bits, address, isNot }): Line => {
    const size = 2 ** (32 - bits);
    const network = (text: string) => Math.floor(addressOf(text) / size);
    return {
      field,
      values: [`${address}/${bits}`],
      modifiers: isNot ? ["cidr", "neq"] : ["cidr"],
      holds: (found) =>
        found.some(
          (value) => typeof value === "string" && /^(\d+\.){3}\d+$/.test(value) && network(value) === network(address),
        ),
      good: [address, ["x", address]],
      bad: ["127.0.0.1", "223.255.255.255", "x", undefined, "5"],
    };
  })
  // A network must not have bits after its prefix.
  .map((line): Line => {
    const [address, bits] = String(line.values[0]).split("/") as [string, string];
    const size = 2 ** (32 - Number(bits));
    const start = Math.floor(addressOf(address) / size) * size;
    const parts = [24, 16, 8, 0].map((shift) => Math.floor(start / 2 ** shift) % 256);
    return { ...line, values: [`${parts.join(".")}/${bits}`] };
  });

const ORDERS = {
  lt: (a: number, b: number) => a < b,
  lte: (a: number, b: number) => a <= b,
  gt: (a: number, b: number) => a > b,
  gte: (a: number, b: number) => a >= b,
};

const orderLine = fc
  .record({
    field,
    order: fc.constantFrom(...(Object.keys(ORDERS) as (keyof typeof ORDERS)[])),
    bound: fc.integer({ min: -3, max: 3 }),
  })
  .map(({ field, order, bound }): Line => ({
    field,
    values: [bound],
    modifiers: [order],
    holds: (found) => found.some((value) => typeof value === "number" && ORDERS[order](value, bound)),
    good: [bound - 1, bound + 1, bound],
    bad: [bound, bound - 1, bound + 1, undefined, [], null],
  }));

/** Some times, with the parts of their dates. */
const MOMENTS = [
  ["2026-11-15T22:05:00Z", { minute: 5, hour: 22, day: 15, week: 46, month: 11, year: 2026 }],
  ["2025-12-29 01:59:59.5+02:00", { minute: 59, hour: 23, day: 28, week: 52, month: 12, year: 2025 }],
  ["2027-01-01", { minute: 0, hour: 0, day: 1, week: 53, month: 1, year: 2027 }],
  ["2024-12-30 12:30:00", { minute: 30, hour: 12, day: 30, week: 1, month: 12, year: 2024 }],
] as const;

const timeLine = fc
  .record({
    field,
    part: fc.constantFrom("minute", "hour", "day", "week", "month", "year"),
    order: fc.constantFrom(undefined, ...(Object.keys(ORDERS) as (keyof typeof ORDERS)[])),
    moments: fc.subarray([...MOMENTS], { minLength: 1, maxLength: 2 }),
    isNot: fc.boolean(),
  })
  .map(({ field, part, order, moments, isNot }): Line => {
    const wanted = moments.map(([, parts]) => parts[part]);
    const compare = order === undefined ? (a: number, b: number) => a === b : ORDERS[order];
    const partOf = (value: JsonValue) => MOMENTS.find(([text]) => text === value)?.[1][part];
    const all = MOMENTS.map(([text]) => text);
    return {
      field,
      values: wanted,
      modifiers: [part, ...(order === undefined ? [] : [order]), ...(isNot ? ["neq"] : [])],
      holds: (found) =>
        found.some((value) => {
          const number = partOf(value);
          return number !== undefined && wanted.some((each) => compare(number, each));
        }),
      good: [moments[0]![0], ["x", ...all]],
      bad: [...all, "2026-02-30", wanted[0]!, String(wanted[0]), undefined, []],
    };
  });

const existsLine = fc.record({ field, wanted: fc.boolean() }).map(({ field, wanted }): Line => ({
  field,
  values: [wanted],
  modifiers: ["exists"],
  holds: (_, raw) => (raw[field] !== undefined) === wanted,
  good: [wanted ? "" : undefined],
  bad: [wanted ? undefined : "x", ["x"], "no"],
}));

const referenceLine = fc
  .record({ field, other: field, place: fc.constantFrom([], ["contains"], ["startswith"], ["endswith"]) })
  .map(({ field, other, place }): Line => ({
    field,
    values: [other],
    modifiers: ["fieldref", ...place],
    holds: (found, raw) =>
      found.some((a) =>
        valuesAt(raw, other).some((b) => {
          // Numbers and booleans equal themselves; only texts contain each other.
          if (typeof a !== "string" && a === b) return place.length === 0 && a !== null && typeof a !== "object";
          // Every text contains the empty text, which therefore proves nothing.
          if (typeof a !== "string" || typeof b !== "string" || (b === "" && place.length > 0)) return false;
          return textHolds(place, b.replaceAll(/[\\*?]/g, "\\$&"), a);
        }),
      ),
    good: ["aBc", "abc"],
    bad: ["a", "", "x", undefined, ["x", "ABC"]],
  }));

/** Text tests are generated for texts and comparisons for numbers; for other types the import differs, with a remark. */
const textLines = fc.oneof(textLine, patternLine, networkLine, timeLine, existsLine, referenceLine);
const numberLines = fc.oneof(plainLine, orderLine, existsLine);
const kinds = fc.constantFrom(textLines, numberLines);

const keywords = fc.record({
  keywords: fc.array(fc.string({ unit: fc.constantFrom("a", "B", "c", "*", "?"), minLength: 1, maxLength: 3 }), {
    minLength: 1,
    maxLength: 3,
  }),
  all: fc.boolean(),
});

const logicOf = (names: readonly string[]): fc.Arbitrary<Logic> =>
  fc.letrec<{ logic: Logic }>((tie) => ({
    logic: fc.oneof(
      { maxDepth: 2, depthSize: "small" },
      fc.record({ name: fc.constantFrom(...names) }),
      fc.record({ quantity: fc.constantFrom("1" as const, "all" as const), of: fc.constant("them" as const) }),
      fc.record({ quantity: fc.constantFrom("1" as const, "all" as const), of: fc.constant("sel_*" as const) }),
      fc.record({ not: tie("logic") }),
      fc.record({
        word: fc.constantFrom("and" as const, "or" as const),
        parts: fc.array(tie("logic"), { minLength: 2, maxLength: 3 }),
      }),
    ),
  })).logic;

/** A log source, an event of it, and an event of another. */
const LOGSOURCES = [
  { logsource: { category: "c" }, here: { type: "c" }, elsewhere: { type: "d" } },
  {
    logsource: { product: "windows", service: "security" },
    here: { type: "log", raw: { Channel: "Security" } },
    elsewhere: { type: "log", raw: { Channel: "System" } },
  },
  {
    logsource: { category: "c", product: "linux" },
    here: { type: "c", raw: { os: "Linux" } },
    elsewhere: { type: "c", raw: { os: "windows" } },
  },
] as const;

interface Case {
  readonly place: (typeof LOGSOURCES)[number];
  readonly selections: Readonly<Record<string, Selection>>;
  readonly logic: Logic;
}

const cases: fc.Arbitrary<Case> = kinds.chain((lines) => {
  const lineList = fc.uniqueArray(lines, { minLength: 1, maxLength: 3, selector: (line) => line.field });
  const selection: fc.Arbitrary<Selection> =
    lines === textLines
      ? fc.oneof({ weight: 4, arbitrary: fc.record({ lines: lineList }) }, { weight: 1, arbitrary: keywords })
      : fc.record({ lines: lineList });
  return fc.record({
    place: fc.constantFrom(...LOGSOURCES),
    selections: fc.record({ sel_a: selection, sel_b: selection, other: selection }),
    logic: logicOf(["sel_a", "sel_b", "other"]),
  });
});

function write(node: Logic): string {
  if ("name" in node) return node.name;
  if ("not" in node) return `not (${write(node.not)})`;
  if ("of" in node) return `${node.quantity} of ${node.of}`;
  return `(${node.parts.map(write).join(` ${node.word} `)})`;
}

function detectionOf({ selections, logic }: Case): JsonObject {
  const written = Object.entries(selections).map(([name, selection]): [string, JsonValue] => {
    if (!("lines" in selection)) {
      return [name, selection.all ? { "|all": [...selection.keywords] } : [...selection.keywords]];
    }
    return [
      name,
      Object.fromEntries(
        selection.lines.map(({ field, modifiers, values }) => [
          [field, ...modifiers].join("|"),
          values.length === 1 ? values[0]! : [...values],
        ]),
      ),
    ];
  });
  return { ...Object.fromEntries(written), condition: write(logic) };
}

/** Fields that satisfy every line of some selections; then the same with one field changed. */
function rawsOf({ selections }: Case, pick: (count: number) => number): JsonObject[] {
  const chosen = Object.values(selections).filter(() => pick(3) > 0);
  const lines = chosen.flatMap((selection) => ("lines" in selection ? selection.lines : []));
  const raw: Record<string, JsonValue> = {};
  const put = (into: Record<string, JsonValue>, name: string, value: JsonValue | undefined) => {
    if (value === undefined) delete into[name];
    else into[name] = value;
  };
  for (const line of lines) put(raw, line.field, line.good[pick(line.good.length)]);
  for (const selection of chosen) {
    if ("keywords" in selection) raw["message"] = selection.keywords.map((word) => filled(word, false, "y")).join(" ");
  }
  const changed = lines.map((line) => {
    const other = { ...raw };
    put(other, line.field, line.bad[pick(line.bad.length)]);
    return other;
  });
  return [raw, {}, ...changed];
}

/** A field that is null or an empty list exists in Sigma, but not in our conditions. */
function differsOnExistence({ selections }: Case, raw: JsonObject): boolean {
  return Object.values(selections).some(
    (selection) =>
      "lines" in selection &&
      selection.lines.some(
        ({ field, modifiers }) =>
          modifiers.includes("exists") && raw[field] !== undefined && valuesAt(raw, field).length === 0,
      ),
  );
}

const nextId = idMaker("evt_", () => START_MS);

function eventOf({ type, raw: there = {} }: { type: string; raw?: JsonObject }, raw: JsonObject): Event {
  return {
    id: nextId(),
    type,
    source: "custom",
    class: "security",
    severity: "info",
    timestamp: formatTime(START_MS),
    raw: { ...raw, ...there },
    // Not sent by the source: no keyword may match it.
    enrichment: { geo: { country: "a" }, note: "aBc abc" },
  };
}

const sources = sourceNames("platform");

test("engine, reference evaluator and specification agree on random rules and events", () => {
  const engine = new DetectionEngine({ now: () => START_MS });
  const seen = { matched: 0, passedOver: 0, refused: 0 };
  fc.assert(
    fc.property(cases, fc.infiniteStream(fc.nat(1000)), (sample, numbers) => {
      const detection = detectionOf(sample);
      const { logsource, here, elsewhere } = sample.place;
      const content = JSON.stringify({ title: "T", level: "low", logsource, detection });
      const [outcome] = importSigma([{ name: "a.yml", content }], { sources });
      if (!outcome!.rule) {
        seen.refused++;
        return;
      }
      const { conditions } = outcome!.rule;
      const plain = compileCondition(toConditions(conditions));
      engine.setRule(plainRule({ conditions, activeAfter: null }));
      const isDead = outcome!.remarks.some(({ message }) => message.startsWith("can never match"));
      const pick = (count: number) => numbers.next().value! % count;
      for (const raw of [...rawsOf(sample, pick), ...rawsOf(sample, pick)]) {
        if (differsOnExistence(sample, raw)) continue;
        const event = eventOf(here, raw);
        const truth = Object.fromEntries(
          Object.entries(sample.selections).map(([name, selection]) => [name, selectionHolds(selection, event.raw)]),
        );
        const wanted = logicHolds(sample.logic, truth);
        const found = {
          plain: plain(event),
          engine: engine.process([event]).findings.length > 0,
          elsewhere: plain(eventOf(elsewhere, raw)),
        };
        expect({ ...found, detection, raw: event.raw }).toEqual({
          plain: wanted,
          engine: wanted,
          elsewhere: false,
          detection,
          raw: event.raw,
        });
        if (isDead) expect(wanted).toBe(false);
        if (wanted) seen.matched++;
        else seen.passedOver++;
      }
    }),
    { numRuns: 1000 },
  );
  // Ensures that both outcomes occur often and that nearly all rules are accepted.
  expect(seen.matched).toBeGreaterThan(1000);
  expect(seen.passedOver).toBeGreaterThan(1000);
  expect(seen.refused).toBeLessThan(150);
});
