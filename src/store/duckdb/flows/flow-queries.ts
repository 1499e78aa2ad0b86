import type { Flow, FlowFilter, FlowOrder } from "../../../model/flow-query.ts";
import type { FlowDay } from "./flow-days.ts";
import {
  countedPlacesSql,
  countSql,
  pageSql,
  placeAfterColumns,
  rowsAtSql,
  rowsSql,
  toFlow,
  toPlace,
  type FlowPageOrder,
  type FlowPlace,
} from "./flow-sql.ts";
import type { RowsOf, RunFlowSql } from "./traffic-sums.ts";

// Pages and sums of flows over the days of a query.

/** A query that is running. */
export interface FlowQuery {
  readonly run: RunFlowSql;
  readonly flowDays: readonly FlowDay[];
  readonly filter: FlowFilter;
  /** The memory that places of matches may take. */
  readonly placesBytesMax: number;
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

/** A place of a row in memory: its table, its number, and the columns of the order. */
const PLACE_BYTES = 40;

export async function pageBySize(query: FlowQuery, order: FlowOrder, offset: number, limit: number) {
  const { run, flowDays, filter, placesBytesMax } = query;
  const rowsMax = flowDays.reduce((rows, { lastSeq }) => rows + lastSeq, 0);
  // Without a filter, counting reads little, and as many places as rows would be kept.
  if (hasFilter(filter) && rowsMax * PLACE_BYTES <= placesBytesMax) {
    const page = await pageByPlaces(query, { order, offset, limit });
    if (page) return page;
  }
  const [[count]] = (await run(countSql(flowDays, filter))) as [[bigint]];
  const total = Number(count);
  if (offset >= total) return { total, flows: [] };
  const found = await run(pageSql(flowDays, filter, order, offset, limit));
  return { total, flows: found.map(toFlow) };
}

/**
 * Finds the places of the page in the columns of the filter and the order, then reads the other columns of these rows only.
 * DuckDB would read them late on its own, but plans and runs a join for each table of each day. Undefined if the page is empty.
 */
async function pageByPlaces({ run, flowDays, filter }: FlowQuery, page: FlowPageOrder) {
  const found = await run(countedPlacesSql(flowDays, filter, page));
  if (found.length === 0) return undefined;
  const places = found.map(toPlace);
  const keyOf = ({ table, row }: FlowPlace) => `${table} ${row}`;
  const rows = new Map(
    (await run(rowsAtSql(flowDays, places))).map((cells) => [keyOf(placeAfterColumns(cells)), cells]),
  );
  return { total: Number(found[0]![2]), flows: places.map((place) => toFlow(rows.get(keyOf(place))!)) };
}

/** True when a filter tests more than the time. */
function hasFilter({ fromMs: _fromMs, toMs: _toMs, ...others }: FlowFilter): boolean {
  return Object.values(others).some((value) => value !== undefined);
}
