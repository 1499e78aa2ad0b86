import { isIP } from "node:net";
import type { Condition, FieldTest, Scalar } from "../../../model/condition.ts";
import { compileCondition } from "../../../model/condition.ts";
import type { Event } from "../../../model/event.ts";
import { sourceName } from "../../../model/event.ts";
import { foldCase } from "../../../lib/text.ts";
import { parseTime } from "../../../lib/time.ts";
import { QuestionRefused } from "../../store.ts";
import { readEventId } from "../event-id.ts";
import { CODED, hotField } from "./table.ts";

// Conditions in the engine's words. Every test here must mean what compileCondition means; a property test holds the two
// side by side. A test's SQL is never null, so that NOT turns it round.

/** Values are never written into SQL: they are bound, those that the SQL still names when it is done. */
export class Parameters {
  readonly values: (string | number | boolean)[] = [];
  bind(value: string | number | boolean): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
  /** SQL and values as the engine takes them: every value named, numbered without a gap. */
  settle(sql: string): { sql: string; values: (string | number | boolean)[] } {
    const numbers = new Map<string, number>();
    const settled = sql.replace(/\$(\d+)/g, (_, number: string) => {
      if (!numbers.has(number)) numbers.set(number, numbers.size + 1);
      return `$${numbers.get(number)}`;
    });
    return { sql: settled, values: [...numbers.keys()].map((number) => this.values[Number(number) - 1]!) };
  }
  /** The same values, to go on from. */
  copy(): Parameters {
    const copy = new Parameters();
    copy.values.push(...this.values);
    return copy;
  }
}

const TRUE = "TRUE";
const FALSE = "FALSE";

function or(parts: readonly string[]): string {
  const left = parts.filter((part) => part !== FALSE);
  if (left.includes(TRUE)) return TRUE;
  return left.length === 0 ? FALSE : left.length === 1 ? left[0]! : `(${left.join(" OR ")})`;
}

export function and(parts: readonly string[]): string {
  const left = parts.filter((part) => part !== TRUE);
  if (left.includes(FALSE)) return FALSE;
  return left.length === 0 ? TRUE : left.length === 1 ? left[0]! : `(${left.join(" AND ")})`;
}

function not(part: string): string {
  return part === TRUE ? FALSE : part === FALSE ? TRUE : `(NOT ${part})`;
}

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
        return testSql(part, platform, parameters);
    }
  };
  return sql(condition);
}

const NEGATED = { not_equals: "equals", not_in: "in" } as const;

function testSql(test: FieldTest, platform: string, parameters: Parameters): string {
  const { field, operator, value } = test;
  if (field === "source" || field === "severity" || field === "class") return codedSql(test, field, platform);
  if (operator === "exists") return value === true ? existsSql(field, parameters) : not(existsSql(field, parameters));
  if (operator === "not_equals" || operator === "not_in") {
    const positive = anyValueSql({ ...test, operator: NEGATED[operator] }, parameters);
    return and([existsSql(field, parameters), not(positive)]);
  }
  return anyValueSql(test, parameters);
}

/** A field with a handful of values: the condition itself says for which of them it holds. */
function codedSql(test: FieldTest, field: keyof typeof CODED, platform: string): string {
  const holds = compileCondition(test);
  const codes = CODED[field].flatMap((name, code) => {
    const text = field === "source" ? sourceName(platform, name as (typeof CODED.source)[number]) : name;
    return holds({ [field]: text } as unknown as Event) ? [code] : [];
  });
  if (codes.length === CODED[field].length) return TRUE;
  return codes.length === 0
    ? FALSE
    : codes.length === 1
      ? `${field} = ${codes[0]}`
      : `${field} IN (${codes.join(", ")})`;
}

/** Keys of `rest`: a type and a path. */
const key = (type: "s" | "n" | "b" | "m" | "o", path: string) => JSON.stringify(`${type}:${path}`);
export const pointer = (type: "s" | "n" | "b" | "m" | "o", path: string) =>
  `/${type}:${path.replaceAll("~", "~0").replaceAll("/", "~1")}`;

export function existsSql(field: string, parameters: Parameters): string {
  if (["id", "type", "source", "severity", "class", "timestamp", "raw", "enrichment"].includes(field)) return TRUE;
  const hot = hotField(field);
  if (hot) return `(${hot.column} IS NOT NULL OR (odd & ${hot.bit}) <> 0)`;
  const kinds = (["s", "n", "b", "m", "o"] as const).map(
    (type) => `contains(rest, ${parameters.bind(`${key(type, field)}:`)})`,
  );
  return `coalesce(${or(kinds)}, FALSE)`;
}

function anyValueSql(test: FieldTest, parameters: Parameters): string {
  const { field } = test;
  if (field === "raw" || field === "enrichment") return FALSE;
  if (field === "id") return idSql(test);
  if (field === "timestamp") return timeSql(test, parameters);
  if (field === "type") return textSql(test, "type", parameters);
  const hot = hotField(field);
  if (!hot) return restSql(test, parameters);
  const own = hot.type === "string" ? textSql(test, hot.column, parameters) : numberSql(test, hot.column);
  return or([notNull(own), and([`(odd & ${hot.bit}) <> 0`, restSql(test, parameters)])]);
}

function notNull(sql: string): string {
  return sql === TRUE || sql === FALSE ? sql : `coalesce(${sql}, FALSE)`;
}

function listOf(test: FieldTest): readonly Scalar[] {
  return Array.isArray(test.value) ? (test.value as readonly Scalar[]) : [test.value as Scalar];
}

function idSql(test: FieldTest): string {
  if (test.operator !== "equals" && test.operator !== "in") {
    throw new QuestionRefused("query", `id takes equals, not_equals, in, not_in and exists, not ${test.operator}`);
  }
  const seqs = listOf(test).flatMap((id) => {
    const place = typeof id === "string" ? readEventId(test.ignoreCase ? id.toLowerCase() : id) : undefined;
    return place ? [place.seq] : [];
  });
  return seqs.length === 0 ? FALSE : `seq IN (${seqs.join(", ")})`;
}

const COMPARISONS = { gt: ">", gte: ">=", lt: "<", lte: "<=" } as const;

function timeSql(test: FieldTest, parameters: Parameters): string {
  const { operator } = test;
  if (operator in COMPARISONS)
    return `ts ${COMPARISONS[operator as keyof typeof COMPARISONS]} ${parseTime(test.value as string)!}`;
  if (operator === "equals" || operator === "in") {
    const times = listOf(test).map((time) => parseTime(time as string)!);
    return `ts IN (${times.join(", ")})`;
  }
  return textSql(test, `strftime(make_timestamp(ts * 1000), '%Y-%m-%dT%H:%M:%S.%gZ')`, parameters);
}

/** The test on one text; null where the text is. */
function textSql(test: FieldTest, text: string, parameters: Parameters): string {
  const { operator, ignoreCase } = test;
  const subject = ignoreCase ? `lower(${text})` : text;
  const bindText = (value: Scalar) => parameters.bind(ignoreCase ? foldCase(value as string) : (value as string));
  switch (operator) {
    case "equals":
    case "in": {
      const texts = listOf(test).filter((value) => typeof value === "string");
      if (texts.length === 0) return FALSE;
      return texts.length === 1
        ? `${subject} = ${bindText(texts[0]!)}`
        : `${subject} IN (${texts.map(bindText).join(", ")})`;
    }
    case "contains":
      return `contains(${subject}, ${bindText(test.value as string)})`;
    case "starts_with":
    case "prefix":
      return `starts_with(${subject}, ${bindText(test.value as string)})`;
    case "ends_with":
      return `ends_with(${subject}, ${bindText(test.value as string)})`;
    case "regex":
      return `regexp_matches(${text}, ${parameters.bind(test.value as string)}${ignoreCase ? ", 'i'" : ""})`;
    case "cidr":
      return networkSql(test.value as string, text, parameters);
    default:
      return FALSE;
  }
}

/** The engine calls back for each address; those that cannot be in an IPv4 network show it by their first octets. */
function networkSql(network: string, text: string, parameters: Parameters): string {
  const test = `in_network(${text}, ${parameters.bind(network)})`;
  const [address, bits = "32"] = network.split("/");
  const octets = isIP(address!) === 4 ? address!.split(".").slice(0, Math.floor(Number(bits) / 8)) : [];
  if (octets.length === 0) return test;
  const start = octets.length === 4 ? octets.join(".") : `${octets.join(".")}.`;
  return and([or([`starts_with(${text}, ${parameters.bind(start)})`, `contains(${text}, ':')`]), test]);
}

function numberSql(test: FieldTest, number: string): string {
  const { operator, value } = test;
  if (operator in COMPARISONS)
    return `${number} ${COMPARISONS[operator as keyof typeof COMPARISONS]} ${literal(value as number)}`;
  if (operator !== "equals" && operator !== "in") return FALSE;
  const numbers = listOf(test).filter((item) => typeof item === "number");
  return numbers.length === 0 ? FALSE : `${number} IN (${numbers.map(literal).join(", ")})`;
}

/** With an exponent the engine reads it as the double that it is, never as a decimal. */
function literal(value: number): string {
  return value.toExponential();
}

function booleanSql(test: FieldTest, truth: string): string {
  if (test.operator !== "equals" && test.operator !== "in") return FALSE;
  const wanted = listOf(test).filter((item) => typeof item === "boolean");
  return or(wanted.map((item) => (item ? truth : not(truth))));
}

/** The test on the values that stand in `rest`. */
function restSql(test: FieldTest, parameters: Parameters): string {
  const { field, operator, value, ignoreCase } = test;
  const has = (text: string) => `contains(rest, ${parameters.bind(text)})`;
  const extract = (type: "s" | "n") => `json_extract_string(rest, ${parameters.bind(pointer(type, field))})`;
  const parts: string[] = [];

  // JSON text is the same for the same string, so some tests need no parsing at all.
  const asText = typeof value === "string" ? JSON.stringify(value) : undefined;
  if (operator === "equals" && asText && !ignoreCase) parts.push(has(`${key("s", field)}:${asText}`));
  else if ((operator === "starts_with" || operator === "prefix") && asText && !ignoreCase) {
    parts.push(has(`${key("s", field)}:${asText.slice(0, -1)}`));
  } else if (textSql(test, "rest", new Parameters()) !== FALSE) {
    parts.push(and([has(`${key("s", field)}:`), notNull(textSql(test, extract("s"), parameters))]));
  }
  if (numberSql(test, "rest") !== FALSE) {
    parts.push(and([has(`${key("n", field)}:`), notNull(numberSql(test, `try_cast(${extract("n")} AS DOUBLE)`))]));
  }
  for (const item of listOf(test)) {
    if ((operator === "equals" || operator === "in") && typeof item === "boolean")
      parts.push(has(`${key("b", field)}:${item}`));
  }
  parts.push(and([has(`${key("m", field)}:`), severalSql(test, parameters)]));
  return notNull(or(parts));
}

/** True when any element of the list does it. */
function severalSql(test: FieldTest, parameters: Parameters): string {
  const element = or([
    and(["json_type(x) = 'VARCHAR'", notNull(textSql(test, "(x ->> '$')", parameters))]),
    and([
      "json_type(x) IN ('BIGINT', 'UBIGINT', 'DOUBLE')",
      notNull(numberSql(test, "try_cast((x ->> '$') AS DOUBLE)")),
    ]),
    and(["json_type(x) = 'BOOLEAN'", booleanSql(test, "((x ->> '$') = 'true')")]),
  ]);
  if (element === FALSE) return FALSE;
  const list = `CAST(json_extract(rest, ${parameters.bind(pointer("m", test.field))}) AS JSON[])`;
  return `coalesce(list_bool_or(list_transform(${list}, lambda x: ${element})), FALSE)`;
}
