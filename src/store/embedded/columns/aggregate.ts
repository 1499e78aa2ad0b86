import { SOURCE_KINDS, sourceName } from "../../../model/event.ts";
import { isRounded } from "../../../lib/exact-json.ts";
import type { Condition, Scalar } from "../../../model/condition.ts";
import type { Aggregation, AggregationResult, Aggregations, Bucket } from "../../../model/query.ts";
import { formatTime } from "../../../lib/time.ts";
import { HISTOGRAM_BUCKETS_MAX, QuestionRefused } from "../../store.ts";
import { fromSortable, hasLargeIntegers, nearestDoubleSql } from "./large-integer.ts";
import { CODED, hotField, type RestType } from "./table.ts";
import type { Parameters } from "./sql.ts";
import { bucketsOf, keyOfStep, stepSql, type Steps } from "./steps.ts";
import { conditionSql, largeTextSql, largeValuesSql, pointer } from "./where.ts";

// Aggregations in the engine's words.

export type SqlValue = string | number | bigint | boolean | null;
export type RunSql = (sql: string, parameters: Parameters) => Promise<SqlValue[][]>;

/** What aggregations are computed over: rows that match, as SQL whose parameters come first. */
export interface Matching {
  readonly sql: string;
  readonly parameters: Parameters;
  readonly platform: string;
  /** Bits of the well-known fields that hold something unexpected in some row: only these need a second look. */
  readonly oddBits: number;
}

/** The values of a field as a relation: one row per event and different value. */
interface Field {
  readonly from: string;
  /** SQL of the key: either one column, or one for each type of value, of which one is set. */
  readonly keys: readonly string[];
  readonly number: string;
  /** Integers beyond 2^53 exactly, of which `number` has the nearest doubles; only where there are any. */
  readonly large?: string;
  readonly toKey: (cells: readonly SqlValue[]) => Scalar;
}

export async function aggregate(
  aggs: Aggregations,
  matching: Matching,
  run: RunSql,
): Promise<Record<string, AggregationResult>> {
  const results: [string, AggregationResult][] = [];
  for (const { name, aggregation } of aggs) results.push([name, await one(aggregation, `aggs.${name}`, matching, run)]);
  return Object.fromEntries(results);
}

const ALWAYS_THERE = new Set<string | undefined>(["type", "source", "severity", "class", "timestamp"]);

/** Every event has these fields once: where one of them is grouped by, the groups hold every event. */
export function totalOf(aggs: Aggregations, results: Record<string, AggregationResult>): number | undefined {
  for (const { name, aggregation } of aggs) {
    const result = results[name]!;
    if (!("buckets" in result) || !("field" in aggregation) || !ALWAYS_THERE.has(aggregation.field)) continue;
    return result.buckets.reduce((sum, bucket) => sum + bucket.count, result.other_count ?? 0);
  }
  return undefined;
}

async function one(agg: Aggregation, place: string, matching: Matching, run: RunSql): Promise<AggregationResult> {
  if (agg.kind === "terms") return terms(agg, place, matching, run);
  if (agg.kind === "histogram") return histogram(agg, place, matching, run);
  const [row] = await grouped(agg, place, matching, run, undefined);
  return row![1];
}

/** Single figures, in all or for each group. */
async function grouped(
  agg: Exclude<Aggregation, { kind: "terms" | "histogram" }>,
  place: string,
  matching: Matching,
  run: RunSql,
  outer: Outer | undefined,
): Promise<[string, AggregationResult][]> {
  const parameters = matching.parameters.copy();
  const base = outer ? outer.from(matching.sql, parameters) : matching.sql;
  const groups = outer ? outer.keys.map((key, i) => `${key} AS g${i}`) : [];
  const by = groups.length > 0 ? `GROUP BY ${groups.map((_, i) => `g${i}`).join(", ")}` : "";
  const select = (figures: string[], from: string, where = "") =>
    `SELECT ${[...groups, ...figures].join(", ")} FROM ${from} ${where} ${by}`;
  const split = (row: SqlValue[]) => [outer ? outer.name(row) : "", row.slice(groups.length)] as const;

  if (agg.kind === "count") {
    if (agg.field === undefined) {
      const rows = await run(select(["count(*)"], base), parameters);
      return rows.map(split).map(([name, [n]]) => [name, { value: Number(n) }]);
    }
    const exists: Condition = { kind: "test", field: agg.field, operator: "exists", value: true, ignoreCase: false };
    const present = conditionSql(exists, matching.platform, parameters);
    const rows = await run(select(["count(DISTINCT seq)"], base, `WHERE ${present}`), parameters);
    return rows.map(split).map(([name, [n]]) => [name, { value: Number(n) }]);
  }
  const field = fieldOf(agg.field, "w", matching, parameters, base);
  if (agg.kind === "cardinality") {
    const key =
      field.keys.length === 1
        ? field.keys[0]!
        : `struct_pack(${field.keys.map((sql, i) => `k${i} := ${sql}`).join(", ")})`;
    const rows = await run(select([`count(DISTINCT ${key})`], field.from, `WHERE ${isSet(field)}`), parameters);
    return rows.map(split).map(([name, [n]]) => [name, { value: Number(n) }]);
  }
  const n = field.number;
  if (n === "NULL") throw new QuestionRefused(`${place}.stats.field`, "is not a number");
  if (agg.field === "timestamp") {
    // Whole milliseconds: as a double, the mean of many would be off by one now and then.
    const rows = await run(select([`min(${n})`, `max(${n})`, `sum(${n}) // count(${n})`], field.from), parameters);
    return rows.map(split).map(([name, figures]) => {
      const [min = null, max = null, avg = null] = figures.map(asTime);
      return [name, { min, max, avg, sum: null }];
    });
  }
  const extremes = [`min(${n})`, `max(${n})`, ...(field.large ? [`min(${field.large})`, `max(${field.large})`] : [])];
  const rows = await run(select([`avg(${n})`, `sum(${n})`, ...extremes], field.from), parameters);
  return rows.map(split).map(([name, [avg, sum, least, most, leastLarge, mostLarge]]) => [
    name,
    {
      min: exactly(least, leastLarge),
      max: exactly(most, mostLarge),
      avg: asNumber(avg),
      sum: asNumber(sum) ?? 0,
    },
  ]);
}

async function terms(
  agg: Extract<Aggregation, { kind: "terms" }>,
  place: string,
  matching: Matching,
  run: RunSql,
): Promise<AggregationResult> {
  const parameters = matching.parameters.copy();
  const field = fieldOf(agg.field, "v", matching, parameters, matching.sql);
  const keys = field.keys.map((key, i) => `${key} AS k${i}`).join(", ");
  const names = field.keys.map((_, i) => `k${i}`).join(", ");
  const rows = await run(
    `SELECT ${names}, n, sum(n) OVER () AS everything FROM
       (SELECT ${keys}, count(*) AS n FROM ${field.from} WHERE ${isSet(field)} GROUP BY ${names})
     ORDER BY n DESC, ${names} LIMIT ${agg.size}`,
    parameters,
  );
  const width = field.keys.length;
  const buckets = rows.map((row) => ({ key: field.toKey(row), count: Number(row[width]), cells: row.slice(0, width) }));
  const everything = rows.length > 0 ? Number(rows[0]![width + 1]) : 0;
  const other_count = everything - buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  const outer: Outer = {
    keys: field.keys,
    name: (row) => String(JSON.stringify(field.toKey(row))),
    from: (sql, params) => {
      const inner = fieldOf(agg.field, "v", matching, params, sql);
      const wanted = buckets.map(({ cells }) => {
        const equal = inner.keys.map((key, i) =>
          cells[i] === null ? `${key} IS NULL` : `${key} = ${sqlOf(cells[i]!, params)}`,
        );
        return `(${equal.join(" AND ")})`;
      });
      return `(SELECT * FROM ${inner.from} WHERE ${wanted.length > 0 ? wanted.join(" OR ") : "FALSE"})`;
    },
  };
  return {
    buckets: await withInner(buckets, (key) => String(JSON.stringify(key)), agg.aggs, place, matching, run, outer),
    other_count,
  };
}

async function histogram(
  agg: Extract<Aggregation, { kind: "histogram" }>,
  place: string,
  matching: Matching,
  run: RunSql,
): Promise<AggregationResult> {
  const isTime = agg.field === "timestamp";
  const steps: Steps = { interval: agg.interval, isTime };
  const keyOf = (field: Field) => stepSql(steps, field.number);
  const parameters = matching.parameters.copy();
  const field = fieldOf(agg.field, "v", matching, parameters, matching.sql);
  if (field.number === "NULL")
    throw new QuestionRefused(`${place}.histogram.field`, "is neither a number nor the timestamp");
  // An event with several numbers in one bucket counts once there.
  const counted = field.keys.length === 1 ? "count(*)" : "count(DISTINCT seq)";
  const rows = await run(
    `SELECT ${keyOf(field)} AS k, ${counted} AS n FROM ${field.from} ${isTime ? "" : `WHERE ${field.number} IS NOT NULL`} GROUP BY k ORDER BY k
     LIMIT ${HISTOGRAM_BUCKETS_MAX + 1}`,
    parameters,
  );
  const buckets = bucketsOf(new Map(rows.map(([k, n]) => [Number(k), Number(n)])), steps, place);
  const outer: Outer = {
    keys: ["k"],
    name: ([k]) => String(keyOfStep(steps, Number(k))),
    from: (sql, params) => {
      const inner = fieldOf(agg.field, "o", matching, params, sql);
      return `(SELECT DISTINCT ON (seq, k) *, ${keyOf(inner)} AS k FROM ${inner.from} WHERE ${inner.number} IS NOT NULL)`;
    },
  };
  // Time buckets of distinct events need no DISTINCT.
  const plain: Outer = isTime ? { ...outer, from: (sql) => `(SELECT *, ${keyOf(field)} AS k FROM ${sql})` } : outer;
  return { buckets: await withInner(buckets, (key) => String(key), agg.aggs, place, matching, run, plain) };
}

/** The groups of an enclosing aggregation. */
interface Outer {
  readonly from: (sql: string, parameters: Parameters) => string;
  readonly keys: readonly string[];
  readonly name: (row: readonly SqlValue[]) => string;
}

async function withInner(
  buckets: readonly { key: Scalar; count: number }[],
  nameOf: (key: Scalar) => string,
  aggs: Aggregations,
  place: string,
  matching: Matching,
  run: RunSql,
  outer: Outer,
): Promise<Bucket[]> {
  const inner = new Map<string, Map<string, AggregationResult>>();
  for (const { name, aggregation } of aggs)
    inner.set(name, await nested(aggregation, `${place}.aggs.${name}`, matching, run, outer));
  return buckets.map(({ key, count }) => ({
    key,
    count,
    ...Object.fromEntries(
      aggs.map(({ name, aggregation }) => [name, inner.get(name)!.get(nameOf(key)) ?? empty(aggregation)]),
    ),
  }));
}

function empty(agg: Aggregation): AggregationResult {
  if (agg.kind === "terms") return { buckets: [], other_count: 0 };
  if (agg.kind === "histogram") return { buckets: [] };
  if (agg.kind === "stats") return { min: null, max: null, avg: null, sum: agg.field === "timestamp" ? null : 0 };
  return { value: 0 };
}

/** An aggregation for each group of the enclosing one, by the group's name. */
async function nested(
  agg: Aggregation,
  place: string,
  matching: Matching,
  run: RunSql,
  outer: Outer,
): Promise<Map<string, AggregationResult>> {
  if (agg.kind !== "terms" && agg.kind !== "histogram") return new Map(await grouped(agg, place, matching, run, outer));
  const parameters = matching.parameters.copy();
  const base = outer.from(matching.sql, parameters);
  const field = fieldOf(agg.field, "w", matching, parameters, base);
  const groups = outer.keys.map((key, i) => `${key} AS g${i}`).join(", ");
  const groupNames = outer.keys.map((_, i) => `g${i}`).join(", ");
  const found = new Map<string, SqlValue[][]>();
  const isTime = agg.field === "timestamp";
  if (agg.kind === "histogram" && field.number === "NULL")
    throw new QuestionRefused(`${place}.histogram.field`, "is neither a number nor the timestamp");
  const keys =
    agg.kind === "terms"
      ? field.keys.map((key, i) => `${key} AS k${i}`)
      : [`${stepSql({ interval: agg.interval, isTime }, field.number)} AS k0`];
  const keyNames = keys.map((_, i) => `k${i}`).join(", ");
  const isPresent = agg.kind === "terms" ? isSet(field) : `${field.number} IS NOT NULL`;
  const counted = `SELECT ${groups}, ${keys.join(", ")}, count(DISTINCT seq) AS n FROM ${field.from} WHERE ${isPresent} GROUP BY ${groupNames}, ${keyNames}`;
  const limit = agg.kind === "terms" ? agg.size : HISTOGRAM_BUCKETS_MAX + 1;
  const order = agg.kind === "terms" ? `n DESC, ${keyNames}` : keyNames;
  const rows = await run(
    `SELECT *, sum(n) OVER (PARTITION BY ${groupNames}) AS everything FROM (${counted})
     QUALIFY row_number() OVER (PARTITION BY ${groupNames} ORDER BY ${order}) <= ${limit} ORDER BY ${groupNames}, ${order}`,
    parameters,
  );
  for (const row of rows) {
    const name = outer.name(row);
    const list = found.get(name);
    if (list) list.push(row.slice(outer.keys.length));
    else found.set(name, [row.slice(outer.keys.length)]);
  }
  return new Map(
    [...found].map(([name, part]) => [
      name,
      agg.kind === "terms"
        ? termsOf(part, field, keys.length)
        : stepsOf(part, { interval: agg.interval, isTime }, place),
    ]),
  );
}

function termsOf(rows: SqlValue[][], field: Field, width: number): AggregationResult {
  const buckets = rows.map((row) => ({ key: field.toKey(row), count: Number(row[width]) }));
  return { buckets, other_count: Number(rows[0]![width + 1]) - buckets.reduce((sum, bucket) => sum + bucket.count, 0) };
}

function stepsOf(rows: SqlValue[][], steps: Steps, place: string): AggregationResult {
  return { buckets: bucketsOf(new Map(rows.map(([k, n]) => [Number(k), Number(n)])), steps, place) };
}

function fieldOf(path: string, alias: string, matching: Matching, parameters: Parameters, from: string): Field {
  const single = (key: string, number: string, toKey: Field["toKey"]): Field => ({ from, keys: [key], number, toKey });
  if (path === "source") {
    return single("source", "NULL", ([code]) => sourceName(matching.platform, SOURCE_KINDS[Number(code)]!));
  }
  if (path === "severity" || path === "class") return single(path, "NULL", ([code]) => CODED[path][Number(code)]!);
  if (path === "timestamp") return single("ts", "ts", ([ts]) => formatTime(Number(ts)));
  if (path === "type") return single("type", "NULL", ([type]) => type as string);
  if (path === "id") return single("seq", "NULL", ([seq]) => Number(seq));
  const hot = hotField(path);
  if (hot && (matching.oddBits & hot.bit) === 0) {
    return single(hot.column, hot.type === "number" ? hot.column : "NULL", ([value]) => value as string | number);
  }
  // Every different value of the event, of whatever type, each as a row.
  const json = (type: RestType) => parameters.bind(pointer(type, path));
  const hasLarge = hasLargeIntegers(parameters);
  const value = (s: string, n: string, b: string, i = none) =>
    `{'s': ${s}, 'n': ${n}, ${hasLarge ? `'i': ${i}, ` : ""}'b': ${b}}`;
  const none = "CAST(NULL AS VARCHAR)";
  const zero = "CAST(NULL AS DOUBLE)";
  const neither = "CAST(NULL AS BOOLEAN)";
  const element = value(
    "CASE WHEN json_type(x) = 'VARCHAR' THEN (x ->> '$') END",
    "CASE WHEN json_type(x) IN ('BIGINT', 'UBIGINT', 'DOUBLE') THEN try_cast((x ->> '$') AS DOUBLE) END",
    "CASE WHEN json_type(x) = 'BOOLEAN' THEN (x ->> '$') = 'true' END",
    "CASE WHEN json_type(x) = 'OBJECT' THEN (x ->> '$.i') END",
  );
  const elementsOf = (list: string) =>
    `list_distinct(list_transform(CAST(CAST(${list} AS JSON) AS JSON[]), lambda x: ${element}))`;
  const column = hot
    ? `WHEN ${hot.column} IS NOT NULL THEN [${hot.type === "string" ? value(hot.column, zero, neither) : value(none, hot.column, neither)}]`
    : "";
  const large = largeValuesSql(path, parameters);
  const list = `CASE ${column}
    WHEN json_exists(rest, ${json("s")}) THEN [${value(`json_extract_string(rest, ${json("s")})`, zero, neither)}]
    WHEN json_exists(rest, ${json("n")}) THEN [${value(none, `try_cast(json_extract_string(rest, ${json("n")}) AS DOUBLE)`, neither)}]
    WHEN json_exists(rest, ${json("b")}) THEN [${value(none, zero, `json_extract_string(rest, ${json("b")}) = 'true'`)}]
    ${hasLarge ? `WHEN json_exists(rest, ${json("i")}) THEN [${value(none, zero, neither, largeTextSql(path, parameters))}]` : ""}
    WHEN json_exists(rest, ${json("m")}) THEN ${elementsOf(`json_extract(rest, ${json("m")})`)}
    ${large === undefined ? "" : `ELSE ${elementsOf(large)}`} END`;
  const rows = `(SELECT *, unnest(${list}) AS ${alias} FROM ${from})`;
  if (!hasLarge) {
    return {
      from: rows,
      keys: [`${alias}.s`, `${alias}.n`, `${alias}.b`],
      number: `${alias}.n`,
      toKey: ([s, n, b]) => (s ?? n ?? b) as Scalar,
    };
  }
  return {
    from: rows,
    keys: [`${alias}.s`, `${alias}.n`, `${alias}.i`, `${alias}.b`],
    number: `coalesce(${alias}.n, ${nearestDoubleSql(`${alias}.i`)})`,
    large: `${alias}.i`,
    toKey: ([s, n, i, b]) => s ?? n ?? (typeof i === "string" ? fromSortable(i) : (b as boolean)),
  };
}

/** There is a value to group by. */
function isSet(field: Field): string {
  return field.keys.map((key) => `${key} IS NOT NULL`).join(" OR ");
}

function asNumber(value: SqlValue | undefined): number | null {
  return value === null || value === undefined ? null : Number(value);
}

/** The least or greatest of doubles and of large integers: where it is no double of its own, it is the large integer. */
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
