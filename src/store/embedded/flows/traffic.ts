import {
  ALL_KEY,
  OTHER_KEY,
  timeseriesPoints,
  type Measure,
  type Series,
  type Timeseries,
  type TimeseriesQuestion,
  type Traffic,
} from "../../../model/flow-question.ts";
import { DIMENSIONS, type Dimension } from "./question.ts";

// Sums over flows.

/** Runs a query and gives its rows. */
export type Run = (sql: string) => Promise<unknown[][]>;

const SUMS = "sum(bytes) AS bytes, sum(packets) AS packets, count(*) AS flow_count";

interface TopGroup extends Traffic {
  /** The values of the dimension's columns. */
  readonly cells: readonly unknown[];
}

/** The highest sums, ties by key. `from` is a table of the rows to add up, already filtered. */
export async function topGroups(
  run: Run,
  from: string,
  dimension: Dimension,
  by: Measure,
  limit: number,
): Promise<TopGroup[]> {
  const { columns } = dimension;
  const groups = `SELECT ${columns.join(", ")}, ${SUMS} FROM ${from} GROUP BY ALL`;
  const read = async (sql: string) => (await run(sql)).map((cells) => toGroup(cells, dimension));
  // One more than asked for tells whether the last ones share their sum with others; then their keys decide, which are
  // spelled out for those groups alone.
  const found = await read(`${groups} ORDER BY ${by} DESC LIMIT ${limit + 1}`);
  const boundary = found[limit - 1]?.[by];
  if (found.length <= limit || found[limit]![by] !== boundary) return found.sort(ranking(by)).slice(0, limit);
  const above = found.filter((group) => group[by] !== boundary);
  const tied = await read(
    `SELECT * FROM (${groups}) WHERE ${by} = ${boundary} ORDER BY ${dimension.keySql} LIMIT ${limit - above.length}`,
  );
  return [...above, ...tied].sort(ranking(by));
}

function toGroup(cells: readonly unknown[], { columns, keyOf }: Dimension): TopGroup {
  const [bytes, packets, flowCount] = cells.slice(columns.length) as [bigint, bigint, bigint];
  return { key: keyOf(cells), bytes, packets, flowCount: Number(flowCount), cells: cells.slice(0, columns.length) };
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

/** How sums went over time: of the top groups one by one, and of what is left as one. */
export async function timeseries(
  run: Run,
  from: string,
  { filter, intervalMs, split, by, limit }: TimeseriesQuestion,
): Promise<Timeseries> {
  const timestamps = timeseriesPoints(filter.fromMs, filter.toMs, intervalMs);
  const point = `ts - (((ts % ${intervalMs}) + ${intervalMs}) % ${intervalMs})`;
  const all = new MutableSeries(ALL_KEY, timestamps);
  for (const [at, ...sums] of await run(`SELECT ${point}, ${SUMS} FROM ${from} GROUP BY ALL`)) all.add(at, sums);
  if (split === undefined) return { timestamps, series: [all] };

  const dimension = DIMENSIONS[split];
  const { columns } = dimension;
  const top = await topGroups(run, from, dimension, by, limit);
  const series = new Map(top.map(({ key }) => [key, new MutableSeries(key, timestamps)]));
  if (top.length > 0) {
    const values = top.map(({ cells }) => `(${cells.map(String).join(", ")})`).join(", ");
    const sql = `SELECT ${columns.join(", ")}, ${point}, ${SUMS} FROM ${from} WHERE (${columns.join(", ")}) IN (${values}) GROUP BY ALL`;
    for (const cells of await run(sql)) {
      const [at, ...sums] = cells.slice(columns.length);
      series.get(dimension.keyOf(cells))!.add(at, sums);
    }
  }
  const other = all.without([...series.values()]);
  const rest = other.flowCount.some((count) => count > 0) ? [other] : [];
  return { timestamps, series: [...series.values(), ...rest] };
}

class MutableSeries implements Series {
  readonly key: string;
  readonly bytes: bigint[];
  readonly packets: bigint[];
  readonly flowCount: number[];
  readonly #places: ReadonlyMap<number, number>;
  readonly #timestamps: readonly number[];

  constructor(key: string, timestamps: readonly number[]) {
    this.key = key;
    this.#timestamps = timestamps;
    this.#places = new Map(timestamps.map((at, place) => [at, place]));
    this.bytes = timestamps.map(() => 0n);
    this.packets = timestamps.map(() => 0n);
    this.flowCount = timestamps.map(() => 0);
  }

  add(at: unknown, [bytes, packets, flowCount]: readonly unknown[]): void {
    const place = this.#places.get(Number(at))!;
    this.bytes[place]! += bytes as bigint;
    this.packets[place]! += packets as bigint;
    this.flowCount[place]! += Number(flowCount);
  }

  without(parts: readonly Series[]): MutableSeries {
    const rest = new MutableSeries(OTHER_KEY, this.#timestamps);
    for (const place of this.#timestamps.keys()) {
      rest.bytes[place] = parts.reduce((left, { bytes }) => left - bytes[place]!, this.bytes[place]!);
      rest.packets[place] = parts.reduce((left, { packets }) => left - packets[place]!, this.packets[place]!);
      rest.flowCount[place] = parts.reduce((left, { flowCount }) => left - flowCount[place]!, this.flowCount[place]!);
    }
    return rest;
  }
}
