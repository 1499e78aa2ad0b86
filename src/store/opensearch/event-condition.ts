import { canonicalNumber } from "../../lib/exact-json.ts";
import { parseCidr, type AddressRange } from "../../lib/ip.ts";
import { foldCase } from "../../lib/text.ts";
import { formatTime, parseTime } from "../../lib/time.ts";
import {
  isNegation,
  isRelation,
  positiveOperator,
  timeBound,
  type Condition,
  type FieldTest,
  type Scalar,
} from "../../model/condition.ts";
import { ANY_FIELD, ANY_RAW_FIELD, isTopField } from "../../model/field.ts";
import { globPieces } from "../../model/glob.ts";
import { requiredLiterals } from "../../model/required-literals.ts";
import { FLAG_CUT } from "./event-documents.ts";
import {
  ALL,
  allOf,
  anyOf,
  both,
  either,
  exactly,
  isExact,
  literal,
  looseLiteral,
  NONE,
  noneOf,
  not,
  regexp,
  term,
  terms,
  unknown,
  type Bounds,
  type Query,
} from "./event-query.ts";
import {
  addressDigits,
  addressLead,
  cutMark,
  NUMBER,
  objectMark,
  PATH_END,
  pathLead,
  scalarMark,
  TERM_TEXT_CHARACTERS_MAX,
  TEXT,
  valueTerm,
} from "./event-terms.ts";

// Conditions as queries. Where OpenSearch cannot decide, the bounds differ, and the event itself is tested.

/** A beginning of this length is in the term of every text. */
const START_CHARACTERS_MAX = TERM_TEXT_CHARACTERS_MAX - 1;

export function boundsOf(condition: Condition): Bounds {
  if (condition.kind === "all") return allOf(condition.of.map(boundsOf));
  if (condition.kind === "any") return anyOf(condition.of.map(boundsOf));
  if (condition.kind === "not") return noneOf(boundsOf(condition.of));
  return testBounds(condition);
}

function testBounds(test: FieldTest): Bounds {
  const { field, operator, value } = test;
  const subject = subjectOf(field);
  if (operator === "exists") return value === true ? subject.exists : noneOf(subject.exists);
  if (isRelation(operator)) {
    const other = subjectOf(value as string);
    return unknown(both(subject.exists.may, other.exists.may), true);
  }
  const positive = valueBounds(test, subject);
  return isNegation(operator) ? allOf([subject.exists, noneOf(positive)]) : positive;
}

/** The terms that belong to a field. */
interface Subject {
  /** The field of the document. */
  readonly field: string;
  /** The start of each term with a value; undefined: the path is a pattern. */
  readonly lead: string | undefined;
  /** The same as a pattern. */
  readonly leadPattern: string;
  /** The values have types. */
  readonly isTyped: boolean;
  readonly exists: Bounds;
  /** Documents with a text whose term is cut. */
  readonly cut: Query;
  readonly path: string;
}

function subjectOf(path: string): Subject {
  if (path === ANY_FIELD || path === ANY_RAW_FIELD) {
    const leadPattern = (path === ANY_FIELD ? "" : "raw") + `[^${PATH_END}]*${PATH_END}`;
    const cut = term("flags", FLAG_CUT);
    return { path, field: "terms", lead: undefined, leadPattern, isTyped: true, exists: exactly(ALL, true), cut };
  }
  if (isTopField(path)) {
    const exists = exactly(ALL, false);
    return { path, field: path, lead: "", leadPattern: "", isTyped: false, exists, cut: NONE };
  }
  const lead = pathLead(path);
  const exists = exactly(terms("terms", [scalarMark(path), objectMark(path)]), true);
  const cut = term("terms", cutMark(path));
  return { path, field: "terms", lead, leadPattern: literal(lead), isTyped: true, exists, cut };
}

function valueBounds(test: FieldTest, subject: Subject): Bounds {
  // The type is among all fields, but not among the terms.
  if (test.field === ANY_FIELD)
    return anyOf([valueBounds({ ...test, field: "type" }, subjectOf("type")), onSubject(test, subject)]);
  return test.field === "timestamp" ? onTimestamp(test) : onSubject(test, subject);
}

function onTimestamp({ operator, value, ignoreCase }: FieldTest): Bounds {
  const name = positiveOperator(operator);
  if (name === "gt" || name === "gte" || name === "lt" || name === "lte")
    return exactly({ range: { timestamp: { [name]: timeBound(name, value as Scalar)! } } }, false);
  if (name !== "equals" && name !== "in") return unknown(ALL, false);
  const times = listed(value).flatMap((time) => {
    const text = ignoreCase ? String(time).toUpperCase() : time;
    const ms = typeof text === "string" ? parseTime(text) : undefined;
    return ms !== undefined && formatTime(ms) === text ? [ms] : [];
  });
  return exactly(times.length === 0 ? NONE : { terms: { timestamp: times } }, false);
}

function onSubject(test: FieldTest, subject: Subject): Bounds {
  const { value, ignoreCase } = test;
  const texts = () => listed(value).map((text) => (ignoreCase ? foldCase(String(text)) : String(text)));
  const pattern = (text: string) => literal(text, ignoreCase);
  const name = positiveOperator(test.operator);
  switch (name) {
    case "equals":
    case "in":
      return equalBounds(listed(value), subject, ignoreCase);
    case "contains":
      return textBounds(
        subject,
        texts().map((text) => `.*${pattern(text)}.*`),
        true,
      );
    case "starts_with":
    case "prefix":
      return textBounds(
        subject,
        texts().map((text) => `${pattern(text)}.*`),
        texts().some((text) => text.length > START_CHARACTERS_MAX),
      );
    case "ends_with":
      return textBounds(
        subject,
        texts().map((text) => `.*${pattern(text)}`),
        true,
      );
    case "glob": {
      const globs = texts().map((glob) =>
        globPieces(glob)
          .map((piece) => piece.map((char) => (char === undefined ? "." : pattern(char))).join(""))
          .join(".*"),
      );
      return textBounds(subject, globs, true);
    }
    case "regex":
      return regexBounds(test, subject);
    case "cidr":
      return networkBounds(
        listed(value).map((network) => parseCidr(String(network))!),
        subject,
      );
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return numberBounds(name, value as number | bigint, subject);
    default:
      return unknown(subject.exists.may, subject.isTyped);
  }
}

function listed(value: FieldTest["value"]): readonly Scalar[] {
  return Array.isArray(value) ? (value as readonly Scalar[]) : [value as Scalar];
}

function equalBounds(values: readonly Scalar[], subject: Subject, ignoreCase: boolean): Bounds {
  const { field, lead, isTyped } = subject;
  const wanted = isTyped ? values : values.filter((value) => typeof value === "string");
  const whole = wanted.filter((value) => !ignoreCase || typeof value !== "string");
  const folded = wanted.filter((value) => ignoreCase && typeof value === "string") as string[];
  const asTerm = (value: Scalar) => (isTyped ? valueTerm(value) : (value as string).toWellFormed());
  const parts: Bounds[] = [];
  if (whole.length > 0) {
    if (lead !== undefined)
      parts.push(
        exactly(
          terms(
            field,
            whole.map((value) => lead + asTerm(value)),
          ),
          isTyped,
        ),
      );
    else
      parts.push(
        patternBounds(
          subject,
          whole.map((value) => literal(asTerm(value))),
        ),
      );
  }
  if (folded.length > 0) {
    const type = isTyped ? TEXT : "";
    parts.push(
      patternBounds(
        subject,
        folded.map((text) => type + literal(foldCase(text), true)),
      ),
    );
    // Of a long text only the beginning is known.
    if (folded.some((text) => text.length > TERM_TEXT_CHARACTERS_MAX)) parts.push(unknown(subject.cut, isTyped));
  }
  return anyOf(parts);
}

/** `seesAll`: the pattern needs the whole text, and the term of a long one is cut. */
function textBounds(subject: Subject, patterns: readonly string[], seesAll: boolean): Bounds {
  const type = subject.isTyped ? TEXT : "";
  const found = patternBounds(
    subject,
    patterns.map((pattern) => type + pattern),
  );
  if (!seesAll || subject.cut === NONE) return found;
  return {
    may: either(found.may, subject.cut),
    must: both(found.must, not(subject.cut)),
    readsTerms: found.readsTerms,
    isOpen: found.isOpen,
  };
}

function patternBounds(subject: Subject, patterns: readonly string[]): Bounds {
  const { field, leadPattern, isTyped } = subject;
  const queries = [...new Set(patterns)].map((pattern) => regexp(field, leadPattern + pattern));
  const known = queries.filter((query) => query !== undefined);
  if (known.length === queries.length) return exactly(either(...known), isTyped);
  return { may: subject.exists.may, must: either(...known), readsTerms: isTyped, isOpen: true };
}

/** Every match of a pattern contains one of its literals, if it has any; the event itself decides. */
function regexBounds({ value, ignoreCase }: FieldTest, subject: Subject): Bounds {
  const literals = listed(value).map((pattern) => requiredLiterals(String(pattern), ignoreCase)[0] ?? [""]);
  if (literals.flat().includes("")) return unknown(subject.exists.may, subject.isTyped);
  const found = textBounds(
    subject,
    literals.flat().map((text) => `.*${looseLiteral(text)}.*`),
    true,
  );
  return unknown(found.may, subject.isTyped);
}

function numberBounds(name: "gt" | "gte" | "lt" | "lte", value: number | bigint, subject: Subject): Bounds {
  const { field, lead, isTyped } = subject;
  if (!isTyped) return exactly(NONE, false);
  if (lead === undefined) return unknown(ALL, true);
  const bound = lead + valueTerm(canonicalNumber(value));
  const rest = name.startsWith("g") ? { lt: lead + TEXT } : { gte: lead + NUMBER };
  return exactly({ range: { [field]: { ...rest, [name]: bound } } }, true);
}

const MAPPED = 0xffffn;
const MAPPED_FIRST = MAPPED << 32n;
const MAPPED_LAST = MAPPED_FIRST + 0xffffffffn;

/** The addresses that a network contains: a network of IPv6 contains no mapped IPv4 address. */
function partsOf({ from, to }: AddressRange): AddressRange[] {
  if (from >> 32n === MAPPED || from > MAPPED_LAST || to < MAPPED_FIRST) return [{ from, to }];
  const parts = [
    { from, to: MAPPED_FIRST - 1n },
    { from: MAPPED_LAST + 1n, to },
  ];
  return parts.filter((part) => part.from <= part.to);
}

function networkBounds(networks: readonly AddressRange[], subject: Subject): Bounds {
  const { field, lead, leadPattern, isTyped, path } = subject;
  if (!isTyped) return unknown(ALL, false);
  if (lead === undefined) {
    const digits = networks.map(({ from, to }) => sharedStart(addressDigits(from), addressDigits(to)));
    const found = patternBounds(
      subject,
      digits.map((start) => `6${start}.*`),
    );
    return isExact(found) ? unknown(found.may, true) : unknown(regexp(field, `${leadPattern}6.*`)!, true);
  }
  const start = addressLead(path);
  const ranges = networks.flatMap(partsOf).map(({ from, to }): Query => ({
    range: { [field]: { gte: start + addressDigits(from), lte: start + addressDigits(to) } },
  }));
  return exactly(either(...ranges), true);
}

function sharedStart(a: string, b: string): string {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}
