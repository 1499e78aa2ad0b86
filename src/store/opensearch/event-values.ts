import { parseExact } from "../../lib/exact-json.ts";
import { formatTime } from "../../lib/time.ts";
import type { Scalar } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import { fieldReader, isTopField, OBJECT } from "../../model/field.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { both, literal, term, terms, type Query } from "./event-query.ts";
import { textOf, type EventView } from "./event-search.ts";
import { isCutTerm, pathLead, SCALAR_TYPES, valueOfTerm, valueTerm } from "./event-terms.ts";

// The values of a field with the number of events that have each. OpenSearch's own ranking of values is approximate as soon
// as there are several shards, so that all values are read.

/** Values in one answer. */
const VALUES_PER_ANSWER = 10_000;
/** Distinct values of a field that are read for one query. */
const VALUES_MAX = 300_000;

export interface CountedValue {
  readonly value: Scalar;
  readonly count: number;
  /** What the document has: the term of a path, the text of a top-level field, the milliseconds of the timestamp. */
  readonly key: string | number;
}

/** All values of a field among the events of a query. `path`: the position in the request, for messages. */
export async function countValues(view: EventView, query: Query, field: string, path: string): Promise<CountedValue[]> {
  const lead = isTopField(field) ? undefined : pathLead(field);
  const name = lead === undefined ? field : "terms";
  const include = lead === undefined ? {} : { include: `${literal(lead)}[${SCALAR_TYPES.join("")}].*` };
  const { aggregations } = await view({
    query,
    size: 0,
    track_total_hits: false,
    aggs: { values: { terms: { field: name, size: VALUES_PER_ANSWER, ...include } } },
  });
  const { buckets = [], sum_other_doc_count: others = 0 } = aggregations?.["values"] ?? {};
  const counted =
    others === 0
      ? buckets.map(({ key, doc_count }) => ({ key: key as string | number, count: doc_count }))
      : await readAll(view, query, name, lead, path);
  if (lead === undefined) {
    const isTime = field === "timestamp";
    return counted.map(({ key, count }) => ({ key, count, value: isTime ? formatTime(Number(key)) : (key as string) }));
  }
  return Promise.all(
    counted.map(async ({ key, count }) => {
      const own = (key as string).slice(lead.length);
      return { key, count, value: isCutTerm(own) ? await longText(view, field, key as string) : valueOfTerm(own) };
    }),
  );
}

async function readAll(view: EventView, query: Query, field: string, lead: string | undefined, path: string) {
  const counted: { key: string | number; count: number }[] = [];
  // Terms of a path begin with its types; keys after this one are those of scalars.
  let after: string | number | undefined = lead === undefined ? undefined : `${lead}0`;
  for (;;) {
    const sources = [{ key: { terms: { field } } }];
    const composite = { size: VALUES_PER_ANSWER, sources, ...(after !== undefined && { after: { key: after } }) };
    const { aggregations } = await view({ query, size: 0, track_total_hits: false, aggs: { values: { composite } } });
    const { buckets = [] } = aggregations?.["values"] ?? {};
    for (const bucket of buckets) {
      const { key } = bucket.key as { key: string | number };
      if (lead !== undefined && !isScalarTerm(key as string, lead)) return counted;
      counted.push({ key, count: bucket.doc_count });
    }
    if (buckets.length < VALUES_PER_ANSWER) return counted;
    after = counted.at(-1)!.key;
    if (counted.length > VALUES_MAX)
      throw new QueryRefused(`${path}.field`, `has more than ${VALUES_MAX} values: narrow the time range`);
  }
}

function isScalarTerm(term: string, lead: string): boolean {
  return term.startsWith(lead) && (SCALAR_TYPES as readonly string[]).includes(term[lead.length]!);
}

/** A text of which the term has only the beginning. */
async function longText(view: EventView, field: string, key: string): Promise<string> {
  const { hits } = await view({ query: term("terms", key), size: 1, track_total_hits: false });
  const event = parseExact(textOf(hits.hits[0]!)) as Event;
  const lead = pathLead(field);
  const found = fieldReader(field)(event).find((value) => value !== OBJECT && lead + valueTerm(value) === key);
  return found as string;
}

/** The events of a query that have one of these values in the field. */
export function withValues(query: Query, field: string, keys: readonly (string | number)[]): Query {
  if (field === "timestamp") return both(query, { terms: { timestamp: keys } });
  return both(query, terms(isTopField(field) ? field : "terms", keys as readonly string[]));
}
