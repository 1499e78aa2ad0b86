import { queryOptions } from "@tanstack/react-query";
import { alertQuery } from "./alert-query.ts";
import type { AlertFilters } from "./alerts.ts";
import { answered, api, type Alert, type Severity } from "./client.ts";
import { SEVERITIES } from "./severity.ts";

// Counts of alerts by the service's aggregations.

export interface SearchAnswer {
  readonly buckets?: readonly SearchBucket[];
  readonly value?: number;
  readonly sum?: number | null;
  readonly max?: unknown;
  readonly min?: unknown;
}

export interface SearchBucket {
  readonly key: string | number | boolean;
  readonly count: number;
  readonly [name: string]: SearchAnswer | string | number | boolean;
}

interface SearchResult {
  readonly total: number;
  readonly results: readonly Alert[];
  /** The clock of the service when it answered. */
  readonly atMs: number;
  readonly aggregations: Readonly<Record<string, SearchAnswer>>;
}

interface SearchOptions {
  readonly aggs: object;
  /** How many of the latest alerts come with the counts. */
  readonly latest?: number;
  readonly signal: AbortSignal;
}

export async function searchAlerts(
  filters: AlertFilters,
  { aggs, latest = 0, signal }: SearchOptions,
): Promise<SearchResult> {
  const body = { ...alertQuery(filters), aggs, limit: latest, sort: { last_event_at: "desc" } };
  const { data, meta } = await answered(api.POST("/v1/alerts/search", { body: body as never, signal }));
  return { ...(data as unknown as Omit<SearchResult, "atMs">), atMs: Date.parse(meta.timestamp) };
}

export interface HistogramBucket {
  readonly atMs: number;
  readonly counts: Readonly<Partial<Record<Severity, number>>>;
}

/** How many alerts of each severity, by the time of their last event. */
export const alertHistogramQuery = (filters: AlertFilters, stepMs: number) =>
  queryOptions({
    queryKey: ["alerts", "histogram", filters, stepMs],
    queryFn: async ({ signal }): Promise<HistogramBucket[]> => {
      const aggs = {
        severities: {
          terms: { field: "severity", size: SEVERITIES.length },
          aggs: { when: { histogram: { field: "last_event_at", interval: intervalOf(stepMs) } } },
        },
      };
      const { aggregations } = await searchAlerts(filters, { aggs, signal });
      const byTime = new Map<number, Partial<Record<Severity, number>>>();
      for (const bucket of aggregations["severities"]!.buckets!) {
        for (const { key, count } of (bucket["when"] as SearchAnswer).buckets!) {
          const atMs = Date.parse(String(key));
          byTime.set(atMs, { ...byTime.get(atMs), [String(bucket.key)]: count });
        }
      }
      return [...byTime].map(([atMs, counts]) => ({ atMs, counts })).toSorted((a, b) => a.atMs - b.atMs);
    },
  });

export const intervalOf = (stepMs: number) => `${Math.max(1, Math.round(stepMs / 1000))}s`;
