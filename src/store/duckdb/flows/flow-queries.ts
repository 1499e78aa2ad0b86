import type { Flow, FlowFilter, FlowOrder } from "../../../model/flow-query.ts";
import type { FlowDay } from "./flow-days.ts";
import { countSql, pageSql, rowsSql, toFlow } from "./flow-sql.ts";
import type { RowsOf, RunFlowSql } from "./traffic-sums.ts";

// Pages and sums of flows over the days of a query.

/** A query that is running. */
export interface FlowQuery {
  readonly run: RunFlowSql;
  readonly flowDays: readonly FlowDay[];
  readonly filter: FlowFilter;
}

export const sumsRowsOf =
  ({ flowDays, filter }: FlowQuery): RowsOf =>
  ({ columns, families }) =>
    rowsSql(flowDays, filter, [...columns, "ts", "bytes", "packets"], families);

/** In order of time, only the days that contain the page are read. */
export async function pageByTime(
  { run, flowDays, filter }: FlowQuery,
  order: FlowOrder,
  offset: number,
  limit: number,
) {
  const counting = flowDays.map((flowDay, nth) => `SELECT ${nth}, (${countSql([flowDay], filter)})`);
  const counts = flowDays.map(() => 0);
  for (const [nth, matching] of await run(counting.join(" UNION ALL "))) counts[Number(nth)] = Number(matching);
  const total = counts.reduce((sum, matching) => sum + matching, 0);
  const flows: Flow[] = [];
  let skip = offset;
  for (const nth of order.descending ? [...flowDays.keys()].reverse() : flowDays.keys()) {
    const take = Math.min(limit - flows.length, counts[nth]! - skip);
    if (take > 0) {
      const found = await run(pageSql([flowDays[nth]!], filter, order, skip, take));
      flows.push(...found.map(toFlow));
    }
    skip = Math.max(0, skip - counts[nth]!);
    if (flows.length === limit) break;
  }
  return { total, flows };
}

export async function pageBySize(
  { run, flowDays, filter }: FlowQuery,
  order: FlowOrder,
  offset: number,
  limit: number,
) {
  const [[count]] = (await run(countSql(flowDays, filter))) as [[bigint]];
  const total = Number(count);
  if (offset >= total) return { total, flows: [] };
  const found = await run(pageSql(flowDays, filter, order, offset, limit));
  return { total, flows: found.map(toFlow) };
}
