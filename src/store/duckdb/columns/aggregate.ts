import { SOURCE_KINDS, sourceName } from "../../../model/event.ts";
import { isRounded } from "../../../lib/exact-json.ts";
import type { Condition, Scalar } from "../../../model/condition.ts";
import {
  emptyResult,
  HISTOGRAM_BUCKETS_MAX,
  type Aggregation,
  type AggregationKind,
  type AggregationOf,
  type AggregationResult,
  type Aggregations,
  type Bucket,
  type PerAggregation,
} from "../../../model/aggregation.ts";
import { formatTime } from "../../../lib/time.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { fromSortable } from "./large-integer.ts";
import { hasLargeIntegers, nearestDoubleSql } from "./large-integer-sql.ts";
import { ENUM_COLUMNS, hotField } from "./column-table.ts";
import { fieldTextSql, NO_VALUES, valuesOfTextSql } from "./field-text.ts";
import type { Parameters } from "./sql.ts";
import { fillBuckets, bucketKey, type HistogramInterval } from "../../queries/histogram-buckets.ts";
import { bucketNumberSql } from "./histogram-sql.ts";
import { conditionSql } from "./where.ts";

// SQL for aggregations.

export type SqlValue = string | number | bigint | boolean | null;
export type RunSql = (sql: string, parameters: Parameters) => Promise<SqlValue[][]>;

/** The rows that are aggregated, as SQL whose parameters come first. */
export interface MatchingRows {
  readonly sql: string;
  readonly parameters: Parameters;
  readonly platform: string;
  /** The `odd` bits of all rows: only irregular fields need `rest`. */
  readonly irregularBits: number;
  /** The column that has the texts of a field, at least of most rows. */
  readonly fieldColumn: (path: string) => string | undefined;
}

/** The values of a field as a relation: one row per event and distinct value. */
interface AggregatedField {
  readonly from: string;
  /** SQL of the key: one column, or one for each type of value, of which one is set. */
  readonly keys: readonly string[];
  readonly number: string;
  /** Exact integers beyond 2^53, for which `number` has the nearest doubles; only if there are any. */
  readonly large?: string;
  /** The rows before their texts are split into values, and the name of the text. */
  readonly texts?: string;
  readonly text?: string;
  readonly toKey: (cells: readonly SqlValue[]) => Scalar;
}

export async function aggregate(
  aggs: Aggregations,
  matching: MatchingRows,
  run: RunSql,
): Promise<Record<string, AggregationResult>> {
  const results: [string, AggregationResult][] = [];
  for (const { name, aggregation } of aggs)
    results.push([name, await aggregateOne(aggregation, { path: `aggs.${name}`, matching, run })]);
  return Object.fromEntries(results);
}

const ALWAYS_PRESENT = new Set<string | undefined>(["type", "source", "severity", "class", "timestamp"]);

/** The total, if some aggregation groups by a field that every event has once: its groups cover every event. */
export function totalOf(aggs: Aggregations, results: Record<string, AggregationResult>): number | undefined {
  for (const { name, aggregation } of aggs) {
    const result = results[name]!;
    if (!("buckets" in result) || !("field" in aggregation) || !ALWAYS_PRESENT.has(aggregation.field)) continue;
    return result.buckets.reduce((sum, bucket) => sum + bucket.count, result.other_count ?? 0);
  }
  return undefined;
}

/** One aggregation; `path` is its position in the request body, for error messages. */
interface AggregationRequest {
  readonly path: string;
  readonly matching: MatchingRows;
  readonly run: RunSql;
}

/** The SQL of a metric, and the conversion of a row to the result. */
interface MetricQuery {
  readonly select: readonly string[];
  readonly from: string;
  readonly where?: string;
  readonly read: (cells: readonly SqlValue[]) => AggregationResult;
}

interface MetricPlan<Kind extends AggregationKind> {
  metric(agg: AggregationOf<Kind>, request: AggregationRequest, parameters: Parameters, base: string): MetricQuery;
}

interface BucketPlan<Kind extends AggregationKind> {
  /** The buckets over all matching events, with their inner aggregations. */
  buckets(agg: AggregationOf<Kind>, request: AggregationRequest): Promise<AggregationResult>;
  /** The buckets within each group of an enclosing aggregation. */
  inner(agg: AggregationOf<Kind>, field: AggregatedField, path: string): InnerBuckets;
}

interface InnerBuckets {
  readonly keys: readonly string[];
  readonly isPresent: string;
  readonly limit: number;
  /** The order of buckets by the names of their keys; `n` is the count of a bucket. */
  readonly order: (keyNames: string) => string;
  /** Reads the rows of one group: the keys, the count, and the count of all buckets of the group. */
  readonly read: (rows: readonly SqlValue[][]) => AggregationResult;
}

const PLANS: PerAggregation<{ [Kind in AggregationKind]: MetricPlan<Kind> | BucketPlan<Kind> }> = {
  terms: { buckets: terms, inner: innerTerms },
  histogram: { buckets: histogram, inner: innerHistogram },
  count: { metric: countMetric },
  stats: { metric: statsMetric },
  cardinality: { metric: cardinalityMetric },
};

function planOf(agg: Aggregation): MetricPlan<AggregationKind> | BucketPlan<AggregationKind> {
  return PLANS[agg.kind] as MetricPlan<AggregationKind> | BucketPlan<AggregationKind>;
}

async function aggregateOne(agg: Aggregation, request: AggregationRequest): Promise<AggregationResult> {
  const plan = planOf(agg);
  if ("buckets" in plan) return plan.buckets(agg, request);
  const parameters = request.matching.parameters.copy();
  const { select, from, where, read } = plan.metric(agg, request, parameters, request.matching.sql);
  const [row] = await request.run(`SELECT ${select.join(", ")} FROM ${from} ${where ?? ""}`, parameters);
  return read(row!);
}

/** Computes an aggregation for each group of the enclosing one, by group name. */
async function perGroup(
  agg: Aggregation,
  request: AggregationRequest,
  outer: OuterGroups,
): Promise<Map<string, AggregationResult>> {
  const plan = planOf(agg);
  const { matching, run, path } = request;
  const parameters = matching.parameters.copy();
  const base = outer.from(matching.sql, parameters);
  const groups = outer.keys.map((key, i) => `${key} AS g${i}`).join(", ");
  const groupNames = outer.keys.map((_, i) => `g${i}`).join(", ");
  if ("metric" in plan) {
    const { select, from, where, read } = plan.metric(agg, request, parameters, base);
    const rows = await run(
      `SELECT ${groups}, ${select.join(", ")} FROM ${from} ${where ?? ""} GROUP BY ${groupNames}`,
      parameters,
    );
    return new Map(rows.map((row) => [outer.name(row), read(row.slice(outer.keys.length))]));
  }
  const field = aggregatedField((agg as { field: string }).field, "w", matching, parameters, base);
  const { keys, isPresent, limit, order, read } = plan.inner(agg, field, path);
  const keyNames = keys.map((_, i) => `k${i}`).join(", ");
  const keyColumns = keys.map((key, i) => `${key} AS k${i}`).join(", ");
  const rows = await run(
    `SELECT *, sum(n) OVER (PARTITION BY ${groupNames}) AS everything FROM
       (SELECT ${groups}, ${keyColumns}, count(DISTINCT seq) AS n FROM ${field.from} WHERE ${isPresent} GROUP BY ${groupNames}, ${keyNames})
     QUALIFY row_number() OVER (PARTITION BY ${groupNames} ORDER BY ${order(keyNames)}) <= ${limit} ORDER BY ${groupNames}, ${order(keyNames)}`,
    parameters,
  );
  const byGroup = Map.groupBy(rows, (row) => outer.name(row));
  return new Map([...byGroup].map(([name, part]) => [name, read(part.map((row) => row.slice(outer.keys.length)))]));
}

const asValue = ([n]: readonly SqlValue[]): AggregationResult => ({ value: Number(n) });

function countMetric(
  { field }: AggregationOf<"count">,
  { matching }: AggregationRequest,
  parameters: Parameters,
  base: string,
): MetricQuery {
  if (field === undefined) return { select: ["count(*)"], from: base, read: asValue };
  const exists: Condition = { kind: "test", field, operator: "exists", value: true, ignoreCase: false };
  const present = conditionSql(exists, matching.platform, parameters);
  return { select: ["count(DISTINCT seq)"], from: base, where: `WHERE ${present}`, read: asValue };
}

function cardinalityMetric(
  agg: AggregationOf<"cardinality">,
  { matching }: AggregationRequest,
  parameters: Parameters,
  base: string,
): MetricQuery {
  const field = aggregatedField(agg.field, "w", matching, parameters, base);
  const key =
    field.keys.length === 1
      ? field.keys[0]!
      : `struct_pack(${field.keys.map((sql, i) => `k${i} := ${sql}`).join(", ")})`;
  return { select: [`count(DISTINCT ${key})`], from: field.from, where: `WHERE ${isSet(field)}`, read: asValue };
}

function statsMetric(
  agg: AggregationOf<"stats">,
  { matching, path }: AggregationRequest,
  parameters: Parameters,
  base: string,
): MetricQuery {
  const { from, number: n, large } = aggregatedField(agg.field, "w", matching, parameters, base);
  if (n === "NULL") throw new QueryRefused(`${path}.stats.field`, "is not a number");
  if (agg.field === "timestamp") {
    // Integer division of milliseconds: the mean as a double would sometimes be off by one.
    const read = (times: readonly SqlValue[]) => {
      const [min = null, max = null, avg = null] = times.map(asTime);
      return { min, max, avg, sum: null };
    };
    return { select: [`min(${n})`, `max(${n})`, `sum(${n}) // count(${n})`], from, read };
  }
  const extremes = [`min(${n})`, `max(${n})`, ...(large ? [`min(${large})`, `max(${large})`] : [])];
  return {
    select: [`avg(${n})`, `sum(${n})`, ...extremes],
    from,
    read: ([avg, sum, least, most, leastLarge, mostLarge]) => ({
      min: exactly(least, leastLarge),
      max: exactly(most, mostLarge),
      avg: asNumber(avg),
      sum: asNumber(sum) ?? 0,
    }),
  };
}

async function terms(agg: AggregationOf<"terms">, request: AggregationRequest): Promise<AggregationResult> {
  const { matching, run } = request;
  const parameters = matching.parameters.copy();
  const field = aggregatedField(agg.field, "v", matching, parameters, matching.sql);
  const keys = field.keys.map((key, i) => `${key} AS k${i}`).join(", ");
  const names = field.keys.map((_, i) => `k${i}`).join(", ");
  const [from, counted] = groupedTexts(field, parameters) ?? [field.from, "count(*)"];
  const rows = await run(
    `SELECT ${names}, n, sum(n) OVER () AS everything FROM
       (SELECT ${keys}, ${counted} AS n FROM ${from} WHERE ${isSet(field)} GROUP BY ${names})
     ORDER BY n DESC, ${names} LIMIT ${agg.size}`,
    parameters,
  );
  const width = field.keys.length;
  const buckets = rows.map((row) => ({ key: field.toKey(row), count: Number(row[width]), cells: row.slice(0, width) }));
  const everything = rows.length > 0 ? Number(rows[0]![width + 1]) : 0;
  const other_count = everything - buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  const outer: OuterGroups = {
    keys: field.keys,
    name: (row) => String(JSON.stringify(field.toKey(row))),
    from: (sql, params) => {
      const inner = aggregatedField(agg.field, "v", matching, params, sql);
      const matches = buckets.map(({ cells }) => {
        const equal = inner.keys.map((key, i) =>
          cells[i] === null ? `${key} IS NULL` : `${key} = ${sqlOf(cells[i]!, params)}`,
        );
        return `(${equal.join(" AND ")})`;
      });
      return `(SELECT * FROM ${inner.from} WHERE ${matches.length > 0 ? matches.join(" OR ") : "FALSE"})`;
    },
  };
  return {
    buckets: await withInner(buckets, (key) => String(JSON.stringify(key)), agg.aggs, request, outer),
    other_count,
  };
}

/** The values after rows with the same text were grouped, which leaves few to parse, and the number of events of a value. */
function groupedTexts(
  { texts, text }: AggregatedField,
  parameters: Parameters,
): [from: string, counted: string] | undefined {
  if (texts === undefined || text === undefined) return undefined;
  const groups = `(SELECT ${text}, count(*) AS events FROM ${texts} GROUP BY ${text})`;
  return [`(SELECT events, unnest(${valuesOfTextSql(text, parameters)}) AS v FROM ${groups})`, "sum(events)::BIGINT"];
}

async function histogram(agg: AggregationOf<"histogram">, request: AggregationRequest): Promise<AggregationResult> {
  const { matching, run, path } = request;
  const isTime = agg.field === "timestamp";
  const interval: HistogramInterval = { interval: agg.interval, isTime };
  const keyOf = (field: AggregatedField) => bucketNumberSql(interval, field.number);
  const parameters = matching.parameters.copy();
  const field = aggregatedField(agg.field, "v", matching, parameters, matching.sql);
  if (field.number === "NULL")
    throw new QueryRefused(`${path}.histogram.field`, "is neither a number nor the timestamp");
  // An event with several numbers in one bucket counts once there.
  const counted = field.keys.length === 1 ? "count(*)" : "count(DISTINCT seq)";
  const rows = await run(
    `SELECT ${keyOf(field)} AS k, ${counted} AS n FROM ${field.from} ${isTime ? "" : `WHERE ${field.number} IS NOT NULL`} GROUP BY k ORDER BY k
     LIMIT ${HISTOGRAM_BUCKETS_MAX + 1}`,
    parameters,
  );
  const buckets = fillBuckets(new Map(rows.map(([k, n]) => [Number(k), Number(n)])), interval, path);
  const outer: OuterGroups = {
    keys: ["k"],
    name: ([k]) => String(bucketKey(interval, Number(k))),
    from: (sql, params) => {
      const inner = aggregatedField(agg.field, "o", matching, params, sql);
      return `(SELECT DISTINCT ON (seq, k) *, ${keyOf(inner)} AS k FROM ${inner.from} WHERE ${inner.number} IS NOT NULL)`;
    },
  };
  // Time buckets of distinct events need no DISTINCT.
  const plain: OuterGroups = isTime
    ? { ...outer, from: (sql) => `(SELECT *, ${keyOf(field)} AS k FROM ${sql})` }
    : outer;
  return { buckets: await withInner(buckets, (key) => String(key), agg.aggs, request, plain) };
}

/** The groups of an enclosing aggregation. */
interface OuterGroups {
  readonly from: (sql: string, parameters: Parameters) => string;
  readonly keys: readonly string[];
  readonly name: (row: readonly SqlValue[]) => string;
}

async function withInner(
  buckets: readonly { key: Scalar; count: number }[],
  nameOf: (key: Scalar) => string,
  aggs: Aggregations,
  request: AggregationRequest,
  outer: OuterGroups,
): Promise<Bucket[]> {
  const inner = new Map<string, Map<string, AggregationResult>>();
  for (const { name, aggregation } of aggs)
    inner.set(name, await perGroup(aggregation, { ...request, path: `${request.path}.aggs.${name}` }, outer));
  return buckets.map(({ key, count }) => ({
    key,
    count,
    ...Object.fromEntries(
      aggs.map(({ name, aggregation }) => [name, inner.get(name)!.get(nameOf(key)) ?? emptyResult(aggregation)]),
    ),
  }));
}

function innerTerms(agg: AggregationOf<"terms">, field: AggregatedField): InnerBuckets {
  const width = field.keys.length;
  return {
    keys: field.keys,
    isPresent: isSet(field),
    limit: agg.size,
    order: (keyNames) => `n DESC, ${keyNames}`,
    read: (rows) => {
      const buckets = rows.map((row) => ({ key: field.toKey(row), count: Number(row[width]) }));
      const everything = Number(rows[0]![width + 1]);
      return { buckets, other_count: everything - buckets.reduce((sum, bucket) => sum + bucket.count, 0) };
    },
  };
}

function innerHistogram(agg: AggregationOf<"histogram">, field: AggregatedField, path: string): InnerBuckets {
  const interval: HistogramInterval = { interval: agg.interval, isTime: agg.field === "timestamp" };
  if (field.number === "NULL")
    throw new QueryRefused(`${path}.histogram.field`, "is neither a number nor the timestamp");
  return {
    keys: [bucketNumberSql(interval, field.number)],
    isPresent: `${field.number} IS NOT NULL`,
    limit: HISTOGRAM_BUCKETS_MAX + 1,
    order: (keyNames) => keyNames,
    read: (rows) => ({ buckets: fillBuckets(new Map(rows.map(([k, n]) => [Number(k), Number(n)])), interval, path) }),
  };
}

function aggregatedField(
  path: string,
  alias: string,
  matching: MatchingRows,
  parameters: Parameters,
  from: string,
): AggregatedField {
  const single = (key: string, number: string, toKey: AggregatedField["toKey"]): AggregatedField => ({
    from,
    keys: [key],
    number,
    toKey,
  });
  if (path === "source") {
    return single("source", "NULL", ([code]) => sourceName(matching.platform, SOURCE_KINDS[Number(code)]!));
  }
  if (path === "severity" || path === "class")
    return single(path, "NULL", ([code]) => ENUM_COLUMNS[path][Number(code)]!);
  if (path === "timestamp") return single("ts", "ts", ([ts]) => formatTime(Number(ts)));
  if (path === "type") return single("type", "NULL", ([type]) => type as string);
  if (path === "id") return single("seq", "NULL", ([seq]) => Number(seq));
  const hot = hotField(path);
  if (hot && (matching.irregularBits & hot.bit) === 0) {
    return single(hot.column, hot.type === "number" ? hot.column : "NULL", ([value]) => value as string | number);
  }
  // One row for each distinct value of the event, of any type.
  const text = `${alias}_text`;
  const texts = textsOf(path, text, matching, parameters, from);
  return {
    ...valuesOf(
      `(SELECT *, unnest(${valuesOfTextSql(text, parameters)}) AS ${alias} FROM ${texts})`,
      alias,
      parameters,
    ),
    texts,
    text,
  };
}

/** The rows with a value of the field, with the text of all its values (field-text.ts). */
function textsOf(
  path: string,
  text: string,
  { fieldColumn }: MatchingRows,
  parameters: Parameters,
  from: string,
): string {
  const computed = `SELECT *, ${fieldTextSql(path, parameters)} AS ${text} FROM ${from}`;
  const column = fieldColumn(path);
  // Two scans of disjoint rows: in one scan DuckDB would read `rest` of every row.
  const rows =
    column === undefined
      ? computed
      : `SELECT *, ${column} AS ${text} FROM ${from} WHERE ${column} <> ${NO_VALUES}
    UNION ALL ${computed} WHERE ${column} IS NULL`;
  return `(SELECT * FROM (${rows}) WHERE ${text} <> ${NO_VALUES})`;
}

/** A relation with the values in structs of `valuesOfTextSql`. */
function valuesOf(from: string, alias: string, parameters: Parameters): AggregatedField {
  if (!hasLargeIntegers(parameters)) {
    return {
      from,
      keys: [`${alias}.s`, `${alias}.n`, `${alias}.b`],
      number: `${alias}.n`,
      toKey: ([s, n, b]) => (s ?? n ?? b) as Scalar,
    };
  }
  return {
    from,
    keys: [`${alias}.s`, `${alias}.n`, `${alias}.i`, `${alias}.b`],
    number: `coalesce(${alias}.n, ${nearestDoubleSql(`${alias}.i`)})`,
    large: `${alias}.i`,
    toKey: ([s, n, i, b]) => s ?? n ?? (typeof i === "string" ? fromSortable(i) : (b as boolean)),
  };
}

/** True when there is a value to group by. */
function isSet(field: AggregatedField): string {
  return field.keys.map((key) => `${key} IS NOT NULL`).join(" OR ");
}

function asNumber(value: SqlValue | undefined): number | null {
  return value === null || value === undefined ? null : Number(value);
}

/** The minimum or maximum of doubles and large integers: the large integer, unless the double is exact. */
function exactly(double: SqlValue | undefined, large: SqlValue | undefined): number | bigint | null {
  const value = asNumber(double);
  if (typeof large !== "string" || (value !== null && !isRounded(value))) return value;
  return fromSortable(large);
}

function asTime(value: SqlValue): string | null {
  return value === null ? null : formatTime(Number(value));
}

function sqlOf(value: Exclude<SqlValue, null>, parameters: Parameters): string {
  if (typeof value === "string") return parameters.bind(value);
  return typeof value === "number" ? value.toExponential() : String(value);
}
