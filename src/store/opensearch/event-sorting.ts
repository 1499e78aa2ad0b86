import { parseExact } from "../../lib/exact-json.ts";
import type { Scalar } from "../../model/condition.ts";
import { SEVERITIES, type Event } from "../../model/event.ts";
import { fieldReader, isTopField, OBJECT } from "../../model/field.ts";
import type { SortKey } from "../../model/query.ts";
import { severityRank } from "./event-documents.ts";
import { both, either, not, prefix, term, terms, type Query } from "./event-query.ts";
import { NEWEST_FIRST, textOf, totalOf, type EventView } from "./event-search.ts";
import {
  BOOLEAN,
  firstLead,
  NUMBER,
  objectMark,
  pathLead,
  scalarMark,
  SCALAR_TYPES,
  severalMark,
  TEXT,
  valueTerm,
} from "./event-terms.ts";

// Sorted pages. OpenSearch sorts by top-level fields itself. Values of a path are terms among others, which it cannot sort by:
// the values are read in their order with the number of events that have each, until there are enough for the page.

export interface SortedEvent {
  readonly event: Event;
  readonly text: string;
}

/** Values in one answer. */
const VALUES_PER_ANSWER = 1000;

/** The first events of the query in the order of the keys, then newest first, after the given one. */
export async function sortedEvents(
  view: EventView,
  query: Query,
  keys: readonly SortKey[],
  after: Event | undefined,
  limit: number,
): Promise<SortedEvent[]> {
  if (limit <= 0) return [];
  if (keys.every(({ field }) => isTopField(field))) return (await readSorted(view, query, keys, after, limit)).events;
  const [key, ...rest] = keys as [SortKey, ...SortKey[]];
  const found: SortedEvent[] = [];
  let from: string | undefined;
  if (after) {
    const own = sortTerm(after, key.field);
    const same = own === null ? withoutValue(key.field) : withFirst(key.field, [own]);
    found.push(...(await sortedEvents(view, both(query, same), rest, after, limit)));
    if (found.length >= limit || own === null) return found;
    from = own;
  }
  const compare = comparator(keys);
  let whole: string[] = [];
  let events = 0;
  const readWhole = async () => {
    if (whole.length === 0) return;
    const { events: part } = await readSorted(view, both(query, withFirst(key.field, whole)), [], undefined, events);
    found.push(...part.sort((a, b) => compare(a.event, b.event)));
    whole = [];
    events = 0;
  };
  for await (const { value, count } of valuesInOrder(view, query, key, from)) {
    if (found.length + events + count <= limit) {
      whole.push(value);
      events += count;
      continue;
    }
    await readWhole();
    const last = both(query, withFirst(key.field, [value]));
    found.push(...(await sortedEvents(view, last, rest, undefined, limit - found.length)));
    return found;
  }
  await readWhole();
  const without = both(query, withoutValue(key.field));
  found.push(...(await sortedEvents(view, without, rest, undefined, limit - found.length)));
  return found;
}

/** The same for keys that OpenSearch sorts by, with the number of all events. */
export async function readSorted(
  view: EventView,
  query: Query,
  keys: readonly SortKey[],
  after: Event | undefined,
  limit: number,
): Promise<{ total: number; events: SortedEvent[] }> {
  const fieldOf = (field: string) => (field === "severity" ? "severity_rank" : field);
  const own = keys.map(({ field, descending }) => ({ [fieldOf(field)]: descending ? "desc" : "asc" }));
  const position = after && [...keys.map(({ field }) => topValue(after, field)), Date.parse(after.timestamp), after.id];
  const answer = await view({
    query,
    size: limit,
    sort: [...own, ...NEWEST_FIRST],
    track_total_hits: true,
    ...(position && { search_after: position }),
  });
  const events = answer.hits.hits.map((hit) => ({ text: textOf(hit), event: parseExact(textOf(hit)) as Event }));
  return { total: totalOf(answer), events };
}

function topValue(event: Event, field: string): string | number {
  if (field === "timestamp") return Date.parse(event.timestamp);
  return field === "severity" ? severityRank(event.severity) : event[field as "type"];
}

function firstValue(event: Event, field: string): Scalar | null {
  const [first] = fieldReader(field)(event);
  return first === undefined || first === OBJECT ? null : first;
}

/** The term of the value by which the event sorts; a top-level field has no term, but may come before a path. */
function sortTerm(event: Event, field: string): string | null {
  if (isTopField(field)) return String(topValue(event, field));
  const value = firstValue(event, field);
  return value === null ? null : valueTerm(value);
}

function withFirst(field: string, values: readonly string[]): Query {
  if (field === "severity")
    return {
      terms: { severity: values.map((rank) => SEVERITIES.find((name) => severityRank(name) === Number(rank))!) },
    };
  if (isTopField(field)) return { terms: { [field]: values } };
  const lead = pathLead(field);
  const only = both(
    terms(
      "terms",
      values.map((value) => lead + value),
    ),
    not(term("terms", severalMark(field))),
  );
  return either(
    only,
    terms(
      "terms",
      values.map((value) => firstLead(field) + value),
    ),
  );
}

/** Events without the path, and those whose first value there is an object. */
function withoutValue(field: string): Query {
  if (isTopField(field)) return { match_none: {} };
  const objectFirst = both(term("terms", objectMark(field)), not(prefix("terms", firstLead(field))));
  return either(not(term("terms", scalarMark(field))), objectFirst);
}

interface ValueCount {
  readonly value: string;
  readonly count: number;
}

/** The values by which the events sort, in their order, after the given one. */
async function* valuesInOrder(
  view: EventView,
  query: Query,
  { field, descending }: SortKey,
  after: string | undefined,
): AsyncGenerator<ValueCount> {
  if (isTopField(field)) {
    const name = field === "severity" ? "severity_rank" : field;
    const isNumber = field === "severity" || field === "timestamp";
    const from = after === undefined ? undefined : isNumber ? Number(after) : after;
    yield* readValues(view, query, { field: name, lead: "", type: "", descending, after: from });
    return;
  }
  const single = both(query, not(term("terms", severalMark(field))));
  const several = both(query, term("terms", severalMark(field)));
  for (const type of SCALAR_TYPES) {
    if (after !== undefined && type < after[0]!) continue;
    const own = after !== undefined && after[0] === type ? after : undefined;
    const of = (lead: string, part: Query) =>
      readValues(view, part, {
        field: "terms",
        lead,
        type,
        descending,
        after: own === undefined ? undefined : lead + own,
      });
    yield* merged(of(pathLead(field), single), of(firstLead(field), several), descending);
  }
}

interface ReadOptions {
  readonly field: string;
  readonly lead: string;
  readonly type: string;
  readonly descending: boolean;
  readonly after: string | number | undefined;
}

async function* readValues(
  view: EventView,
  query: Query,
  { field, lead, type, descending, after: from }: ReadOptions,
): AsyncGenerator<ValueCount> {
  const start = lead + type;
  const edge =
    type === "" ? undefined : lead + (descending ? AFTER_TYPE : BEFORE_TYPE)[type as keyof typeof AFTER_TYPE];
  let after = from ?? edge;
  const sources = [{ key: { terms: { field, order: descending ? "desc" : "asc" } } }];
  for (;;) {
    const composite = { size: VALUES_PER_ANSWER, sources, ...(after !== undefined && { after: { key: after } }) };
    const { aggregations } = await view({ query, size: 0, track_total_hits: false, aggs: { values: { composite } } });
    const { buckets = [] } = aggregations?.["values"] ?? {};
    for (const bucket of buckets) {
      const { key } = bucket.key as { key: string | number };
      const text = String(key);
      if (!text.startsWith(start)) return;
      yield { value: text.slice(lead.length), count: bucket.doc_count };
      after = key;
    }
    if (buckets.length < VALUES_PER_ANSWER) return;
  }
}

/** Texts that sort between the terms of a type and those of the type before or after it. The empty text is the type alone. */
const BEFORE_TYPE = { [NUMBER]: "0", [TEXT]: `${NUMBER}\u{10ffff}`, [BOOLEAN]: BOOLEAN } as const;
const AFTER_TYPE = { [NUMBER]: TEXT, [TEXT]: BOOLEAN, [BOOLEAN]: "4" } as const;

/** Two sorted lists as one, with the sums of equal values. */
async function* merged(
  left: AsyncGenerator<ValueCount>,
  right: AsyncGenerator<ValueCount>,
  descending: boolean,
): AsyncGenerator<ValueCount> {
  let [a, b] = await Promise.all([left.next(), right.next()]);
  while (!a.done || !b.done) {
    const order = a.done ? 1 : b.done ? -1 : compareTexts(a.value.value, b.value.value) * (descending ? -1 : 1);
    if (order === 0)
      yield { value: a.value!.value, count: (a.value as ValueCount).count + (b.value as ValueCount).count };
    else yield (order < 0 ? a.value : b.value) as ValueCount;
    const [nextA, nextB] = await Promise.all([order <= 0 ? left.next() : a, order >= 0 ? right.next() : b]);
    [a, b] = [nextA, nextB];
  }
}

/** By code point, as OpenSearch sorts. */
function compareTexts(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** The order of events of which all with the same first value are at hand. */
function comparator(keys: readonly SortKey[]): (a: Event, b: Event) => number {
  const orders = keys.map(({ field, descending }) => {
    const direction = descending ? -1 : 1;
    return (a: Event, b: Event): number => {
      if (isTopField(field)) {
        const [x, y] = [topValue(a, field), topValue(b, field)];
        if (typeof x === "number") return direction * (x - (y as number));
        return direction * compareTexts(x, y as string);
      }
      const [x, y] = [sortTerm(a, field), sortTerm(b, field)];
      if (x === null || y === null) return Number(x === null) - Number(y === null);
      return x[0] === y[0] ? direction * compareTexts(x, y) : x < y ? -1 : 1;
    };
  });
  return (a, b) => {
    for (const order of orders) {
      const difference = order(a, b);
      if (difference !== 0) return difference;
    }
    const times = Date.parse(b.timestamp) - Date.parse(a.timestamp);
    return times || (a.id < b.id ? 1 : -1);
  };
}
