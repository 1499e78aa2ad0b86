import type {
  Flow,
  FlowFilter,
  FlowOrder,
  TalkersQuery,
  Timeseries,
  TimeseriesQuery,
  Traffic,
} from "../../model/flow-query.ts";
import type { FlowRows } from "../../model/flow.ts";
import type { QueryContext } from "./query-context.ts";

/** The engine that holds the flows. */
export interface FlowEngine {
  /**
   * Stores the rows. Once it resolves they survive a crash and every read sees them. If it rejects, with StoreUnavailable,
   * some of them may be stored: appending the same rows under the same batch id again stores only those that are missing,
   * also after a restart.
   */
  append(rows: FlowRows, batchId: string): Promise<void>;
  list(
    filter: FlowFilter,
    order: FlowOrder,
    offset: number,
    limit: number,
    context?: QueryContext,
  ): Promise<{ readonly total: number; readonly flows: readonly Flow[] }>;
  topTalkers(query: TalkersQuery, context?: QueryContext): Promise<readonly Traffic[]>;
  /** By protocol name, most bytes first. */
  protocols(filter: FlowFilter, context?: QueryContext): Promise<readonly Traffic[]>;
  /** A query of more than TIMESERIES_POINTS_MAX points is a QueryRefused on `interval`. */
  timeseries(query: TimeseriesQuery, context?: QueryContext): Promise<Timeseries>;
  /** Removes whole UTC days of `timestamp` that lie before this time. */
  removeBefore(ms: number): Promise<{ days: number; flows: number }>;
  count(): Promise<number>;
}
