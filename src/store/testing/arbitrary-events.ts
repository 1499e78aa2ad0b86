import * as fc from "fast-check";
import {
  ANY_FIELD_OPERATORS,
  OPERATOR_NAMES,
  OPERATORS,
  type Condition,
  type FieldTest,
  type Operator,
  type OperatorName,
  type ValueKind,
} from "../../model/condition.ts";
import type { EventDraft, JsonObject } from "../../model/event.ts";
import { ANY_FIELD, ANY_RAW_FIELD } from "../../model/field.ts";

// Random events and conditions, with few values and paths, so that conditions often match, and with every shape.

const word = fc.constantFrom(
  "alpha",
  "Alpha",
  "beta",
  "be",
  "",
  "ΑΣ Σας",
  "ας ΣΑΣ",
  "İstanbul",
  "straße",
  'q"uo\\te',
  "nul\u0000x",
  "line\nbreak",
  "10.0.0.1",
  "10.0.0.12",
  "10.1.2.3",
  "2001:db8::1",
  "::ffff:10.0.0.1",
  "10.0.0.01",
  "10.0.0",
  "10.0.0.1.1",
  "fe80::1%eth0",
  "x'); DROP TABLE events; --",
  "a,b",
  "%_",
  "\u0001",
  "a*b?\\",
  "😀 be",
  "K",
  "1",
  "login_failure",
  "2026-11-15T22:05:00Z",
  "2025-12-29 03:59:59.5+02:00",
  "2027-01-01",
  "2024-02-30T10:00:00Z",
  "2026-11-15T22:05:00",
);
const timeParts = fc.constantFrom(
  "minute 0-30",
  "minute 59",
  "hour 22-5",
  "hour 12",
  "day 1-28",
  "week 1",
  "week 53",
  "month 11-",
  "year -2026",
  "year 2027",
);
/** Near and past the limits of doubles and of signed and unsigned words, in pairs that round to the same double. */
const large = fc.constantFrom(
  2n ** 53n,
  2n ** 53n + 1n,
  -(2n ** 53n),
  -(2n ** 53n) - 1n,
  2n ** 63n - 1n,
  2n ** 63n,
  -(2n ** 63n) - 1n,
  2n ** 64n - 1n,
  2n ** 64n + 1n,
  10n ** 21n,
  10n ** 30n + 1n,
  -(10n ** 30n) - 1n,
);
const number = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom<number | bigint>(0, -1, 1, 2.5, 22, 443, 65535, -1e-7, 2 ** 53 - 1, 1 - 2 ** 53, 0.1),
  },
  { weight: 2, arbitrary: large },
);
const scalar = fc.oneof(word, number, fc.boolean());
const anything = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    scalar,
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b", "b.c", "~t/x", "c"), tie("value"), { maxKeys: 3 }),
  ),
})).value;

const raw = fc.record(
  {
    src_ip: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom("10.0.0.1", "10.0.0.12", "192.0.2.7", "2001:db8::1", "::ffff:10.0.0.1") },
      anything,
    ),
    dst_port: fc.oneof({ weight: 6, arbitrary: number }, anything),
    user: fc.oneof({ weight: 4, arbitrary: word }, anything),
    mixed: scalar,
    list: fc.array(scalar, { maxLength: 3 }),
    flag: fc.boolean(),
    host: fc.oneof({ weight: 3, arbitrary: word }, anything),
    port: fc.constantFrom(0, 3, 22, 443, -5),
    ports: fc.array(fc.constantFrom<number | string>(1, 2, 8, 443, "22"), { maxLength: 3 }),
    a: anything,
    "a.b": anything,
  },
  { requiredKeys: [] },
) as fc.Arbitrary<JsonObject>;

export function drafts(fromMs: number, toMs: number): fc.Arbitrary<EventDraft> {
  return fc.record({
    type: fc.constantFrom("login_failure", "motion", "Odd Type:1", "dns"),
    source: fc.constantFrom("custom", "platform_network", "platform_talk"),
    severity: fc.constantFrom("critical", "high", "medium", "low", "info"),
    class: fc.constantFrom("security", "network", "audit"),
    timestampMs: fc.integer({ min: fromMs, max: toMs - 1 }),
    raw,
    enrichment: fc.constantFrom<JsonObject>(
      {},
      { geo: { country: "AT", city: "Wien" } },
      { geo: { country: "DE" }, abuse_ipdb: { score: 80 } },
    ),
  });
}

const paths = fc.constantFrom(
  "raw.src_ip",
  "raw.dst_port",
  "raw.user",
  "raw.host",
  "raw.mixed",
  "raw.list",
  "raw.flag",
  "raw.a",
  "raw.a.b",
  "raw.a.b.c",
  "raw.a.c",
  "raw.a.~t/x",
  "raw.nothing",
  "raw",
  "enrichment",
  "enrichment.geo.country",
  "enrichment.geo",
  "enrichment.abuse_ipdb.score",
  "type",
);
const texts = fc.oneof(
  word.filter((text) => text !== ""),
  fc.constantFrom("a", "10.", "0.0.1", "TA", "ς", "i", "\\", '"', "e", "k", "nul"),
);
/** A word with wildcards, or random characters. */
const globs = fc.oneof(
  fc.constantFrom(
    "*",
    "?",
    "**",
    "a*",
    "*a",
    "*eta",
    "A?pha",
    "al*a",
    "*l*h*",
    "10.?.?.*",
    "*:*",
    "\\*",
    "?*be",
    "*ß*",
  ),
  fc.constantFrom(
    "a\\*b\\?\\\\",
    "a*b?\\",
    "*\\\\*",
    "*(*",
    "x'); DROP*",
    "*\n*",
    "nul?x",
    "[a]*",
    "??be",
    "? be",
    "%_",
  ),
  fc
    .array(fc.constantFrom("a", "l", "b", "*", "?", "\\", "1", "."), { minLength: 1, maxLength: 5 })
    .map((chars) => chars.join("")),
);
const patterns = fc.constantFrom(
  "^a",
  "a$",
  "[0-9]+\\.0",
  "(?i)ALPHA",
  "b.?t",
  "\\bte\\b",
  "^$",
  "x.y",
  "l.n",
  "ß",
  "(?<name>al|be)",
  "\\pL{500}|a",
  "\\p{Emoji}",
);
const networks = fc.constantFrom(
  "10.0.0.0/8",
  "10.0.0.0/30",
  "0.0.0.0/0",
  "2001:db8::/32",
  "::/0",
  "::fffe:0:0/95",
  "10.0.0.1",
  "10.0.0.0/24",
  "fe80::/10",
  "::ffff:10.0.0.0/104",
);
/** Fields that share values, with and without columns of their own. */
const relatedPaths = fc.oneof(paths, fc.constantFrom("raw.user", "raw.host", "raw.mixed", "raw.list"));

/** One value, a few, and sometimes more than an engine would write out in SQL. */
function oneOrSeveral(item: fc.Arbitrary<string>): fc.Arbitrary<string | string[]> {
  return fc.oneof(
    { weight: 6, arbitrary: item },
    { weight: 3, arbitrary: fc.array(item, { minLength: 1, maxLength: 4 }) },
    {
      weight: 1,
      arbitrary: fc
        .array(item, { minLength: 1, maxLength: 3 })
        .map((few) => [...Array<string>(60).fill(few[0]!), ...few]),
    },
  );
}

const test = (field: string, operator: OperatorName, value: FieldTest["value"], ignoreCase = false): FieldTest => ({
  kind: "test",
  field,
  operator,
  value,
  ignoreCase,
});

const of = (
  field: fc.Arbitrary<string>,
  operators: readonly OperatorName[],
  value: fc.Arbitrary<FieldTest["value"]>,
  ignoreCase: fc.Arbitrary<boolean> = fc.constant(false),
): fc.Arbitrary<FieldTest> =>
  fc
    .tuple(field, fc.constantFrom(...operators), value, ignoreCase)
    .map(([path, operator, wanted, ignores]) => test(path, operator, wanted, ignores));

const anyField = fc.constantFrom(ANY_FIELD, ANY_RAW_FIELD);
const TEXT_OPERATORS = ["contains", "starts_with", "prefix", "ends_with"] as const;

/** Values of each kind, and the fields that they are compared with if these are not all fields. */
export const KIND_SAMPLES: Readonly<
  Record<ValueKind, { readonly values: fc.Arbitrary<FieldTest["value"]>; readonly fields?: fc.Arbitrary<string> }>
> = {
  scalar: { values: scalar },
  scalars: { values: fc.array(scalar, { minLength: 1, maxLength: 4 }) },
  texts: { values: oneOrSeveral(texts) },
  globs: { values: oneOrSeveral(globs) },
  patterns: { values: oneOrSeveral(patterns) },
  networks: { values: oneOrSeveral(networks) },
  bound: { values: number },
  hours: {
    fields: fc.constant("timestamp"),
    values: fc.constantFrom(
      "08:00-18:00",
      "22:00-06:00",
      "sun",
      "mon-fri 07:00-12:00",
      "sun 20:00-03:00",
      "mon 20:00-03:00 Asia/Kolkata",
      "sat-sun America/New_York",
    ),
  },
  timeParts: { fields: fc.oneof(paths, fc.constant("timestamp")), values: oneOrSeveral(timeParts) },
  otherField: { fields: relatedPaths, values: relatedPaths },
  flag: { values: fc.boolean() },
};

/** Tests with each operator that a rule may hold. */
const operatorTests = OPERATOR_NAMES.map((name) => {
  const operator: Operator = OPERATORS[name];
  const { values, fields = ANY_FIELD_OPERATORS.includes(name) ? fc.oneof(paths, anyField) : paths } =
    KIND_SAMPLES[operator.value];
  return of(fields, [name], values, operator.ignoresCase ? fc.boolean() : fc.constant(false));
});

/** Tests of fields with few values and of the timestamp, which a store encodes in their own way. */
const topTests: fc.Arbitrary<FieldTest> = fc.oneof(
  of(
    fc.constantFrom("severity", "class", "source"),
    ["equals", "not_equals"],
    fc.constantFrom("high", "HIGH", "audit", "custom", "platform_network"),
    fc.boolean(),
  ),
  of(
    fc.constantFrom("severity", "source", "type", "timestamp"),
    [...TEXT_OPERATORS, "regex"],
    fc.constantFrom("i", "o", "T1"),
  ),
  of(fc.constantFrom("severity", "source", "timestamp"), ["glob"], fc.constantFrom("*1*", "*i*", "2026-??-*Z", "high")),
  of(
    fc.constantFrom("severity", "source", "timestamp", "type", "raw.user"),
    ["equals_field", "contains_field"],
    fc.constantFrom("severity", "source", "timestamp", "type", "raw.mixed"),
    fc.boolean(),
  ),
);

const fieldTest: fc.Arbitrary<Condition> = fc.oneof(...operatorTests, topTests);

export function conditions(): fc.Arbitrary<Condition> {
  return fc.letrec<{ condition: Condition }>((tie) => ({
    condition: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fieldTest,
      fc.array(tie("condition"), { maxLength: 3 }).map((of): Condition => ({ kind: "all", of })),
      fc.array(tie("condition"), { maxLength: 3 }).map((of): Condition => ({ kind: "any", of })),
      tie("condition").map((of): Condition => ({ kind: "not", of })),
    ),
  })).condition;
}
