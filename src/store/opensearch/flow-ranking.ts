import { canonicalAddress } from "../../lib/ip.ts";
import {
  NO_PORT_KEY,
  type FlowFilter,
  type Measure,
  type Split,
  type TalkerDimension,
  type Traffic,
} from "../../model/flow-query.ts";
import { protocolName } from "../../model/protocol.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { flowQuery, type Clause } from "./flow-filter.ts";
import type { FlowSearch, FlowShard } from "./flow-search.ts";
import { askForSums, SumReader, valueOf, type SumBucket } from "./flow-sums.ts";

// The groups with the highest sums over several shards, exactly. A single terms aggregation over several shards adds up only what
// each shard has among its own highest, and its answer does not tell. Here each shard returns its highest groups (first round), and
// more of them until no group that none of them named can be among the highest (second); the sums of the groups that can be are then
// asked for by name (third), unless the shards have named them all.

/** A way to group flows: the field, and the key of a value for people. */
export interface FlowGrouping {
  readonly field: string;
  /** The number of values that there can be, if it is small. */
  readonly valuesMax?: number;
  readonly keyOf: (value: string) => string;
}

export interface RankedGroup extends Traffic {
  /** The value of the field. */
  readonly value: string;
}

const address = (field: string): FlowGrouping => ({ field, keyOf: (value) => canonicalAddress(value) ?? value });

const GROUPINGS: Readonly<Record<TalkerDimension | Split, FlowGrouping>> = {
  src: address("src_ip"),
  dst: address("dst_ip"),
  exporter: address("exporter_ip"),
  pair: { field: "pair", keyOf: (value) => value.replace(" ", " → ") },
  port: { field: "service_port", keyOf: (value) => (value === "0" ? NO_PORT_KEY : value) },
  protocol: { field: "protocol", valuesMax: 256, keyOf: (value) => protocolName(Number(value)) },
};

export const groupingOf = (dimension: TalkerDimension | Split): FlowGrouping => GROUPINGS[dimension];

/** Groups that a shard returns in the first round: enough for most questions, and few compared with those that it adds up. */
const FIRST_GROUPS = 1000;
const DEEPER = 6;
/** OpenSearch refuses answers with more than 65,535 buckets. */
const GROUPS_MAX = 30_000;
/** Parts into which groups are divided if all of them must be looked at. */
const PARTS_MAX = 300;
const GROUPS_PER_PART = 15_000;
const CARDINALITY_PRECISION = 40_000;
/** Sums from here on are rounded, by far less than this share. */
const EXACT_MAX = 2 ** 53;
const ROUNDED_SHARE = 2 ** -40;

/** A shard's highest groups. */
interface ShardRanking {
  readonly shard: FlowShard;
  readonly buckets: ReadonlyMap<string, SumBucket>;
  /** No group that is not among them has a higher sum here; null if there is no other group. */
  readonly restMax: number | null;
}

export interface GroupRanking {
  readonly search: FlowSearch;
  readonly filter: FlowFilter;
  readonly grouping: FlowGrouping;
  readonly by: Measure;
  readonly limit: number;
}

/** The groups with the highest sums; ties are ranked by key. */
export async function topFlowGroups(ranking: GroupRanking): Promise<RankedGroup[]> {
  const { grouping, by, limit } = ranking;
  const highest = (groups: RankedGroup[]) => groups.sort(byRank(by)).slice(0, limit);
  // No shard has more groups than it would return.
  if (grouping.valuesMax !== undefined) return highest(await readGroups(ranking, { size: grouping.valuesMax }));
  if (limit === 0) return [];
  let rankings: ShardRanking[] = [];
  const firstSize = Math.max(FIRST_GROUPS, 2 * limit);
  for (let size = firstSize; ; size *= DEEPER) {
    const unfinished = rankings.flatMap((one) => (one.restMax === null ? [] : [one.shard]));
    const found =
      size > GROUPS_MAX
        ? undefined
        : size > firstSize
          ? await rankShards(ranking, unfinished, size)
          : await rankShards(ranking, undefined, size);
    // Too many groups tie, or a counter is larger than those that OpenSearch compares.
    if (found === undefined) return topOfAll(ranking);
    rankings = [...rankings.filter(({ restMax }) => restMax === null), ...found];
    const known = addKnown(rankings, by);
    const bound = lessRounded([...known.values()].sort((one, other) => other - one)[limit - 1] ?? -Infinity);
    const isComplete = rankings.every((one) => one.restMax === null);
    const unnamedMax = rankings.reduce((most, one) => most + (one.restMax ?? 0), 0);
    if (!isComplete && unnamedMax >= bound) continue;
    const values = [...known].flatMap(([value, sum]) => (sum + unseenMax(rankings, value) >= bound ? [value] : []));
    return highest(addShards(rankings, values, grouping) ?? (await sumsOfGroups(ranking, values)));
  }
}

const lessRounded = (sum: number) => (sum < EXACT_MAX ? sum : sum * (1 - ROUNDED_SHARE));

function addKnown(rankings: readonly ShardRanking[], by: Measure): Map<string, number> {
  const known = new Map<string, number>();
  for (const { buckets } of rankings)
    for (const [value, bucket] of buckets) known.set(value, (known.get(value) ?? 0) + valueOf(bucket, by));
  return known;
}

/** The most that a group may have in shards that did not name it. */
function unseenMax(rankings: readonly ShardRanking[], value: string): number {
  return rankings.reduce(
    (most, { buckets, restMax }) => most + (restMax === null || buckets.has(value) ? 0 : restMax),
    0,
  );
}

/** The sums of groups that every shard has named or does not have; undefined if one of them is not such, or was rounded. */
function addShards(
  rankings: readonly ShardRanking[],
  values: readonly string[],
  { keyOf }: FlowGrouping,
): RankedGroup[] | undefined {
  const reader = new SumReader(false);
  const groups: RankedGroup[] = [];
  for (const value of values) {
    const sums = { bytes: 0n, packets: 0n, flowCount: 0 };
    for (const { buckets, restMax } of rankings) {
      const bucket = buckets.get(value);
      if (bucket === undefined && restMax !== null) return undefined;
      if (bucket === undefined) continue;
      const { bytes, packets, flowCount } = reader.read(bucket);
      sums.bytes += bytes;
      sums.packets += packets;
      sums.flowCount += flowCount;
    }
    groups.push({ value, key: keyOf(value), ...sums });
  }
  return reader.isRounded ? undefined : groups;
}

/** The highest groups of these shards, or of all; undefined if a counter is too large for OpenSearch to rank. */
async function rankShards(
  { search, filter, grouping: { field }, by }: GroupRanking,
  some: readonly FlowShard[] | undefined,
  size: number,
): Promise<ShardRanking[] | undefined> {
  const body = {
    size: 0,
    track_total_hits: false,
    query: flowQuery(filter),
    aggs: {
      groups: {
        terms: { field, size, order: [{ [by]: "desc" }, { _key: "asc" }] },
        aggs: new SumReader(false).aggs,
      },
      over: { value_count: { field: `${by}_over` } },
    },
  };
  const { shards, answers } = some
    ? { shards: some, answers: await search.perShard(some, body) }
    : await search.perShardOf(filter, body);
  if (answers.some((answer) => answer && valueOf(answer.aggregations as unknown as SumBucket, "over") > 0))
    return undefined;
  return answers.map((answer, nth) => {
    const found = answer?.aggregations?.["groups"]?.buckets ?? [];
    const buckets = new Map(found.map((bucket) => [String(bucket.key), bucket]));
    return { shard: shards[nth]!, buckets, restMax: found.length < size ? null : valueOf(found.at(-1)!, by) };
  });
}

/** The exact sums of groups, at most a request's worth at a time. */
async function sumsOfGroups(ranking: GroupRanking, values: readonly string[]): Promise<RankedGroup[]> {
  const { field } = ranking.grouping;
  const groups: RankedGroup[] = [];
  for (let from = 0; from < values.length; from += GROUPS_MAX) {
    const named = values.slice(from, from + GROUPS_MAX);
    groups.push(...(await readGroups(ranking, { size: named.length }, { terms: { [field]: named } })));
  }
  return groups;
}

/** All groups, part by part: each part has the same groups of every shard, so that none is cut off. */
async function topOfAll(ranking: GroupRanking): Promise<RankedGroup[]> {
  const { search, filter, by, limit } = ranking;
  const { field } = ranking.grouping;
  const counting = { cardinality: { field, precision_threshold: CARDINALITY_PRECISION } };
  const body = { size: 0, track_total_hits: false, query: flowQuery(filter), aggs: { groups: counting } };
  const counted = (await search.inDays(filter, body))?.aggregations;
  if (!counted) return [];
  let parts = Math.ceil(valueOf(counted as unknown as SumBucket, "groups") / GROUPS_PER_PART) || 1;
  let top: RankedGroup[] = [];
  for (let part = 0; part < parts; part++) {
    if (parts > PARTS_MAX) throw new QueryRefused("from", "covers too many different values: narrow the time range");
    const terms = { size: GROUPS_MAX, include: { partition: part, num_partitions: parts } };
    const found = await readGroups(ranking, terms);
    if (found.length >= GROUPS_MAX) {
      // The number of groups was an estimate.
      [part, parts, top] = [-1, parts * 2, []];
      continue;
    }
    top = [...top, ...found].sort(byRank(by)).slice(0, limit);
  }
  return top;
}

function readGroups(
  { search, filter, grouping: { field, keyOf } }: GroupRanking,
  terms: object,
  ...more: readonly Clause[]
): Promise<RankedGroup[]> {
  return askForSums(async (sums) => {
    const aggs = { groups: { terms: { field, ...terms }, aggs: sums.aggs } };
    const body = { size: 0, track_total_hits: false, query: flowQuery(filter, ...more), aggs };
    const answer = await search.inDays(filter, body);
    return (answer?.aggregations?.["groups"]?.buckets ?? []).map((bucket) => {
      const value = String(bucket.key);
      return { value, key: keyOf(value), ...sums.read(bucket) };
    });
  });
}

function byRank(by: Measure): (a: Traffic, b: Traffic) => number {
  return (a, b) => (a[by] === b[by] ? (a.key < b.key ? -1 : 1) : a[by] > b[by] ? -1 : 1);
}
