import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { heatOf, heatStepMs, intervalText, type CountsByTime, type Heat } from "../components/axis/heat.ts";
import type { Traffic } from "../components/axis/traffic.ts";
import type { View } from "../components/axis/view.ts";
import { ENTITY_FIELDS, type Entity } from "../components/entities/entity.ts";
import type { operations } from "../../clients/typescript/schema.d.ts";
import { answered, api, type Alert, type Event, type Schemas } from "./client.ts";

// What the time axis asks: how much there is, and then either each event or counts by lane and time.

/** Up to this many in view, each event is a mark. */
export const MARKED_EVENTS_MAX = 1000;
const EVENTS_PER_PAGE = 1000;
/** More than is marked, because more than the view is asked for. */
export const EVENTS_MAX = 3 * EVENTS_PER_PAGE;
const ALERTS_PER_PAGE = 100;
const ALERTS_MAX = 300;
const PLACES_MAX = 40;
const TYPES_MAX = 100;

type SearchBody = Schemas["Search"];
type Filter = Schemas["Filter"];

export interface AxisQuestion extends View {
  /** Events that name one of these; all if empty. */
  readonly entities: readonly Entity[];
}

function queryOf({ fromMs, toMs, entities }: AxisQuestion): SearchBody["query"] {
  const tests = entities.flatMap(({ kind, value }) =>
    ENTITY_FIELDS[kind].map((field): Filter => ({ field: `raw.${field}`, equals: value })),
  );
  return {
    ...(tests.length > 0 && { bool: { should: tests } }),
    time_range: { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() },
  };
}

async function search(body: SearchBody, signal: AbortSignal) {
  return (await answered(api.POST("/v1/events/search", { body, signal }))).data;
}

export const eventCountQuery = (question: AxisQuestion) =>
  queryOptions({
    queryKey: ["axis", "count", question],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => (await search({ query: queryOf(question), limit: 0 }, signal)).total,
  });

export const axisEventsQuery = (question: AxisQuestion) =>
  queryOptions({
    queryKey: ["axis", "events", question],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<readonly Event[]> => {
      const events: Event[] = [];
      let after: string | null = null;
      do {
        const body: SearchBody = {
          query: queryOf(question),
          sort: { timestamp: "asc" },
          limit: EVENTS_PER_PAGE,
          ...(after !== null && { after }),
        };
        const page: Awaited<ReturnType<typeof search>> = await search(body, signal);
        events.push(...page.results);
        after = page.next_cursor ?? null;
      } while (after !== null && events.length < EVENTS_MAX);
      return events;
    },
  });

interface Bucket {
  readonly key: unknown;
  readonly count: number;
  readonly [inner: string]: unknown;
}

const bucketsOf = (answer: unknown) => (answer as { readonly buckets: readonly Bucket[] }).buckets;

const countsByTime = (bucket: Bucket): CountsByTime => ({
  key: String(bucket.key),
  cells: bucketsOf(bucket["when"])
    .filter(({ count }) => count > 0)
    .map(({ key, count }) => ({ atMs: Date.parse(String(key)), count })),
});

export const axisHeatQuery = (question: AxisQuestion) =>
  queryOptions({
    queryKey: ["axis", "heat", question],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Heat> => {
      const stepMs = heatStepMs(question.toMs - question.fromMs);
      const when = { when: { histogram: { field: "timestamp", interval: intervalText(stepMs) } } };
      const { aggregations } = await search(
        {
          query: queryOf(question),
          limit: 0,
          aggs: {
            doors: { terms: { field: "raw.door", size: PLACES_MAX }, aggs: when },
            cameras: { terms: { field: "raw.camera", size: PLACES_MAX }, aggs: when },
            types: {
              terms: { field: "type", size: TYPES_MAX },
              aggs: { ...when, source: { terms: { field: "source", size: 1 } } },
            },
          },
        },
        signal,
      );
      return heatOf({
        stepMs,
        doors: bucketsOf(aggregations["doors"]).map(countsByTime),
        cameras: bucketsOf(aggregations["cameras"]).map(countsByTime),
        types: bucketsOf(aggregations["types"]).map((bucket) => ({
          ...countsByTime(bucket),
          source: String(bucketsOf(bucket["source"])[0]?.key ?? "custom"),
        })),
      });
    },
  });

export interface AxisAlerts {
  /** The worst first, at most `ALERTS_MAX`. */
  readonly alerts: readonly Alert[];
  readonly total: number;
}

type AlertListQuery = NonNullable<operations["listAlerts"]["parameters"]["query"]>;

interface AlertPage {
  readonly data: readonly Alert[];
  readonly pagination: { readonly total: number; readonly next_cursor?: string | null };
}

/** Alerts with events in that time. `severity`: only these. */
export const axisAlertsQuery = (question: AxisQuestion, severity?: string) =>
  queryOptions({
    queryKey: ["alerts", "axis", question, severity],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<AxisAlerts> => {
      const alerts: Alert[] = [];
      let after: string | null = null;
      let total: number;
      do {
        const query: AlertListQuery = {
          time: "overlap",
          from: new Date(question.fromMs).toISOString(),
          to: new Date(question.toMs).toISOString(),
          sort: "severity",
          order: "desc",
          limit: ALERTS_PER_PAGE,
          ...(severity !== undefined && { severity }),
          ...(question.entities.length > 0 && {
            entity: question.entities.map(({ kind, value }) => `${kind}:${value}`).join(","),
          }),
          ...(after !== null && { after }),
        };
        const page: AlertPage = await answered(api.GET("/v1/alerts", { params: { query }, signal }));
        alerts.push(...page.data);
        total = page.pagination.total;
        after = page.pagination.next_cursor ?? null;
      } while (after !== null && alerts.length < ALERTS_MAX);
      return { alerts, total };
    },
  });

export const axisTrafficQuery = ({ fromMs, toMs, entities }: AxisQuestion) => {
  const host = entities.find(({ kind }) => kind === "address")?.value;
  return queryOptions({
    queryKey: ["axis", "traffic", fromMs, toMs, host],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }): Promise<Traffic> => {
      const query = { from: Math.floor(fromMs), to: Math.ceil(toMs), ...(host !== undefined && { host }) };
      const answer = await answered(api.GET("/api/v1/flows/timeseries", { params: { query }, signal }));
      const bytes = (answer.series[0]?.bytes ?? []) as readonly number[];
      return {
        stepMs: answer.interval_secs * 1000,
        points: answer.timestamps.map((atMs, index) => ({ atMs, bytes: bytes[index] ?? 0 })),
      };
    },
  });
};

/** Events over time, whatever they are about: the ground of the overview. */
export const axisOverviewQuery = ({ fromMs, toMs }: View, stepMs: number) =>
  queryOptions({
    queryKey: ["axis", "overview", fromMs, toMs, stepMs],
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const { total, aggregations } = await search(
        {
          query: queryOf({ fromMs, toMs, entities: [] }),
          limit: 0,
          aggs: { when: { histogram: { field: "timestamp", interval: intervalText(stepMs) } } },
        },
        signal,
      );
      const cells = bucketsOf(aggregations["when"]).map(({ key, count }) => ({ atMs: Date.parse(String(key)), count }));
      return { total, cells };
    },
  });
