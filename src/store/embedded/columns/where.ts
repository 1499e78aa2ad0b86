import type { Condition, FieldTest } from "../../../model/condition.ts";
import { compileCondition, timeBound } from "../../../model/condition.ts";
import type { Event } from "../../../model/event.ts";
import { sourceName } from "../../../model/event.ts";
import { ANY_FIELD, ANY_RAW_FIELD } from "../../../model/field.ts";
import { globPieces } from "../../../model/glob.ts";
import { parseHours, type Hours } from "../../../model/hours.ts";
import { foldCase, SIGMA } from "../../../lib/text.ts";
import { DAY_MS, parseTime } from "../../../lib/time.ts";
import { QuestionRefused } from "../../store.ts";
import { readEventId } from "../event-id.ts";
import { and, FALSE, not, notNull, onlyThen, or, Parameters, TRUE, type Facts } from "./sql.ts";
import { hasLargeIntegers, largeIntegerSql, sortableText } from "./large-integer.ts";
import { CODED, HOT_FIELDS, hotField, LARGE, restKey, UNNAMED_PATH, type HotField, type RestType } from "./table.ts";
import {
  askBack,
  asksBack,
  booleanSql,
  COMPARISONS,
  foldedSql,
  isComparison,
  listOf,
  numberSql,
  questionOf,
  textSql,
  type ValueTest,
} from "./value.ts";

// Conditions in the engine's words. Every test here must mean what compileCondition means; a property test holds the two
// side by side. A test's SQL is never null, so that NOT turns it round.

/** Looking for more texts than this costs as much as it saves. */
const TEXTS_LOOKED_FOR_MAX = 10;

function textsLookedForMax({ isTerse }: Facts): number {
  return isTerse ? 1 : TEXTS_LOOKED_FOR_MAX;
}

/** A test on the values of a field. */
type FieldValueTest = ValueTest & { readonly field: string };

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
        return orOfEvent(part, testSql(part, platform, parameters), parameters);
    }
  };
  return sql(condition);
}

/** Where a row has no `rest` because it would be too long, what is asked of it is asked of the event. */
function orOfEvent(test: FieldTest, sql: string, parameters: Parameters): string {
  if ((parameters.facts.oddBits & LARGE) === 0 || !/\brest/.test(sql)) return sql;
  const question = parameters.bind(JSON.stringify(test));
  return `(CASE WHEN (odd & ${LARGE}) <> 0 THEN event_holds(ts, seq, ${question}) ELSE ${sql} END)`;
}

function testSql(test: FieldTest, platform: string, parameters: Parameters): string {
  const { field, value, ignoreCase } = test;
  switch (test.operator) {
    case "equals_field":
    case "contains_field":
    case "starts_with_field":
    case "ends_with_field":
      return relationSql(test, platform, parameters);
    case "exists":
      return value === true ? existsSql(field, parameters) : not(existsSql(field, parameters));
    case "not_equals":
    case "not_in": {
      const operator = test.operator === "not_equals" ? "equals" : "in";
      const positive = anyValueSql({ field, operator, value, ignoreCase }, platform, parameters);
      return and([existsSql(field, parameters), not(positive)]);
    }
    default:
      return anyValueSql({ field, operator: test.operator, value, ignoreCase }, platform, parameters);
  }
}

/** A field with a handful of values: the condition itself says for which of them it holds. */
function codedSql(test: FieldValueTest, field: keyof typeof CODED, platform: string): string {
  const holds = compileCondition({ kind: "test", ...test });
  const codes = codedNames(field, platform).flatMap((name, code) =>
    holds({ [field]: name } as unknown as Event) ? [code] : [],
  );
  if (codes.length === CODED[field].length) return TRUE;
  return codes.length === 0
    ? FALSE
    : codes.length === 1
      ? `${field} = ${codes[0]}`
      : `${field} IN (${codes.join(", ")})`;
}

export function codedNames(field: keyof typeof CODED, platform: string): readonly string[] {
  return field === "source" ? CODED.source.map((kind) => sourceName(platform, kind)) : CODED[field];
}

export function isCoded(field: string): field is keyof typeof CODED {
  return field in CODED;
}

/** Where such a value stands in `rest`, for the engine. */
export const pointer = (type: RestType, path: string) => `/${type}:${path.replaceAll("~", "~0").replaceAll("/", "~1")}`;

const ALWAYS_THERE: ReadonlySet<string> = new Set([
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
  if (ALWAYS_THERE.has(field)) return TRUE;
  const hot = hotField(field);
  if (hot) return or([`${hot.column} IS NOT NULL`, isOdd(hot, parameters)]);
  const types: RestType[] = ["s", "n", "b", "m", "o"];
  if (hasLargeIntegers(parameters)) types.push("i");
  const kinds = types.map((type) => `contains(rest, ${parameters.bind(`${restKey(type, field)}`)})`);
  return notNull(or(kinds));
}

/** Where no row has the field in another form, the rest of the row need not be read for it. */
function isOdd({ bit }: HotField, { facts }: Parameters): string {
  return (facts.oddBits & bit) === 0 ? FALSE : `(odd & ${bit}) <> 0`;
}

function anyValueSql(test: FieldValueTest, platform: string, parameters: Parameters): string {
  const { field } = test;
  if (isCoded(field)) return codedSql(test, field, platform);
  if (field === "raw" || field === "enrichment") return FALSE;
  if (field === "id") return idSql(test);
  if (field === "timestamp") return timeSql(test, parameters);
  if (field === "type") return textSql(test, "type", parameters);
  if (field === ANY_FIELD) return everywhereSql(test, parameters);
  if (field === ANY_RAW_FIELD) return anywhereInRawSql(test, parameters);
  const hot = hotField(field);
  if (!hot) return restSql(test, parameters);
  return or([ownSql(test, hot, parameters), and([isOdd(hot, parameters), restSql(test, parameters)])]);
}

function ownSql(test: ValueTest, { type, column }: HotField, parameters: Parameters): string {
  return notNull(type === "string" ? textSql(test, column, parameters) : numberSql(test, column));
}

function idSql(test: ValueTest): string {
  if (test.operator !== "equals" && test.operator !== "in") throw idRefused(test.operator);
  const seqs = listOf(test).flatMap((id) => {
    const place = typeof id === "string" ? readEventId(test.ignoreCase ? id.toLowerCase() : id) : undefined;
    return place ? [place.seq] : [];
  });
  return seqs.length === 0 ? FALSE : `seq IN (${seqs.join(", ")})`;
}

function idRefused(operator: string): QuestionRefused {
  return new QuestionRefused("query", `id takes equals, not_equals, in, not_in and exists, not ${operator}`);
}

const TIME_TEXT = `strftime(make_timestamp(ts * 1000), '%Y-%m-%dT%H:%M:%S.%gZ')`;

function timeSql(test: ValueTest, parameters: Parameters): string {
  const { operator } = test;
  if (isComparison(operator)) return `ts ${COMPARISONS[operator]} ${timeBound(operator, test.value as string)!}`;
  if (operator === "during") return hoursSql(test.value as string, parameters);
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
  const meant = days.flatMap((isMeant, day) => (isMeant ? [day] : []));
  const isMeant = (before: number) => (meant.length === 7 ? TRUE : `${weekday(before)} IN (${meant.join(", ")})`);
  const begun = and([isMeant(0), `${minute} >= ${from}`]);
  if (from < to) return and([begun, `${minute} < ${to}`]);
  return or([begun, and([isMeant(1), `${minute} < ${to}`])]);
}

/** The test on the values that stand in `rest`. */
function restSql(test: FieldValueTest, parameters: Parameters): string {
  const { field, operator } = test;
  const has = (text: string) => `contains(rest, ${parameters.bind(text)})`;
  const extract = (type: "s" | "n") => `json_extract_string(rest, ${parameters.bind(pointer(type, field))})`;
  const parts: string[] = [];

  const starts = jsonStarts(test, parameters);
  if (starts) parts.push(...starts.map((start) => has(`${restKey("s", field)}${start}`)));
  else if (textSql(test, "rest", new Parameters()) !== FALSE) {
    // Parsing costs much more than a look at the text.
    const may = and([has(`${restKey("s", field)}`), textMayHoldSql(test, parameters)]);
    parts.push(onlyThen(may, notNull(textSql(test, extract("s"), parameters))));
  }
  if (numberSql(test, "rest") !== FALSE) {
    const number = `try_cast(${extract("n")} AS DOUBLE)`;
    parts.push(onlyThen(has(`${restKey("n", field)}`), notNull(numberSql(test, number))));
  }
  for (const item of listOf(test)) {
    if ((operator === "equals" || operator === "in") && typeof item === "boolean")
      parts.push(has(`${restKey("b", field)}${item}`));
  }
  const large = hasLargeIntegers(parameters) ? largeIntegerSql(test, largeTextSql(field, parameters)) : FALSE;
  if (large !== FALSE) parts.push(onlyThen(has(`${restKey("i", field)}`), notNull(large)));
  parts.push(onlyThen(has(`${restKey("m", field)}`), severalSql(test, parameters)));
  return notNull(or(parts));
}

/** The text of the large integer that a field is. */
export function largeTextSql(field: string, parameters: Parameters): string {
  return `json_extract_string(rest, ${parameters.bind(`${pointer("i", field)}/i`)})`;
}

/** JSON text is the same for the same string, so some tests need no parsing at all: what the value's JSON begins with. */
function jsonStarts(test: ValueTest, { facts }: Parameters): readonly string[] | undefined {
  const { operator, ignoreCase } = test;
  const texts = listOf(test).filter((value) => typeof value === "string");
  if (ignoreCase || texts.length === 0 || texts.length > textsLookedForMax(facts)) return undefined;
  if (operator === "equals" || operator === "in") return texts.map((text) => JSON.stringify(text));
  if (operator === "starts_with" || operator === "prefix")
    return texts.map((text) => JSON.stringify(text).slice(0, -1));
  return undefined;
}

/** True when any element of the list does it. */
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
  const inRest = onlyThen(
    and(["rest IS NOT NULL", jsonHasSql(test, parameters)]),
    `rest_holds(rest, ${parameters.bind(questionOf(test))})`,
  );
  return or([
    textSql(test, "type", parameters),
    ...HOT_FIELDS.map((hot) => ownSql(test, hot, parameters)),
    notNull(inRest),
  ]);
}

/** The test on any value of `raw`. */
function anywhereInRawSql(test: FieldValueTest, parameters: Parameters): string {
  const inRest = onlyThen(
    and(["rest IS NOT NULL", jsonHasSql(test, parameters)]),
    `raw_rest_holds(rest, ${parameters.bind(questionOf(test))})`,
  );
  // Values whose path is too long stand together in `rest`, those of raw and of enrichment alike.
  const { operator, value, ignoreCase } = test;
  const question = parameters.bind(JSON.stringify({ kind: "test", field: ANY_RAW_FIELD, operator, value, ignoreCase }));
  const unnamed = onlyThen(
    and(["rest IS NOT NULL", `contains(rest, ${parameters.bind(restKey("m", UNNAMED_PATH))})`]),
    `event_holds(ts, seq, ${question})`,
  );
  return or([
    ...HOT_FIELDS.filter(({ path }) => path.startsWith("raw.")).map((hot) => ownSql(test, hot, parameters)),
    notNull(inRest),
    notNull(unnamed),
  ]);
}

/** The same where only texts can pass: numbers among the values asked for are no reason to look. */
function textMayHoldSql(test: ValueTest, parameters: Parameters): string {
  const texts = listOf(test).filter((value) => typeof value === "string");
  if (texts.length > textsLookedForMax(parameters.facts)) return TRUE;
  return jsonHasSql({ ...test, value: texts }, parameters);
}

/** What JSON text must have in it where one of its values passes the test: most rows need no second look. */
function jsonHasSql(test: ValueTest, parameters: Parameters): string {
  const { ignoreCase } = test;
  const pieces = listOf(test).map((value) => requiredText(test, value));
  if (pieces.includes("")) return TRUE;
  const escaped = pieces.map((piece) => JSON.stringify(piece).slice(1, -1));
  if (asksBack(escaped.length, parameters.facts)) {
    return askBack({ operator: "contains", value: escaped, ignoreCase }, "rest", parameters);
  }
  const fold = (text: string) => (ignoreCase ? foldCase(text) : text);
  const subject = ignoreCase ? foldedSql("rest", pieces) : "rest";
  return or(escaped.map((piece) => `contains(${subject}, ${parameters.bind(fold(piece))})`));
}

/** A text that any value has in it that passes; empty where there is none. */
function requiredText({ operator }: ValueTest, value: unknown): string {
  if (typeof value === "bigint") return sortableText(value);
  if (typeof value !== "string") return String(value);
  switch (operator) {
    case "equals":
    case "in":
    case "contains":
    case "starts_with":
    case "prefix":
    case "ends_with":
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
    default:
      return "";
  }
}

/** The comparison of two fields. The engine does it where both stand in columns of their own. */
function relationSql(test: FieldTest, platform: string, parameters: Parameters): string {
  const { field, operator, ignoreCase } = test;
  const other = test.value as string;
  const [a, b] = [hotField(field), hotField(other)];
  const question = parameters.bind(questionOf({ operator, value: "", ignoreCase }));
  const ask = notNull(
    `fields_relate(${valuesSql(field, platform, parameters)}, ${valuesSql(other, platform, parameters)}, ${question})`,
  );
  if (a && b) return or([ownRelationSql(a, b, test), onlyThen(or([isOdd(a, parameters), isOdd(b, parameters)]), ask)]);
  return onlyThen(and([existsSql(field, parameters), existsSql(other, parameters)]), ask);
}

function ownRelationSql(a: HotField, b: HotField, { operator, ignoreCase }: FieldTest): string {
  if (a.type !== b.type) return FALSE;
  if (a.type === "number") return operator === "equals_field" ? notNull(`${a.column} = ${b.column}`) : FALSE;
  const [x, y] = [a, b].map(({ column }) => (ignoreCase ? foldedSql(column, [SIGMA]) : column)) as [string, string];
  if (operator === "equals_field") return notNull(`${x} = ${y}`);
  const name = operator.slice(0, -"_field".length);
  return notNull(and([`${b.column} <> ''`, `${name}(${x}, ${y})`]));
}

/** Every value of a field as JSON: one value or a list; null where there is none, or only an object. */
function valuesSql(field: string, platform: string, parameters: Parameters): string {
  if (field === "raw" || field === "enrichment") return "CAST(NULL AS VARCHAR)";
  if (field === "id") throw new QuestionRefused("query", "id cannot be compared with another field");
  if (field === "type") return "to_json(type)";
  if (field === "timestamp") return `to_json(${TIME_TEXT})`;
  if (isCoded(field)) {
    const names = codedNames(field, platform).map((name) => parameters.bind(JSON.stringify(name)));
    return `[${names.join(", ")}][${field} + 1]`;
  }
  const hot = hotField(field);
  const inRest = restValuesSql(field, parameters);
  return hot ? `coalesce(to_json(${hot.column}), ${inRest})` : inRest;
}

/**
 * The values of a field, as a list in JSON, of a row that has no `rest` because it would be too long; undefined where there
 * is no such row. The event is read each time that this is looked at.
 */
export function largeValuesSql(field: string, parameters: Parameters): string | undefined {
  if ((parameters.facts.oddBits & LARGE) === 0) return undefined;
  return `CASE WHEN (odd & ${LARGE}) <> 0 THEN event_values(ts, seq, ${parameters.bind(field)}) END`;
}

/** The values of a field that stand in `rest`, as JSON. */
export function restValuesSql(field: string, parameters: Parameters): string {
  // Looking for the key is much cheaper than parsing, and most rows have one of these, or none.
  const types: RestType[] = ["s", "n", "b", "m"];
  if (hasLargeIntegers(parameters)) types.push("i");
  const kinds = types.map(
    (type) =>
      `WHEN contains(rest, ${parameters.bind(`${restKey(type, field)}`)}) THEN json_extract(rest, ${parameters.bind(pointer(type, field))})`,
  );
  return `CASE ${kinds.join(" ")} END`;
}
