import {
  ALL_KEY,
  OTHER_KEY,
  timeseriesPoints,
  type Measure,
  type Series,
  type Timeseries,
  type TimeseriesQuery,
  type Traffic,
} from "../../../model/flow-query.ts";
import type { Grouping } from "./flow-sql.ts";

// Sums over flows.

/** Runs a query and returns its rows. */
export type RunFlowSql = (sql: string) => Promise<unknown[][]>;

const SUMS = "sum(bytes) AS bytes, sum(packets) AS packets, count(*) AS flow_count";

interface TopGroup extends Traffic {
  readonly grouping: Grouping;
  /** The values of its columns. */
  readonly cells: readonly unknown[];
}

/** The SQL of the rows of a grouping, with these columns in addition. */
export type RowsOf = (grouping: Pick<Grouping, "columns" | "families">) => string;

/** The groups with the highest sums; ties sort by key. */
export async function topGroups(
  run: RunFlowSql,
  rowsOf: RowsOf,
  groupings: readonly Grouping[],
  by: Measure,
  limit: number,
): Promise<TopGroup[]> {
  const found: TopGroup[] = [];
  for (const grouping of groupings) found.push(...(await topOfGrouping(run, rowsOf(grouping), grouping, by, limit)));
  return found.sort(ranking(by)).slice(0, limit);
}

async function topOfGrouping(
  run: RunFlowSql,
  from: string,
  grouping: Grouping,
  by: Measure,
  limit: number,
): Promise<TopGroup[]> {
  const { columns } = grouping;
  const groups = `SELECT ${columns.join(", ")}, ${SUMS} FROM ${from} GROUP BY ALL`;
  const read = async (sql: string) => (await run(sql)).map((cells) => toGroup(cells, grouping));
  // One group more than requested shows whether the last ones tie with others. Then their keys decide, which are computed for
  // the tied groups only.
  const found = await read(`${groups} ORDER BY ${by} DESC LIMIT ${limit + 1}`);
  const boundary = found[limit - 1]?.[by];
  if (found.length <= limit || found[limit]![by] !== boundary) return found.slice(0, limit);
  const above = found.filter((group) => group[by] !== boundary);
  const tied = await read(
    `SELECT * FROM (${groups}) WHERE ${by} = ${boundary} ORDER BY ${grouping.keySql} LIMIT ${limit - above.length}`,
  );
  return [...above, ...tied];
}

function toGroup(cells: readonly unknown[], grouping: Grouping): TopGroup {
  const { columns, keyOf } = grouping;
  const [bytes, packets, flowCount] = cells.slice(columns.length) as [bigint, bigint, bigint];
  const own = cells.slice(0, columns.length);
  return { key: keyOf(cells), bytes, packets, flowCount: Number(flowCount), grouping, cells: own };
}

function ranking(by: Measure): (a: Traffic, b: Traffic) => number {
  return (a, b) => (a[by] === b[by] ? (a.key < b.key ? -1 : 1) : a[by] > b[by] ? -1 : 1);
}

export const withoutCells = ({ key, bytes, packets, flowCount }: TopGroup): Traffic => ({
  key,
  bytes,
  packets,
  flowCount,
});

/** Sums over time: for each of the top groups, and for all others together. */
export async function timeseries(
  run: RunFlowSql,
  rowsOf: RowsOf,
  groupings: readonly Grouping[],
  { filter, intervalMs, shiftMs = 0, split, by, limit }: TimeseriesQuery,
): Promise<Timeseries> {
  const timestamps = timeseriesPoints(filter.fromMs + shiftMs, filter.toMs + shiftMs, intervalMs);
  const shifted = `(ts + ${shiftMs})`;
  const point = `${shifted} - (((${shifted} % ${intervalMs}) + ${intervalMs}) % ${intervalMs})`;
  const all = new MutableSeries(ALL_KEY, timestamps);
  const everything = rowsOf({ columns: [], families: ["four", "six"] });
  for (const [at, ...sums] of await run(`SELECT ${point}, ${SUMS} FROM ${everything} GROUP BY ALL`)) all.add(at, sums);
  if (split === undefined) return { timestamps, series: [all] };

  const top = await topGroups(run, rowsOf, groupings, by, limit);
  const series = new Map(top.map(({ key }) => [key, new MutableSeries(key, timestamps)]));
  for (const grouping of groupings) {
    const own = top.filter((group) => group.grouping === grouping);
    if (own.length === 0) continue;
    const columns = grouping.columns.join(", ");
    const values = own.map(({ cells }) => `(${cells.map(String).join(", ")})`).join(", ");
    const sql = `SELECT ${columns}, ${point}, ${SUMS} FROM ${rowsOf(grouping)} WHERE (${columns}) IN (${values}) GROUP BY ALL`;
    for (const cells of await run(sql)) {
      const [at, ...sums] = cells.slice(grouping.columns.length);
      series.get(grouping.keyOf(cells))!.add(at, sums);
    }
  }
  const other = all.without([...series.values()]);
  const others = other.flowCount.some((count) => count > 0) ? [other] : [];
  return { timestamps, series: [...series.values(), ...others] };
}

class MutableSeries implements Series {
  readonly key: string;
  readonly bytes: bigint[];
  readonly packets: bigint[];
  readonly flowCount: number[];
  readonly #positions: ReadonlyMap<number, number>;
  readonly #timestamps: readonly number[];

  constructor(key: string, timestamps: readonly number[]) {
    this.key = key;
    this.#timestamps = timestamps;
    this.#positions = new Map(timestamps.map((at, position) => [at, position]));
    this.bytes = timestamps.map(() => 0n);
    this.packets = timestamps.map(() => 0n);
    this.flowCount = timestamps.map(() => 0);
  }

  add(at: unknown, [bytes, packets, flowCount]: readonly unknown[]): void {
    const position = this.#positions.get(Number(at))!;
    this.bytes[position]! += bytes as bigint;
    this.packets[position]! += packets as bigint;
    this.flowCount[position]! += Number(flowCount);
  }

  without(parts: readonly Series[]): MutableSeries {
    const remainder = new MutableSeries(OTHER_KEY, this.#timestamps);
    for (const position of this.#timestamps.keys()) {
      remainder.bytes[position] = parts.reduce((left, { bytes }) => left - bytes[position]!, this.bytes[position]!);
      remainder.packets[position] = parts.reduce(
        (left, { packets }) => left - packets[position]!,
        this.packets[position]!,
      );
      remainder.flowCount[position] = parts.reduce(
        (left, { flowCount }) => left - flowCount[position]!,
        this.flowCount[position]!,
      );
    }
    return remainder;
  }
}
