import type { Aggregation } from "../model/aggregation.ts";

/** An aggregation as in the body of a search, without inner ones. Intervals of time are durations there. */
export function aggregationRequest({ kind, ...fields }: Aggregation): Record<string, object> {
  const { aggs: _, ...own } = fields as Record<string, unknown>;
  const isTime = own["field"] === "timestamp" && typeof own["interval"] === "number";
  return { [kind]: isTime ? { ...own, interval: `${(own["interval"] as number) / 60_000}m` } : own };
}
