import {
  ALL_KEY,
  OTHER_KEY,
  timeseriesPoints,
  type Series,
  type Timeseries,
  type TimeseriesQuery,
} from "../../model/flow-query.ts";
import { flowQuery } from "./flow-filter.ts";
import { groupingOf, topFlowGroups, type RankedGroup } from "./flow-ranking.ts";
import type { FlowSearch } from "./flow-search.ts";
import { askForSums, type SumBucket, type SumReader } from "./flow-sums.ts";

// Sums of flows over time: for each of the top groups, and for all others together.

/** OpenSearch refuses answers with more than 65,535 buckets. */
const BUCKETS_MAX = 50_000;

export async function flowTimeseries(search: FlowSearch, query: TimeseriesQuery): Promise<Timeseries> {
  const { filter, intervalMs, shiftMs = 0, split, by, limit } = query;
  const timestamps = timeseriesPoints(filter.fromMs + shiftMs, filter.toMs + shiftMs, intervalMs);
  const all = await askForSums(async (sums) => {
    const aggs = { points: pointsOf(query, sums) };
    const body = { size: 0, track_total_hits: false, query: flowQuery(filter), aggs };
    const series = new SummedSeries(ALL_KEY, timestamps);
    series.addAll((await search.inDays(filter, body))?.aggregations?.["points"]?.buckets ?? [], shiftMs, sums);
    return series;
  });
  if (split === undefined) return { timestamps, series: [all] };

  const grouping = groupingOf(split);
  const top = await topFlowGroups({ search, filter, grouping, by, limit });
  const series: SummedSeries[] = [];
  const atOnce = Math.max(1, Math.floor(BUCKETS_MAX / timestamps.length));
  for (let from = 0; from < top.length; from += atOnce)
    series.push(...(await seriesOf(search, query, top.slice(from, from + atOnce), timestamps)));
  const other = all.without(series);
  return { timestamps, series: other.flowCount.some((count) => count > 0) ? [...series, other] : series };
}

function pointsOf({ intervalMs, shiftMs = 0 }: TimeseriesQuery, sums: SumReader): object {
  const histogram = { field: "timestamp", fixed_interval: `${intervalMs}ms`, min_doc_count: 1 };
  // Points are multiples of the interval once the shift is added.
  return { date_histogram: { ...histogram, offset: `-${shiftMs % intervalMs}ms` }, aggs: sums.aggs };
}

/** The series of these groups, in their order. */
function seriesOf(
  search: FlowSearch,
  query: TimeseriesQuery,
  groups: readonly RankedGroup[],
  timestamps: readonly number[],
): Promise<SummedSeries[]> {
  const { filter, shiftMs = 0, split } = query;
  const { field } = groupingOf(split!);
  const values = groups.map(({ value }) => value);
  return askForSums(async (sums) => {
    const terms = { terms: { field, size: values.length }, aggs: { points: pointsOf(query, sums) } };
    const body = { size: 0, track_total_hits: false, query: flowQuery(filter, { terms: { [field]: values } }) };
    const answer = await search.inDays(filter, { ...body, aggs: { groups: terms } });
    const series = new Map(groups.map(({ value, key }) => [value, new SummedSeries(key, timestamps)]));
    for (const bucket of answer?.aggregations?.["groups"]?.buckets ?? []) {
      const { buckets } = bucket["points"] as { buckets: readonly SumBucket[] };
      series.get(String(bucket.key))!.addAll(buckets, shiftMs, sums);
    }
    return [...series.values()];
  });
}

class SummedSeries implements Series {
  readonly key: string;
  readonly bytes: bigint[];
  readonly packets: bigint[];
  readonly flowCount: number[];
  readonly #timestamps: readonly number[];

  constructor(key: string, timestamps: readonly number[]) {
    this.key = key;
    this.#timestamps = timestamps;
    this.bytes = timestamps.map(() => 0n);
    this.packets = timestamps.map(() => 0n);
    this.flowCount = timestamps.map(() => 0);
  }

  addAll(points: readonly SumBucket[], shiftMs: number, sums: SumReader): void {
    const positions = new Map(this.#timestamps.map((at, position) => [at, position]));
    for (const point of points) {
      const position = positions.get(Number(point.key) + shiftMs)!;
      const { bytes, packets, flowCount } = sums.read(point);
      this.bytes[position]! += bytes;
      this.packets[position]! += packets;
      this.flowCount[position]! += flowCount;
    }
  }

  without(parts: readonly Series[]): SummedSeries {
    const rest = new SummedSeries(OTHER_KEY, this.#timestamps);
    for (const position of this.#timestamps.keys()) {
      rest.bytes[position] = parts.reduce((left, part) => left - part.bytes[position]!, this.bytes[position]!);
      rest.packets[position] = parts.reduce((left, part) => left - part.packets[position]!, this.packets[position]!);
      rest.flowCount[position] = parts.reduce(
        (left, part) => left - part.flowCount[position]!,
        this.flowCount[position]!,
      );
    }
    return rest;
  }
}
