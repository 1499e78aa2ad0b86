import { foldCase } from "../../lib/text.ts";
import type { EventFilter, FieldFilter } from "../ports/event-engine.ts";
import type { TimeRange } from "../../model/query.ts";
import { FLAG_PARTIAL, REGEXP_CHARACTERS_MAX } from "./event-documents.ts";

// Parts of queries.

export type Query = Readonly<Record<string, unknown>>;

export const ALL: Query = { match_all: {} };
export const NONE: Query = { match_none: {} };

/** Events between which a condition lies: every match is in `may`, and everything in `must` matches. */
export interface Bounds {
  readonly may: Query;
  readonly must: Query;
  /** An event whose terms are not complete may match in spite of them. */
  readonly readsTerms: boolean;
  /** OpenSearch cannot evaluate a part of it, so that events between the two are likely. */
  readonly isOpen: boolean;
}

export const exactly = (query: Query, readsTerms: boolean): Bounds => ({
  may: query,
  must: query,
  readsTerms,
  isOpen: false,
});
export const unknown = (may: Query, readsTerms: boolean): Bounds => ({
  may,
  must: NONE,
  readsTerms,
  isOpen: true,
});
export const isExact = ({ may, must }: Bounds) => may === must;

export const both = (...parts: readonly Query[]): Query => {
  const some = parts.filter((part) => part !== ALL);
  if (some.includes(NONE)) return NONE;
  return some.length === 0 ? ALL : some.length === 1 ? some[0]! : { bool: { filter: some } };
};
export const either = (...parts: readonly Query[]): Query => {
  const some = parts.filter((part) => part !== NONE);
  if (some.includes(ALL)) return ALL;
  if (some.length <= 1) return some[0] ?? NONE;
  return { bool: { should: some, minimum_should_match: 1 } };
};
export const not = (query: Query): Query =>
  query === ALL ? NONE : query === NONE ? ALL : { bool: { must_not: [query] } };
export const term = (field: string, value: string | number): Query => ({ term: { [field]: { value } } });
export const terms = (field: string, values: readonly string[]): Query =>
  values.length === 1 ? term(field, values[0]!) : values.length === 0 ? NONE : { terms: { [field]: values } };
export const prefix = (field: string, value: string): Query => ({ prefix: { [field]: { value } } });
/** Undefined if the pattern is too long. */
export const regexp = (field: string, value: string): Query | undefined =>
  value.length > REGEXP_CHARACTERS_MAX ? undefined : { regexp: { [field]: { value, flags: "NONE" } } };

const PARTIAL = term("flags", FLAG_PARTIAL);

export function allOf(parts: readonly Bounds[]): Bounds {
  const readsTerms = parts.some((part) => part.readsTerms);
  const isOpen = parts.some((part) => part.isOpen);
  const may = both(...parts.map((part) => part.may));
  return parts.every(isExact)
    ? exactly(may, readsTerms)
    : { may, must: both(...parts.map((part) => part.must)), readsTerms, isOpen };
}

export function anyOf(parts: readonly Bounds[]): Bounds {
  const readsTerms = parts.some((part) => part.readsTerms);
  const isOpen = parts.some((part) => part.isOpen);
  const may = either(...parts.map((part) => part.may));
  return parts.every(isExact)
    ? exactly(may, readsTerms)
    : { may, must: either(...parts.map((part) => part.must)), readsTerms, isOpen };
}

export function noneOf(part: Bounds): Bounds {
  const must = not(part.may);
  return isExact(part) ? exactly(must, part.readsTerms) : { ...part, may: not(part.must), must };
}

/** The bounds with events whose terms are not complete. */
export function withPartial(bounds: Bounds): Bounds {
  if (!bounds.readsTerms) return bounds;
  return { ...bounds, may: either(bounds.may, PARTIAL), must: both(bounds.must, not(PARTIAL)), readsTerms: false };
}

/** The events about which OpenSearch cannot decide. */
export function undecidedOf(bounds: Bounds): Query {
  if (isExact(bounds)) return bounds.readsTerms ? PARTIAL : NONE;
  const { may, must } = withPartial(bounds);
  return both(may, not(must));
}

export function rangeQuery({ fromMs, toMs }: TimeRange): Query {
  if (fromMs === undefined && toMs === undefined) return ALL;
  return {
    range: { timestamp: { ...(fromMs !== undefined && { gte: fromMs }), ...(toMs !== undefined && { lt: toMs }) } },
  };
}

/** The filters of lists that are fields of their own. */
export function filterQuery(filter: EventFilter | FieldFilter): Query {
  const fields = ["source", "severity", "class", "type"] as const;
  const parts = fields.flatMap((field): Query[] => {
    const values = [(filter as EventFilter)[field] ?? []].flat();
    return values.length === 0 ? [] : [terms(field, values)];
  });
  return both(rangeQuery(filter), ...parts);
}

/** A text as a part of a regular expression of Lucene. */
export function literal(text: string, ignoreCase = false): string {
  let pattern = "";
  for (const char of text.toWellFormed()) pattern += ignoreCase ? caseClass(char) : escaped(char);
  return pattern;
}

/** The same for a text of `guardText`, which stands for more spellings. */
export function looseLiteral(text: string): string {
  return [...text].map((char) => (char === "s" ? `(${caseClass("s")}|ſ)` : caseClass(char))).join("");
}

const escaped = (char: string) => (/^[a-z0-9\u0080-\u{10ffff}]$/iu.test(char) ? char : `\\${char}`);

/** The characters that are equal to this one in lower case. */
function caseClass(char: string): string {
  const folded = foldCase(char);
  const all = (spellings ??= findSpellings()).get(folded) ?? [folded];
  return all.length === 1 ? escaped(all[0]!) : `(${all.map(escaped).join("|")})`;
}

let spellings: ReadonlyMap<string, readonly string[]> | undefined;
/** No character past this one has another case. */
const CASED_MAX = 0x1ffff;

function findSpellings(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (let code = 0; code <= CASED_MAX; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const char = String.fromCodePoint(code);
    const folded = foldCase(char);
    if (folded === char) continue;
    const others = found.get(folded);
    if (others) others.push(char);
    else found.set(folded, [folded, char]);
  }
  return found;
}
