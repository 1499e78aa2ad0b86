import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answered, api, type Event, type Schemas, type Severity } from "./client.ts";
import { boolOf, fieldAt, wordsOf, type Condition } from "./event-conditions.ts";

// Questions about events: rows, counts, fields and values.

type SearchBody = Schemas["Search"];
type Aggregation = NonNullable<SearchBody["aggs"]>[string];

export interface EventQuestion {
  readonly fromMs: number;
  readonly toMs: number;
  readonly conditions: readonly Condition[];
  readonly words: string;
}

export interface EventOrder {
  readonly field: string;
  readonly isDescending: boolean;
}

/** A filter on a field that no event has. */
export interface UnknownField {
  readonly field: string;
  readonly suggestion: string | null;
}

/** Days whose file was lost or damaged. */
export type MissingDay = Schemas["MetaIncomplete"];

const timeRange = ({ fromMs, toMs }: Pick<EventQuestion, "fromMs" | "toMs">) => ({
  from: new Date(fromMs).toISOString(),
  to: new Date(toMs).toISOString(),
});

/** Words are found anywhere in the text of any field: the search has no index of words. */
function searchQueryOf(question: EventQuestion): SearchBody["query"] {
  const bool = boolOf(question.conditions, wordsOf(question.words));
  return { ...(bool !== undefined && { bool }), time_range: timeRange(question) };
}

const search = (body: SearchBody, signal: AbortSignal) => answered(api.POST("/v1/events/search", { body, signal }));

interface Bucket {
  readonly key: string | number | boolean;
  readonly count: number;
  readonly [inner: string]: unknown;
}

interface Buckets {
  readonly buckets: readonly Bucket[];
  readonly other_count?: number;
}

const bucketsOf = (answer: unknown) => answer as Buckets;

// Rows

const LIST_PAGE = 100;
const SEARCH_PAGE = 200;
/** Pages that are kept; those far away are asked for again on the way back. */
const PAGES_MAX = 10;

/** Where a list is read from. From its end, the service is asked in the opposite order: each page is turned around already. */
export type ListEdge = "start" | "end";

export interface EventPage {
  readonly edge: ListEdge;
  /** Its place, counted from that edge: 0 is the first page that was read. */
  readonly index: number;
  readonly events: readonly Event[];
  readonly total: number;
  readonly next: string | null;
}

/** Where a page begins, with the way back to the pages before it. */
interface PageStart {
  readonly after: string | null;
  readonly index: number;
  readonly before: PageStart | null;
}

const OWN_FIELDS = ["source", "type", "severity"] as const;
const isNewestFirst = ({ field, isDescending }: EventOrder) => field === "timestamp" && isDescending;

/** The list has an index of words, but takes no other conditions than these. */
export function usesWordIndex({ conditions, words }: EventQuestion, order: EventOrder): boolean {
  return (
    words !== "" &&
    isNewestFirst(order) &&
    conditions.every(
      ({ field, operator, value }) =>
        (OWN_FIELDS as readonly string[]).includes(field) && operator === "=" && !/[*?\\/,]/.test(value),
    )
  );
}

async function listedPage(question: EventQuestion, start: PageStart, signal: AbortSignal): Promise<EventPage> {
  const { from, to } = timeRange(question);
  const values = (field: string) => question.conditions.filter((one) => one.field === field).map(({ value }) => value);
  const own = Object.fromEntries(
    OWN_FIELDS.map((field) => [field, values(field).join(",")]).filter(([, list]) => list !== ""),
  );
  const query = {
    ...own,
    from,
    to,
    search: question.words,
    limit: LIST_PAGE,
    ...(start.after !== null && { after: start.after }),
  };
  const { data, pagination } = await answered(api.GET("/v1/events", { params: { query }, signal }));
  const { total, next_cursor: next } = pagination;
  return { edge: "start", index: start.index, events: data, total, next: next ?? null };
}

async function searchedPage(
  question: EventQuestion,
  order: EventOrder,
  edge: ListEdge,
  start: PageStart,
  signal: AbortSignal,
): Promise<EventPage> {
  const asked = edge === "start" ? order : { ...order, isDescending: !order.isDescending };
  const sort = { [asked.field]: asked.isDescending ? ("desc" as const) : ("asc" as const) };
  const body: SearchBody = {
    query: searchQueryOf(question),
    limit: SEARCH_PAGE,
    ...(!isNewestFirst(asked) && { sort }),
    ...(start.after !== null && { after: start.after }),
  };
  const { data } = await search(body, signal);
  const events = edge === "start" ? data.results : data.results.toReversed();
  return { edge, index: start.index, events, total: data.total, next: data.next_cursor ?? null };
}

const FIRST: PageStart = { after: null, index: 0, before: null };

/** The list with an index of words has one order only. */
export const canReadFromEnd = (question: EventQuestion, order: EventOrder) => !usesWordIndex(question, order);

/** `jumps` tells the windows of one list apart: each jump to an edge opens a new one there. */
export const eventListQuery = (question: EventQuestion, order: EventOrder, edge: ListEdge, jumps: number) =>
  infiniteQueryOptions({
    queryKey: ["events", "list", question, order, edge, jumps],
    placeholderData: keepPreviousData,
    initialPageParam: FIRST,
    maxPages: PAGES_MAX,
    // Rows that somebody reads are replaced when they ask for it.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    queryFn: ({ signal, pageParam }) =>
      usesWordIndex(question, order)
        ? listedPage(question, pageParam, signal)
        : searchedPage(question, order, edge, pageParam, signal),
    getNextPageParam: ({ next }, _pages, start): PageStart | undefined =>
      next === null ? undefined : { after: next, index: start.index + 1, before: start },
    getPreviousPageParam: (_page, _pages, start): PageStart | undefined => start.before ?? undefined,
  });

/** The newest few. */
export const latestEventsQuery = (question: EventQuestion, limit: number) =>
  queryOptions({
    queryKey: ["events", "latest", question, limit],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Pick<EventPage, "events" | "total">> => {
      const { data } = await search({ query: searchQueryOf(question), limit }, signal);
      return { events: data.results, total: data.total };
    },
  });

export const eventQuery = (id: string) =>
  queryOptions({
    queryKey: ["events", "one", id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) =>
      (await answered(api.GET("/v1/events/{id}", { params: { path: { id } }, signal }))).data,
  });

// Counts

export interface EventCounts {
  readonly total: number;
  readonly buckets: readonly { readonly atMs: number; readonly counts: Partial<Record<Severity, number>> }[];
  readonly unknownFields: readonly UnknownField[];
  readonly missing: readonly MissingDay[];
}

export const eventCountsQuery = (question: EventQuestion, interval: string) =>
  queryOptions({
    queryKey: ["events", "counts", question, interval],
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    queryFn: async ({ signal }): Promise<EventCounts> => {
      const query = searchQueryOf(question);
      const aggs = {
        over_time: {
          histogram: { field: "timestamp", interval },
          aggs: { severity: { terms: { field: "severity", size: 5 } } },
        },
      };
      const { data, meta } = await search({ query, limit: 0, aggs }, signal);
      const buckets = bucketsOf(data.aggregations["over_time"]).buckets.map(({ key, severity }) => ({
        atMs: Date.parse(String(key)),
        counts: Object.fromEntries(bucketsOf(severity).buckets.map((bucket) => [String(bucket.key), bucket.count])),
      }));
      const unknownFields = (meta.warnings ?? []).flatMap(({ field: place, suggestion }) => {
        const field = fieldAt(query, place);
        return field === undefined ? [] : [{ field, suggestion }];
      });
      return { total: data.total, buckets, unknownFields, missing: meta.incomplete ?? [] };
    },
  });

export const eventTotalQuery = (question: EventQuestion) =>
  queryOptions({
    queryKey: ["events", "total", question],
    staleTime: 30_000,
    queryFn: async ({ signal }) => (await search({ query: searchQueryOf(question), limit: 0 }, signal)).data.total,
  });

/** Whether anything was ever stored. */
export const anyEventQuery = queryOptions({
  queryKey: ["events", "any"],
  queryFn: async ({ signal }) => {
    const { pagination } = await answered(api.GET("/v1/events", { params: { query: { limit: 1 } }, signal }));
    return pagination.total > 0;
  },
});

export interface FieldValues {
  readonly values: readonly { readonly value: string; readonly count: number }[];
  /** Events with values that are not listed. */
  readonly others: number;
}

/** The most frequent values of some fields. */
export const fieldValuesQuery = (question: EventQuestion, fields: readonly string[], size: number) =>
  queryOptions({
    queryKey: ["events", "values", question, fields, size],
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    queryFn: async ({ signal }): Promise<ReadonlyMap<string, FieldValues>> => {
      const aggs: Record<string, Aggregation> = {};
      for (const [index, field] of fields.entries()) aggs[`f${index}`] = { terms: { field, size } };
      const { data } = await search({ query: searchQueryOf(question), limit: 0, aggs }, signal);
      return new Map(
        fields.map((field, index) => {
          const { buckets, other_count = 0 } = bucketsOf(data.aggregations[`f${index}`]);
          const values = buckets.map(({ key, count }) => ({ value: String(key), count }));
          return [field, { values, others: other_count }];
        }),
      );
    },
  });

// Fields

export type EventField = Schemas["EventField"];
const FIELDS_MAX = 1000;

/** The fields that events have. The range is that of whole hours, so that it is asked for once an hour at most. */
export const eventFieldsQuery = ({ fromMs, toMs }: Pick<EventQuestion, "fromMs" | "toMs">) => {
  const hourMs = 3_600_000;
  const range = timeRange({
    fromMs: Math.floor(fromMs / hourMs) * hourMs,
    toMs: Math.ceil(toMs / hourMs) * hourMs,
  });
  return queryOptions({
    queryKey: ["events", "fields", range],
    placeholderData: keepPreviousData,
    staleTime: 5 * 60_000,
    queryFn: async ({ signal }) => {
      const query = { ...range, per_page: FIELDS_MAX };
      return (await answered(api.GET("/v1/events/fields", { params: { query }, signal }))).data.fields;
    },
  });
};

// Exports

export type EventExport = Schemas["Export"];
export type ExportFormat = EventExport["format"];

const EXPORTS_REFRESH_MS = 1000;
const isUnfinished = ({ status }: EventExport) => status === "pending" || status === "running";

export const eventExportsQuery = queryOptions({
  queryKey: ["events", "exports"],
  staleTime: 0,
  queryFn: async ({ signal }): Promise<readonly EventExport[]> =>
    (await answered(api.GET("/v1/events/exports", { params: { query: { limit: 100 } }, signal }))).data,
  refetchInterval: ({ state }) => (state.data?.some(isUnfinished) === true ? EXPORTS_REFRESH_MS : false),
});

export async function exportEvents(
  question: EventQuestion,
  format: ExportFormat,
  fields: readonly string[] | undefined,
): Promise<void> {
  const { bool, time_range: range } = searchQueryOf(question);
  const body = {
    format,
    time_range: range as { from: string; to: string },
    ...(bool !== undefined && { query: { bool } }),
    ...(fields !== undefined && { fields: [...fields] }),
  };
  await answered(api.POST("/v1/events/export", { body }));
}

export async function deleteExport(id: string): Promise<void> {
  await answered(api.DELETE("/v1/events/exports/{id}", { params: { path: { id } } }));
}
