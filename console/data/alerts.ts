import { queryOptions, type QueryClient } from "@tanstack/react-query";
import { answered, api, type Alert, type AlertDetail, type Severity } from "./client.ts";

// Alerts as lists, groups and counts ask for them.

export type Status = Alert["status"];

export interface AlertFilters {
  readonly status?: readonly Status[];
  readonly severity?: readonly Severity[];
  readonly rule_name?: readonly string[];
  readonly source?: readonly string[];
  /** Addresses in any case; `none`: nobody. */
  readonly assignee?: readonly string[];
  /** `kind:value`, or a value of any kind. */
  readonly entity?: readonly string[];
  readonly event_id?: readonly string[];
  readonly tag?: readonly string[];
  readonly search?: string;
  /** What `from` and `to` compare: when the alert was created, or the time from its first to its last event. */
  readonly time?: "created" | "overlap";
  readonly from?: string;
  readonly to?: string;
}

export type AlertSort = "created_at" | "last_event_at" | "severity" | "event_count";

export const ALERTS_PER_PAGE = 100;

export interface AlertPage {
  readonly alerts: readonly Alert[];
  readonly total: number;
  readonly next: string | null;
  /** The clock of the service when it answered. */
  readonly atMs: number;
}

/** One page after a cursor. It stays as it was read: rows change through the stream, and only their own. */
export const alertPageQuery = (filters: AlertFilters, sort: AlertSort, after: string | null, generation: number) =>
  queryOptions({
    queryKey: ["alerts", "page", filters, sort, after, generation],
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 30_000,
    queryFn: async ({ signal }): Promise<AlertPage> => {
      const query = { ...filters, sort, order: "desc", limit: ALERTS_PER_PAGE, ...(after !== null && { after }) };
      const { data, pagination, meta } = await answered(
        api.GET("/v1/alerts", { params: { query: query as never }, signal }),
      );
      return {
        alerts: data,
        total: pagination.total,
        next: pagination.next_cursor ?? null,
        atMs: Date.parse(meta.timestamp),
      };
    },
  });

/** Pages out of sight that are kept for the way back. */
const HIDDEN_PAGES_MAX = 20;

/** Forgets the pages that were read longest ago, so that the longest list takes no more memory than a short one. */
export function forgetHiddenPages(client: QueryClient): void {
  const cache = client.getQueryCache();
  const hidden = cache.findAll({ queryKey: ["alerts", "page"], type: "inactive", fetchStatus: "idle" });
  const oldestLast = hidden.toSorted((a, b) => b.state.dataUpdatedAt - a.state.dataUpdatedAt);
  for (const query of oldestLast.slice(HIDDEN_PAGES_MAX)) cache.remove(query);
}

export const alertCountQuery = (filters: AlertFilters) =>
  queryOptions({
    queryKey: ["alerts", "count", filters],
    queryFn: async ({ signal }) => {
      const query = { ...filters, limit: 1 };
      return (await answered(api.GET("/v1/alerts", { params: { query: query as never }, signal }))).pagination.total;
    },
  });

export const alertDetailQuery = (id: string) =>
  queryOptions({
    queryKey: ["alerts", "detail", id],
    queryFn: async ({ signal }): Promise<AlertDetail> =>
      (await answered(api.GET("/v1/alerts/{id}", { params: { path: { id } }, signal }))).data,
  });
