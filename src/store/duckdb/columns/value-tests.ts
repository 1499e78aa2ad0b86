import { isIP } from "node:net";
import type { FieldTest, OperatorName, Scalar, ValueOperator } from "../../../model/condition.ts";
import { PATTERN_TEXT_CHARACTERS_MAX } from "../../../model/condition.ts";
import { globPieces } from "../../../model/glob.ts";
import { parseCidr } from "../../../lib/ip.ts";
import { FINAL_SIGMA, foldCase, SIGMA } from "../../../lib/text.ts";
import { NEGATIVE, POSITIVE, sortableText } from "./large-integer.ts";
import { and, FALSE, literal, not, onlyThen, or, Parameters, type SqlContext } from "./sql.ts";

// SQL for a test on one value; null if the value is null.

/** A test without its field: a predicate on one value. */
export type FieldlessTest = Pick<FieldTest, "operator" | "value" | "ignoreCase">;

export interface ValueTest extends FieldlessTest {
  readonly operator: ValueOperator;
}

/** A test with more alternatives would be too much SQL: DuckDB calls a scalar function for each text instead. */
const ALTERNATIVES_MAX = 50;

/** True when a test with this many alternatives calls a scalar function. */
export function usesScalarFunction(alternatives: number, { isTerse }: Pick<SqlContext, "isTerse">): boolean {
  return alternatives > (isTerse ? 1 : ALTERNATIVES_MAX);
}

export const COMPARISONS = { gt: ">", gte: ">=", lt: "<", lte: "<=" } as const;

export function isComparison(operator: OperatorName): operator is keyof typeof COMPARISONS {
  return operator in COMPARISONS;
}

export function listOf({ value }: FieldlessTest): readonly Scalar[] {
  return Array.isArray(value) ? (value as readonly Scalar[]) : [value as Scalar];
}

export function encodeTest({ operator, value, ignoreCase }: FieldlessTest): string {
  return JSON.stringify({ operator, value, ignoreCase });
}

/** The SQL equivalent of foldCase, for a comparison with these values. DuckDB keeps a final sigma, which few queries need. */
export function foldedSql(text: string, values: readonly Scalar[]): string {
  const hasSigma = values.some((value) => typeof value === "string" && foldCase(value).includes(SIGMA));
  return hasSigma ? `replace(lower(${text}), '${FINAL_SIGMA}', '${SIGMA}')` : `lower(${text})`;
}

/** How the cost of a test on text grows; condition-cost.ts has the rates. */
export type CostClass =
  /** A comparison, or a lookup in a set. */
  | "lookup"
  /** A search of the text for each value. */
  | "search"
  | "glob"
  | "pattern"
  /** A scalar function, which runs outside DuckDB. */
  | "function";

/** A text in SQL, and the same text folded if the test ignores case. */
interface TextSubject {
  readonly text: string;
  readonly subject: string;
  readonly parameters: Parameters;
  /** A value of the test, folded like the subject. */
  folded(value: Scalar): string;
}

/** The SQL of an operator on one value of each type; FALSE if no value of the type can pass. */
interface ValueSql {
  readonly cost: CostClass;
  text(test: ValueTest, subject: TextSubject): string;
  number(test: ValueTest, number: string): string;
  /** An integer beyond 2^53, in the encoding of large-integer.ts. */
  largeInteger(test: ValueTest, text: string): string;
  boolean(test: ValueTest, truth: string): string;
}

const never = (): string => FALSE;

const onTextsOnly = (cost: CostClass, text: ValueSql["text"]): ValueSql => ({
  cost,
  text,
  number: never,
  largeInteger: never,
  boolean: never,
});

/** An operator that DuckDB has as a function of the text and one value. */
const byFunction = (name: string): ValueSql =>
  onTextsOnly("search", (test, { text, subject, parameters, folded }) =>
    alternatives(test, text, parameters, (value) => `${name}(${subject}, ${parameters.bind(folded(value))})`),
  );

const equality: ValueSql = {
  cost: "lookup",
  text: (test, { text, subject, parameters, folded }) => {
    const texts = listOf(test).filter((value) => typeof value === "string");
    if (texts.length === 0) return FALSE;
    if (texts.length > 1 && parameters.context.isTerse)
      return textMatchesSql({ ...test, value: texts }, text, parameters);
    return texts.length === 1
      ? `${subject} = ${parameters.bind(folded(texts[0]!))}`
      : `${subject} IN (${texts.map((value) => parameters.bind(folded(value))).join(", ")})`;
  },
  number: (test, number) => {
    const numbers = listOf(test).filter((item) => typeof item === "number");
    return numbers.length === 0 ? FALSE : `${number} IN (${numbers.map(literal).join(", ")})`;
  },
  largeInteger: (test, text) => {
    const integers = listOf(test).filter((item) => typeof item === "bigint");
    if (integers.length === 0) return FALSE;
    return `${text} IN (${integers.map((item) => `'${sortableText(item)}'`).join(", ")})`;
  },
  boolean: (test, truth) => {
    const booleans = listOf(test).filter((item) => typeof item === "boolean");
    return or(booleans.map((item) => (item ? truth : not(truth))));
  },
};

/** A large integer lies beyond every double on its side of zero, so that its sign decides a comparison with a double. */
const comparison = (name: keyof typeof COMPARISONS): ValueSql => ({
  cost: "lookup",
  text: never,
  number: ({ value }, number) => {
    if (typeof value === "number") return `${number} ${COMPARISONS[name]} ${literal(value)}`;
    const isBelow = typeof value === "bigint" && value > 0n === (name === "lt" || name === "lte");
    return isBelow ? `${number} IS NOT NULL` : FALSE;
  },
  largeInteger: ({ value }, text) => {
    if (typeof value === "bigint") return `${text} ${COMPARISONS[name]} '${sortableText(value)}'`;
    if (typeof value !== "number") return FALSE;
    return `starts_with(${text}, '${name === "gt" || name === "gte" ? POSITIVE : NEGATIVE}')`;
  },
  boolean: never,
});

const VALUE_SQL: Readonly<Record<ValueOperator, ValueSql>> = {
  equals: equality,
  in: equality,
  contains: byFunction("contains"),
  starts_with: byFunction("starts_with"),
  prefix: byFunction("starts_with"),
  ends_with: byFunction("ends_with"),
  glob: onTextsOnly("glob", (test, { text, subject, parameters, folded }) =>
    alternatives(test, text, parameters, (glob) => globSql(folded(glob), subject, parameters)),
  ),
  regex: onTextsOnly("pattern", (test, { text, parameters }) =>
    alternatives(test, text, parameters, (pattern) => patternSql(pattern as string, test.ignoreCase, text, parameters)),
  ),
  cidr: onTextsOnly("function", (test, { text, parameters }) =>
    alternatives(test, text, parameters, (network) => networkSql(network as string, text, parameters)),
  ),
  gt: comparison("gt"),
  gte: comparison("gte"),
  lt: comparison("lt"),
  lte: comparison("lte"),
  // Only the timestamp is compared with hours.
  during: onTextsOnly("lookup", never),
  time_part: onTextsOnly("function", (test, { text, parameters }) =>
    // Most texts show by their beginning that they are no date-time.
    onlyThen(`regexp_matches(${text}, '^[0-9]{4}')`, textMatchesSql(test, text, parameters)),
  ),
};

export function costClassOf(operator: ValueOperator): CostClass {
  return VALUE_SQL[operator].cost;
}

/** The test on one text. */
export function textSql(test: ValueTest, text: string, parameters: Parameters): string {
  const { ignoreCase } = test;
  return VALUE_SQL[test.operator].text(test, {
    text,
    subject: ignoreCase ? foldedSql(text, listOf(test)) : text,
    parameters,
    folded: (value) => (ignoreCase ? foldCase(value as string) : (value as string)),
  });
}

/** The test on one number. */
export function numberSql(test: ValueTest, number: string): string {
  return VALUE_SQL[test.operator].number(test, number);
}

/** The test on one large integer; `text` is SQL for its encoding. */
export function largeIntegerSql(test: ValueTest, text: string): string {
  return VALUE_SQL[test.operator].largeInteger(test, text);
}

/** The test on one boolean. */
export function booleanSql(test: ValueTest, truth: string): string {
  return VALUE_SQL[test.operator].boolean(test, truth);
}

function alternatives(test: ValueTest, text: string, parameters: Parameters, sqlOf: (value: Scalar) => string): string {
  const values = listOf(test);
  return usesScalarFunction(values.length, parameters.context)
    ? textMatchesSql(test, text, parameters)
    : or(values.map(sqlOf));
}

export function textMatchesSql(test: FieldlessTest, text: string, parameters: Parameters): string {
  return `text_matches(${text}, ${parameters.bind(encodeTest(test))})`;
}

/** Prefix, suffix and substring tests are cheap. Any other glob becomes a regular expression without backtracking. */
function globSql(glob: string, subject: string, parameters: Parameters): string {
  const pieces = globPieces(glob);
  const plain = pieces.map((piece) => (piece.includes(undefined) ? undefined : piece.join("")));
  const between = plain.slice(1, -1).filter((piece) => piece !== "");
  const [first, last] = [plain[0], plain.at(-1)];
  if (first !== undefined && last !== undefined) {
    if (pieces.length === 1) return `${subject} = ${parameters.bind(first)}`;
    if (between.length === 0) {
      const bytes = Buffer.byteLength(first) + Buffer.byteLength(last);
      return and([
        `strlen(${subject}) >= ${bytes}`,
        ...(first === "" ? [] : [`starts_with(${subject}, ${parameters.bind(first)})`]),
        ...(last === "" ? [] : [`ends_with(${subject}, ${parameters.bind(last)})`]),
      ]);
    }
    if (first === "" && last === "" && between.length === 1 && between[0] !== undefined)
      return `contains(${subject}, ${parameters.bind(between[0])})`;
  }
  const pattern = pieces.map((piece) => piece.map((char) => (char === undefined ? "." : quoted(char))).join(""));
  return `regexp_matches(${subject}, ${parameters.bind(`(?s)\\A${pattern.join(".*")}\\z`)})`;
}

/** True when the SQL of a glob is a regular expression. */
export function globNeedsPattern(glob: string): boolean {
  return globSql(glob, "", new Parameters()).startsWith("regexp_matches");
}

function quoted(char: string): string {
  if (char === "\0") return "\\x00";
  return /^[!-/:-@[-`{-~]$/.test(char) ? `\\${char}` : char;
}

/** Only the start and the end of a very long text count; DuckDB would measure them in other units. */
function patternSql(pattern: string, ignoreCase: boolean, text: string, parameters: Parameters): string {
  const viaFunction = textMatchesSql({ operator: "regex", value: pattern, ignoreCase }, text, parameters);
  if (parameters.context.unsupportedPatterns.has(pattern)) return viaFunction;
  const own = `regexp_matches(${text}, ${parameters.bind(pattern)}${ignoreCase ? ", 'i'" : ""})`;
  return `CASE WHEN strlen(${text}) <= ${PATTERN_TEXT_CHARACTERS_MAX} THEN ${own} ELSE ${viaFunction} END`;
}

const OCTET = "(?:[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])";
const IPV4 = `^${OCTET}(?:\\.${OCTET}){3}$`;
/** The range of IPv4 addresses among all addresses. */
const MAPPED = parseCidr("0.0.0.0/0")!;

/** Calls a scalar function for addresses, unless the first octets or a colon rule a text out. */
function networkSql(network: string, text: string, parameters: Parameters): string {
  const viaFunction = textMatchesSql({ operator: "cidr", value: network, ignoreCase: false }, text, parameters);
  const [address, bits = "32"] = network.split("/");
  const hasColon = `contains(${text}, ':')`;
  if (isIP(address!) === 6) {
    const { from, to } = parseCidr(network)!;
    return from >= MAPPED.from && to <= MAPPED.to ? viaFunction : onlyThen(hasColon, viaFunction);
  }
  const octets = address!.split(".").slice(0, Math.floor(Number(bits) / 8));
  if (octets.length === 0) return viaFunction;
  const start = octets.length === 4 ? octets.join(".") : `${octets.join(".")}.`;
  const starts = `starts_with(${text}, ${parameters.bind(start)})`;
  if (Number(bits) % 8 !== 0) return onlyThen(or([starts, hasColon]), viaFunction);
  // Whole octets are sufficient if the text is an address.
  const isAddress = `regexp_matches(${text}, ${parameters.bind(IPV4)})`;
  return or([
    and([starts, octets.length === 4 ? `strlen(${text}) = ${start.length}` : isAddress]),
    onlyThen(hasColon, viaFunction),
  ]);
}
