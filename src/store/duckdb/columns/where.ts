import type { Condition, FieldTest, RelationOperator } from "../../../model/condition.ts";
import { compileCondition, isNegation, isRelation, OPERATORS, timeBound } from "../../../model/condition.ts";
import type { Event } from "../../../model/event.ts";
import { sourceName } from "../../../model/event.ts";
import { ANY_FIELD, ANY_RAW_FIELD } from "../../../model/field.ts";
import { globPieces } from "../../../model/glob.ts";
import { parseHours, type Hours } from "../../../model/hours.ts";
import { parseTimePart } from "../../../model/time-part.ts";
import { foldCase, SIGMA } from "../../../lib/text.ts";
import { DAY_MS, parseTime } from "../../../lib/time.ts";
import { unreachable } from "../../../lib/unreachable.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { readEventId } from "../../files/event-id.ts";
import { and, FALSE, not, notNull, onlyThen, or, Parameters, TRUE, type SqlContext } from "./sql.ts";
import { sortableText } from "./large-integer.ts";
import { hasLargeIntegers } from "./large-integer-sql.ts";
import {
  ENUM_COLUMNS,
  HOT_FIELDS,
  hotField,
  OVERSIZED,
  extraKey,
  UNNAMED_PATH,
  type HotField,
  type ExtraType,
} from "./column-table.ts";
import {
  textMatchesSql,
  usesScalarFunction,
  booleanSql,
  COMPARISONS,
  foldedSql,
  isComparison,
  largeIntegerSql,
  listOf,
  numberSql,
  encodeTest,
  textSql,
  type ValueTest,
} from "./value-tests.ts";

// SQL for conditions. Each test must mean the same as in compileCondition; a property test compares the two. The SQL of a
// test is never null, so that NOT inverts it.

/** A prefilter with more texts costs as much as it saves. */
const TEXT_PREFILTERS_MAX = 10;

function textPrefiltersMax({ isTerse }: SqlContext): number {
  return isTerse ? 1 : TEXT_PREFILTERS_MAX;
}

/** A test on the values of a field. */
type FieldValueTest = ValueTest & { readonly field: string };
/** A comparison of two fields. */
type RelationTest = FieldTest & { readonly operator: RelationOperator };

export function conditionSql(condition: Condition, platform: string, parameters: Parameters): string {
  const sql = (part: Condition): string => {
    switch (part.kind) {
      case "all":
        return and(part.of.map(sql));
      case "any":
        return or(part.of.map(sql));
      case "not":
        return not(sql(part.of));
      case "test":
        return orReadEventSql(part, testSql(part, platform, parameters), parameters);
      default:
        return unreachable(part);
    }
  };
  return sql(condition);
}

/** Reads the event itself for an oversized row, which has no `rest`. */
function orReadEventSql(test: FieldTest, sql: string, parameters: Parameters): string {
  if ((parameters.context.irregularBits & OVERSIZED) === 0 || !/\brest/.test(sql)) return sql;
  const encodedTest = parameters.bind(JSON.stringify(test));
  return `(CASE WHEN (odd & ${OVERSIZED}) <> 0 THEN event_matches(ts, seq, ${encodedTest}) ELSE ${sql} END)`;
}

function testSql(test: FieldTest, platform: string, parameters: Parameters): string {
  const { field, operator, value, ignoreCase } = test;
  if (isRelation(operator)) return relationSql({ ...test, operator }, platform, parameters);
  if (operator === "exists") return value === true ? existsSql(field, parameters) : not(existsSql(field, parameters));
  if (isNegation(operator)) {
    const { negationOf } = OPERATORS[operator];
    const positive = anyValueSql({ field, operator: negationOf, value, ignoreCase }, platform, parameters);
    return and([existsSql(field, parameters), not(positive)]);
  }
  return anyValueSql({ field, operator, value, ignoreCase }, platform, parameters);
}

/** A field with few possible values: the compiled condition selects the codes. */
function enumSql(test: FieldValueTest, field: keyof typeof ENUM_COLUMNS, platform: string): string {
  const matches = compileCondition({ kind: "test", ...test });
  const codes = enumNames(field, platform).flatMap((name, code) =>
    matches({ [field]: name } as unknown as Event) ? [code] : [],
  );
  if (codes.length === ENUM_COLUMNS[field].length) return TRUE;
  return codes.length === 0
    ? FALSE
    : codes.length === 1
      ? `${field} = ${codes[0]}`
      : `${field} IN (${codes.join(", ")})`;
}

export function enumNames(field: keyof typeof ENUM_COLUMNS, platform: string): readonly string[] {
  return field === "source" ? ENUM_COLUMNS.source.map((kind) => sourceName(platform, kind)) : ENUM_COLUMNS[field];
}

export function isEnumColumn(field: string): field is keyof typeof ENUM_COLUMNS {
  return field in ENUM_COLUMNS;
}

/** The JSON pointer to a value in `rest`. */
export const pointer = (type: ExtraType, path: string) =>
  `/${type}:${path.replaceAll("~", "~0").replaceAll("/", "~1")}`;

const ALWAYS_PRESENT: ReadonlySet<string> = new Set([
  "id",
  "type",
  "source",
  "severity",
  "class",
  "timestamp",
  "raw",
  "enrichment",
  ANY_FIELD,
]);

function existsSql(field: string, parameters: Parameters): string {
  if (ALWAYS_PRESENT.has(field)) return TRUE;
  const hot = hotField(field);
  if (hot) return or([`${hot.column} IS NOT NULL`, isIrregular(hot, parameters)]);
  const types: ExtraType[] = ["s", "n", "b", "m", "o"];
  if (hasLargeIntegers(parameters)) types.push("i");
  const kinds = types.map((type) => `contains(rest, ${parameters.bind(`${extraKey(type, field)}`)})`);
  return notNull(or(kinds));
}

/** FALSE if the field is regular in every row: then `rest` need not be read for it. */
function isIrregular({ bit }: HotField, { context }: Parameters): string {
  return (context.irregularBits & bit) === 0 ? FALSE : `(odd & ${bit}) <> 0`;
}

function anyValueSql(test: FieldValueTest, platform: string, parameters: Parameters): string {
  const { field } = test;
  if (isEnumColumn(field)) return enumSql(test, field, platform);
  if (field === "raw" || field === "enrichment") return FALSE;
  if (field === "id") return idSql(test);
  if (field === "timestamp") return timeSql(test, parameters);
  if (field === "type") return textSql(test, "type", parameters);
  if (field === ANY_FIELD) return everywhereSql(test, parameters);
  if (field === ANY_RAW_FIELD) return anywhereInRawSql(test, parameters);
  const hot = hotField(field);
  if (!hot) return extraSql(test, parameters);
  return or([columnSql(test, hot, parameters), and([isIrregular(hot, parameters), extraSql(test, parameters)])]);
}

function columnSql(test: ValueTest, { type, column }: HotField, parameters: Parameters): string {
  return notNull(type === "string" ? textSql(test, column, parameters) : numberSql(test, column));
}

function idSql(test: ValueTest): string {
  if (test.operator !== "equals" && test.operator !== "in") throw idRefused(test.operator);
  const seqs = listOf(test).flatMap((id) => {
    const position = typeof id === "string" ? readEventId(test.ignoreCase ? id.toLowerCase() : id) : undefined;
    return position ? [position.seq] : [];
  });
  return seqs.length === 0 ? FALSE : `seq IN (${seqs.join(", ")})`;
}

function idRefused(operator: string): QueryRefused {
  return new QueryRefused("query", `id takes equals, not_equals, in, not_in and exists, not ${operator}`);
}

const TIME_TEXT = `strftime(make_timestamp(ts * 1000), '%Y-%m-%dT%H:%M:%S.%gZ')`;

function timeSql(test: ValueTest, parameters: Parameters): string {
  const { operator } = test;
  if (isComparison(operator)) return `ts ${COMPARISONS[operator]} ${timeBound(operator, test.value as string)!}`;
  if (operator === "during") return hoursSql(test.value as string, parameters);
  if (operator === "time_part") return or(listOf(test).map((text) => timePartSql(text as string)));
  if (operator === "equals" || operator === "in") {
    const times = listOf(test).map((time) => parseTime(time as string)!);
    return `ts IN (${times.join(", ")})`;
  }
  return textSql(test, TIME_TEXT, parameters);
}

function hoursSql(text: string, parameters: Parameters): string {
  const hours = parseHours(text);
  if ("fault" in hours) throw new Error(hours.fault);
  return hours.zone === "UTC" ? utcHoursSql(hours) : `in_hours(ts, ${parameters.bind(text)})`;
}

function utcHoursSql({ days, from, to }: Hours): string {
  const intoDay = `(((ts % ${DAY_MS}) + ${DAY_MS}) % ${DAY_MS})`;
  const minute = `(${intoDay} // 60000)`;
  // 1970-01-01 was a Thursday.
  const weekday = (before: number) => `((((((ts - ${intoDay}) // ${DAY_MS}) + ${3 - before}) % 7) + 7) % 7)`;
  const wantedDays = days.flatMap((isWanted, day) => (isWanted ? [day] : []));
  const isWanted = (before: number) =>
    wantedDays.length === 7 ? TRUE : `${weekday(before)} IN (${wantedDays.join(", ")})`;
  const hasStarted = and([isWanted(0), `${minute} >= ${from}`]);
  if (from < to) return and([hasStarted, `${minute} < ${to}`]);
  return or([hasStarted, and([isWanted(1), `${minute} < ${to}`])]);
}

/** A part of the timestamp. DuckDB's weeks are ISO 8601 weeks too. */
function timePartSql(text: string): string {
  const wanted = parseTimePart(text);
  if ("fault" in wanted) throw new Error(wanted.fault);
  const { part, from, to } = wanted;
  const number = `date_part('${part}', make_timestamp(ts * 1000))`;
  const bounds = [`${number} >= ${from}`, `${number} <= ${to}`];
  return from <= to ? and(bounds) : or(bounds);
}

/** The test on values in `rest`. */
function extraSql(test: FieldValueTest, parameters: Parameters): string {
  const { field, operator } = test;
  const has = (text: string) => `contains(rest, ${parameters.bind(text)})`;
  const extract = (type: "s" | "n") => `json_extract_string(rest, ${parameters.bind(pointer(type, field))})`;
  const parts: string[] = [];

  const starts = jsonStarts(test, parameters);
  if (starts) parts.push(...starts.map((start) => has(`${extraKey("s", field)}${start}`)));
  else if (textSql(test, "rest", new Parameters()) !== FALSE) {
    // Parsing costs much more than a text search.
    const may = and([has(`${extraKey("s", field)}`), textMayHoldSql(test, parameters)]);
    parts.push(onlyThen(may, notNull(textSql(test, extract("s"), parameters))));
  }
  if (numberSql(test, "rest") !== FALSE) {
    const number = `try_cast(${extract("n")} AS DOUBLE)`;
    parts.push(onlyThen(has(`${extraKey("n", field)}`), notNull(numberSql(test, number))));
  }
  for (const item of listOf(test)) {
    if ((operator === "equals" || operator === "in") && typeof item === "boolean")
      parts.push(has(`${extraKey("b", field)}${item}`));
  }
  const large = hasLargeIntegers(parameters) ? largeIntegerSql(test, largeIntegerTextSql(field, parameters)) : FALSE;
  if (large !== FALSE) parts.push(onlyThen(has(`${extraKey("i", field)}`), notNull(large)));
  parts.push(onlyThen(has(`${extraKey("m", field)}`), severalSql(test, parameters)));
  return notNull(or(parts));
}

/** The encoding of a field's large integer. */
export function largeIntegerTextSql(field: string, parameters: Parameters): string {
  return `json_extract_string(rest, ${parameters.bind(`${pointer("i", field)}/i`)})`;
}

/** The start of the JSON of matching values. Equal strings have equal JSON, so that some tests need no parsing. */
function jsonStarts(test: ValueTest, { context }: Parameters): readonly string[] | undefined {
  const { operator, ignoreCase } = test;
  const texts = listOf(test).filter((value) => typeof value === "string");
  if (ignoreCase || texts.length === 0 || texts.length > textPrefiltersMax(context)) return undefined;
  if (operator === "equals" || operator === "in") return texts.map((text) => JSON.stringify(text));
  if (operator === "starts_with" || operator === "prefix")
    return texts.map((text) => JSON.stringify(text).slice(0, -1));
  return undefined;
}

/** The test on a list: true when any element passes. */
function severalSql(test: FieldValueTest, parameters: Parameters): string {
  const element = or([
    and(["json_type(x) = 'VARCHAR'", notNull(textSql(test, "(x ->> '$')", parameters))]),
    and([
      "json_type(x) IN ('BIGINT', 'UBIGINT', 'DOUBLE')",
      notNull(numberSql(test, "try_cast((x ->> '$') AS DOUBLE)")),
    ]),
    and(["json_type(x) = 'BOOLEAN'", booleanSql(test, "((x ->> '$') = 'true')")]),
    ...(hasLargeIntegers(parameters)
      ? [and(["json_type(x) = 'OBJECT'", notNull(largeIntegerSql(test, "(x ->> '$.i')"))])]
      : []),
  ]);
  if (element === FALSE) return FALSE;
  const list = `CAST(json_extract(rest, ${parameters.bind(pointer("m", test.field))}) AS JSON[])`;
  return `coalesce(list_bool_or(list_transform(${list}, lambda x: ${element})), FALSE)`;
}

/** The test on any value of the event. */
function everywhereSql(test: ValueTest, parameters: Parameters): string {
  const inExtra = onlyThen(
    and(["rest IS NOT NULL", jsonHasSql(test, parameters)]),
    `extra_matches(rest, ${parameters.bind(encodeTest(test))})`,
  );
  return or([
    textSql(test, "type", parameters),
    ...HOT_FIELDS.map((hot) => columnSql(test, hot, parameters)),
    notNull(inExtra),
  ]);
}

/** The test on any value of `raw`. */
function anywhereInRawSql(test: FieldValueTest, parameters: Parameters): string {
  const inExtra = onlyThen(
    and(["rest IS NOT NULL", jsonHasSql(test, parameters)]),
    `raw_extra_matches(rest, ${parameters.bind(encodeTest(test))})`,
  );
  // Values whose path is too long are together in `rest`, those of raw and of enrichment.
  const { operator, value, ignoreCase } = test;
  const encodedTest = parameters.bind(
    JSON.stringify({ kind: "test", field: ANY_RAW_FIELD, operator, value, ignoreCase }),
  );
  const unnamed = onlyThen(
    and(["rest IS NOT NULL", `contains(rest, ${parameters.bind(extraKey("m", UNNAMED_PATH))})`]),
    `event_matches(ts, seq, ${encodedTest})`,
  );
  return or([
    ...HOT_FIELDS.filter(({ path }) => path.startsWith("raw.")).map((hot) => columnSql(test, hot, parameters)),
    notNull(inExtra),
    notNull(unnamed),
  ]);
}

/** A prefilter for tests that only texts can pass: numbers among the listed values are left out. */
function textMayHoldSql(test: ValueTest, parameters: Parameters): string {
  const texts = listOf(test).filter((value) => typeof value === "string");
  if (texts.length > textPrefiltersMax(parameters.context)) return TRUE;
  return jsonHasSql({ ...test, value: texts }, parameters);
}

/** A prefilter: text that the JSON of a matching value must contain. It rules most rows out. */
function jsonHasSql(test: ValueTest, parameters: Parameters): string {
  const { ignoreCase } = test;
  const pieces = listOf(test).map((value) => requiredText(test, value));
  if (pieces.includes("")) return TRUE;
  const escaped = pieces.map((piece) => JSON.stringify(piece).slice(1, -1));
  if (usesScalarFunction(escaped.length, parameters.context)) {
    return textMatchesSql({ operator: "contains", value: escaped, ignoreCase }, "rest", parameters);
  }
  const fold = (text: string) => (ignoreCase ? foldCase(text) : text);
  const subject = ignoreCase ? foldedSql("rest", pieces) : "rest";
  return or(escaped.map((piece) => `contains(${subject}, ${parameters.bind(fold(piece))})`));
}

/** A text that every matching value contains; empty if there is none. */
function requiredText({ operator }: ValueTest, value: unknown): string {
  if (typeof value === "bigint") return sortableText(value);
  if (typeof value !== "string") return String(value);
  const { literal } = OPERATORS[operator];
  switch (literal) {
    case "whole":
    case "start":
    case "end":
    case "inside":
      return value;
    case "glob":
      return globPieces(value)
        .flatMap((piece) =>
          piece
            .map((char) => char ?? "\0")
            .join("")
            .split("\0"),
        )
        .reduce((longest, part) => (part.length > longest.length ? part : longest), "");
    case "pattern":
    case "none":
      return "";
    default:
      return unreachable(literal);
  }
}

/** The comparison of two fields. DuckDB does it itself if both have columns of their own. */
function relationSql(test: RelationTest, platform: string, parameters: Parameters): string {
  const { field, operator, ignoreCase } = test;
  const other = test.value as string;
  const [a, b] = [hotField(field), hotField(other)];
  const encodedTest = parameters.bind(encodeTest({ operator, value: "", ignoreCase }));
  const viaFunction = notNull(
    `fields_match(${valuesSql(field, platform, parameters)}, ${valuesSql(other, platform, parameters)}, ${encodedTest})`,
  );
  if (a && b)
    return or([
      ownRelationSql(a, b, test),
      onlyThen(or([isIrregular(a, parameters), isIrregular(b, parameters)]), viaFunction),
    ]);
  return onlyThen(and([existsSql(field, parameters), existsSql(other, parameters)]), viaFunction);
}

function ownRelationSql(a: HotField, b: HotField, { operator, ignoreCase }: RelationTest): string {
  if (a.type !== b.type) return FALSE;
  if (a.type === "number") return operator === "equals_field" ? notNull(`${a.column} = ${b.column}`) : FALSE;
  const [x, y] = [a, b].map(({ column }) => (ignoreCase ? foldedSql(column, [SIGMA]) : column)) as [string, string];
  const compareTexts = (name: string) => notNull(and([`${b.column} <> ''`, `${name}(${x}, ${y})`]));
  switch (operator) {
    case "equals_field":
      return notNull(`${x} = ${y}`);
    case "contains_field":
      return compareTexts("contains");
    case "starts_with_field":
      return compareTexts("starts_with");
    case "ends_with_field":
      return compareTexts("ends_with");
    default:
      return unreachable(operator);
  }
}

/** All values of a field as JSON: one value or a list. Null if there is none, or only an object. */
function valuesSql(field: string, platform: string, parameters: Parameters): string {
  if (field === "raw" || field === "enrichment") return "CAST(NULL AS VARCHAR)";
  if (field === "id") throw new QueryRefused("query", "id cannot be compared with another field");
  if (field === "type") return "to_json(type)";
  if (field === "timestamp") return `to_json(${TIME_TEXT})`;
  if (isEnumColumn(field)) {
    const names = enumNames(field, platform).map((name) => parameters.bind(JSON.stringify(name)));
    return `[${names.join(", ")}][${field} + 1]`;
  }
  const hot = hotField(field);
  const inExtra = extraValuesSql(field, parameters);
  return hot ? `coalesce(to_json(${hot.column}), ${inExtra})` : inExtra;
}

/**
 * The values of a field of an oversized row, as a JSON list; undefined if there is no such row. Every evaluation reads the
 * event from the journal.
 */
export function oversizedValuesSql(field: string, parameters: Parameters): string | undefined {
  if ((parameters.context.irregularBits & OVERSIZED) === 0) return undefined;
  return `CASE WHEN (odd & ${OVERSIZED}) <> 0 THEN event_values(ts, seq, ${parameters.bind(field)}) END`;
}

/** The values of a field in `rest`, as JSON. */
export function extraValuesSql(field: string, parameters: Parameters): string {
  // A search for the key is much cheaper than parsing, and most rows have one of the keys or none.
  const types: ExtraType[] = ["s", "n", "b", "m"];
  if (hasLargeIntegers(parameters)) types.push("i");
  const kinds = types.map(
    (type) =>
      `WHEN contains(rest, ${parameters.bind(`${extraKey(type, field)}`)}) THEN json_extract(rest, ${parameters.bind(pointer(type, field))})`,
  );
  return `CASE ${kinds.join(" ")} END`;
}
