import { isIP } from "node:net";
import type { OperatorName, Scalar } from "../../../model/condition.ts";
import { PATTERN_TEXT_CHARACTERS_MAX } from "../../../model/condition.ts";
import { globPieces } from "../../../model/glob.ts";
import { parseCidr } from "../../../lib/ip.ts";
import { FINAL_SIGMA, foldCase, SIGMA } from "../../../lib/text.ts";
import type { TestOfValue } from "./functions.ts";
import { and, FALSE, literal, not, onlyThen, or, Parameters, type Facts } from "./sql.ts";

// What a test says of one value, in the engine's words: null where the value is null.

/** The operators that look at values one by one; the others are made of these, or of two fields. */
export type ValueOperator = Exclude<
  OperatorName,
  "exists" | "not_equals" | "not_in" | "equals_field" | "contains_field" | "starts_with_field" | "ends_with_field"
>;

export interface ValueTest extends TestOfValue {
  readonly operator: ValueOperator;
}

/** More alternatives than this are too much SQL for the engine: it asks back for each text. */
const ALTERNATIVES_MAX = 50;

/** Whether the engine asks back for a test with so many alternatives. */
export function asksBack(alternatives: number, { isTerse }: Pick<Facts, "isTerse">): boolean {
  return alternatives > (isTerse ? 1 : ALTERNATIVES_MAX);
}

export const COMPARISONS = { gt: ">", gte: ">=", lt: "<", lte: "<=" } as const;

export function isComparison(operator: OperatorName): operator is keyof typeof COMPARISONS {
  return operator in COMPARISONS;
}

export function listOf({ value }: TestOfValue): readonly Scalar[] {
  return Array.isArray(value) ? (value as readonly Scalar[]) : [value as Scalar];
}

export function questionOf({ operator, value, ignoreCase }: TestOfValue): string {
  return JSON.stringify({ operator, value, ignoreCase });
}

/** A text as foldCase has it, for comparing it with these. The engine leaves the final sigma alone, and few ask for one. */
export function foldedSql(text: string, asked: readonly Scalar[]): string {
  const hasSigma = asked.some((value) => typeof value === "string" && foldCase(value).includes(SIGMA));
  return hasSigma ? `replace(lower(${text}), '${FINAL_SIGMA}', '${SIGMA}')` : `lower(${text})`;
}

/** The test on one text. */
export function textSql(test: ValueTest, text: string, parameters: Parameters): string {
  const { operator, ignoreCase } = test;
  const subject = ignoreCase ? foldedSql(text, listOf(test)) : text;
  const folded = (value: Scalar) => (ignoreCase ? foldCase(value as string) : (value as string));
  const anyOf = (name: string) =>
    alternatives(test, text, parameters, (value) => `${name}(${subject}, ${parameters.bind(folded(value))})`);
  switch (operator) {
    case "equals":
    case "in": {
      const texts = listOf(test).filter((value) => typeof value === "string");
      if (texts.length === 0) return FALSE;
      if (texts.length > 1 && parameters.facts.isTerse) return askBack({ ...test, value: texts }, text, parameters);
      return texts.length === 1
        ? `${subject} = ${parameters.bind(folded(texts[0]!))}`
        : `${subject} IN (${texts.map((value) => parameters.bind(folded(value))).join(", ")})`;
    }
    case "contains":
      return anyOf("contains");
    case "starts_with":
    case "prefix":
      return anyOf("starts_with");
    case "ends_with":
      return anyOf("ends_with");
    case "glob":
      return alternatives(test, text, parameters, (glob) => globSql(folded(glob), subject, parameters));
    case "regex":
      return alternatives(test, text, parameters, (pattern) =>
        patternSql(pattern as string, ignoreCase, text, parameters),
      );
    case "cidr":
      return alternatives(test, text, parameters, (network) => networkSql(network as string, text, parameters));
    case "gt":
    case "gte":
    case "lt":
    case "lte":
    case "during":
      return FALSE;
    default:
      return forgotten(operator);
  }
}

/** Only reached by an operator that the switch does not know, which the compiler finds first. */
function forgotten(operator: never): never {
  throw new Error(`the columns do not know the operator ${String(operator)}`);
}

function alternatives(test: ValueTest, text: string, parameters: Parameters, sqlOf: (value: Scalar) => string): string {
  const values = listOf(test);
  return asksBack(values.length, parameters.facts) ? askBack(test, text, parameters) : or(values.map(sqlOf));
}

export function askBack(test: TestOfValue, text: string, parameters: Parameters): string {
  return `text_holds(${text}, ${parameters.bind(questionOf(test))})`;
}

/** Beginnings, ends and what is in between are cheap; anything else is a pattern, which never goes back in its text. */
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

/** Whether the engine is asked for a glob in the form of a pattern. */
export function globNeedsPattern(glob: string): boolean {
  return globSql(glob, "", new Parameters()).startsWith("regexp_matches");
}

function quoted(char: string): string {
  if (char === "\0") return "\\x00";
  return /^[!-/:-@[-`{-~]$/.test(char) ? `\\${char}` : char;
}

/** Of a very long text only the beginning and the end count, which the engine would measure in other units. */
function patternSql(pattern: string, ignoreCase: boolean, text: string, parameters: Parameters): string {
  const ask = askBack({ operator: "regex", value: pattern, ignoreCase }, text, parameters);
  if (parameters.facts.foreignPatterns.has(pattern)) return ask;
  const own = `regexp_matches(${text}, ${parameters.bind(pattern)}${ignoreCase ? ", 'i'" : ""})`;
  return `CASE WHEN strlen(${text}) <= ${PATTERN_TEXT_CHARACTERS_MAX} THEN ${own} ELSE ${ask} END`;
}

const OCTET = "(?:[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])";
const IPV4 = `^${OCTET}(?:\\.${OCTET}){3}$`;
/** Where IPv4 addresses lie among the others. */
const MAPPED = parseCidr("0.0.0.0/0")!;

/** The engine asks back for addresses; most show by their first octets, or a colon, that they cannot be in the network. */
function networkSql(network: string, text: string, parameters: Parameters): string {
  const ask = askBack({ operator: "cidr", value: network, ignoreCase: false }, text, parameters);
  const [address, bits = "32"] = network.split("/");
  const hasColon = `contains(${text}, ':')`;
  if (isIP(address!) === 6) {
    const { from, to } = parseCidr(network)!;
    return from >= MAPPED.from && to <= MAPPED.to ? ask : onlyThen(hasColon, ask);
  }
  const octets = address!.split(".").slice(0, Math.floor(Number(bits) / 8));
  if (octets.length === 0) return ask;
  const start = octets.length === 4 ? octets.join(".") : `${octets.join(".")}.`;
  const starts = `starts_with(${text}, ${parameters.bind(start)})`;
  if (Number(bits) % 8 !== 0) return onlyThen(or([starts, hasColon]), ask);
  // Whole octets say all there is to say, if it is an address.
  const isAddress = `regexp_matches(${text}, ${parameters.bind(IPV4)})`;
  return or([
    and([starts, octets.length === 4 ? `strlen(${text}) = ${start.length}` : isAddress]),
    onlyThen(hasColon, ask),
  ]);
}

/** The test on one number. */
export function numberSql(test: ValueTest, number: string): string {
  const { operator, value } = test;
  if (isComparison(operator)) {
    if (typeof value === "number") return `${number} ${COMPARISONS[operator]} ${literal(value)}`;
    // A bigint lies beyond every double on its side of zero.
    const isBelow = typeof value === "bigint" && value > 0n === (operator === "lt" || operator === "lte");
    return isBelow ? `${number} IS NOT NULL` : FALSE;
  }
  if (operator !== "equals" && operator !== "in") return FALSE;
  const numbers = listOf(test).filter((item) => typeof item === "number");
  return numbers.length === 0 ? FALSE : `${number} IN (${numbers.map(literal).join(", ")})`;
}

/** The test on one truth value. */
export function booleanSql(test: ValueTest, truth: string): string {
  if (test.operator !== "equals" && test.operator !== "in") return FALSE;
  const wanted = listOf(test).filter((item) => typeof item === "boolean");
  return or(wanted.map((item) => (item ? truth : not(truth))));
}
