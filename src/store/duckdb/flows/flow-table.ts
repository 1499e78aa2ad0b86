import {
  DOUBLE,
  DuckDBDataChunk,
  UBIGINT,
  USMALLINT,
  UTINYINT,
  type DuckDBConnection,
  type DuckDBType,
} from "@duckdb/node-api";
import { ADDRESS_BYTES, FLOW_WINDOW_MS, type FlowRows } from "../../../model/flow.ts";
import { VECTOR_ROWS } from "../vectors/vector-layout.ts";
import { vectorsOf, writeValues } from "../vectors/vector-memory.ts";

// The tables of a day of flows, and how rows get there.

/**
 * The tables of a day: `four` for flows from IPv4 to IPv4, `six` for all others. An IPv4 address is then one small number,
 * which groups several times as fast. Other addresses are two numbers: DuckDB takes 15 times as long to read one of 128
 * bits. Signed counters add up twice as fast; a flow whose counter needs the 64th bit goes to `six`. `ts` is the end of the
 * window; `first_seen` counts from its start and `duration` from there, so that both stay small. `seq` ascends in the day.
 */
const sharedColumns = (
  counter: "BIGINT" | "UBIGINT",
) => `exporter_high UBIGINT, exporter_low UBIGINT, src_port USMALLINT,
  dst_port USMALLINT, protocol UTINYINT, tcp_flags USMALLINT, bytes ${counter}, packets ${counter},
  first_seen BIGINT, duration BIGINT, version UTINYINT`;
const FLOW_TABLES = {
  four: `ts BIGINT, seq BIGINT, src UINTEGER, dst UINTEGER, ${sharedColumns("BIGINT")}`,
  six: `ts BIGINT, seq BIGINT, src_high UBIGINT, src_low UBIGINT, dst_high UBIGINT, dst_low UBIGINT, ${sharedColumns("UBIGINT")}`,
  batches: "id VARCHAR",
} as const;
/** The format that days without a version have recorded. */
export const FLOW_DAY_FORMAT = `1 ${JSON.stringify(FLOW_TABLES).replaceAll(/\s+/g, " ")}`;

/** Null without a translation. Both tables may have both kinds of address here: a gateway may translate between them. */
const NAT_COLUMNS = [
  "nat_src_high UBIGINT",
  "nat_src_low UBIGINT",
  "nat_dst_high UBIGINT",
  "nat_dst_low UBIGINT",
  "nat_src_port USMALLINT",
  "nat_dst_port USMALLINT",
] as const;

/** The migration to each version from the previous one, as in migrations.ts. The first accepts a day without a version. */
export const FLOW_DAY_MIGRATIONS: readonly ((database: string) => string)[] = [
  (database) =>
    Object.entries(FLOW_TABLES)
      .map(([table, columns]) => `CREATE TABLE IF NOT EXISTS ${database}.${table}(${columns})`)
      .join("; "),
  (database) =>
    ["four", "six"]
      .flatMap((table) => NAT_COLUMNS.map((column) => `ALTER TABLE ${database}.${table} ADD COLUMN ${column}`))
      .join("; "),
];

/** A batch is in memory while it is stored. */
const BATCH_ROWS_MAX = 2_000_000;

type Numbers = Float64Array | BigUint64Array | Uint16Array | Uint8Array;

interface StagedColumn {
  readonly name: string;
  readonly type: DuckDBType;
  readonly data: Numbers;
}

function stagedColumns(rows: FlowRows): StagedColumn[] {
  const address = (name: string, bytes: Uint8Array) => {
    const { high, low } = splitAddresses(bytes, rows.count);
    return [
      { name: `${name}_high`, type: UBIGINT, data: high },
      { name: `${name}_low`, type: UBIGINT, data: low },
    ];
  };
  return [
    { name: "window_start", type: DOUBLE, data: rows.windowStart },
    ...address("exporter", rows.exporter),
    ...address("src", rows.src),
    ...address("dst", rows.dst),
    { name: "src_port", type: USMALLINT, data: rows.srcPort },
    { name: "dst_port", type: USMALLINT, data: rows.dstPort },
    { name: "protocol", type: UTINYINT, data: rows.protocol },
    { name: "tcp_flags", type: USMALLINT, data: rows.tcpFlags },
    { name: "bytes", type: UBIGINT, data: rows.bytes },
    { name: "packets", type: UBIGINT, data: rows.packets },
    { name: "first_seen", type: DOUBLE, data: rows.firstSeen },
    { name: "last_seen", type: DOUBLE, data: rows.lastSeen },
    { name: "version", type: UTINYINT, data: rows.version },
    ...(rows.nat
      ? [
          ...address("nat_src", rows.nat.src),
          ...address("nat_dst", rows.nat.dst),
          { name: "nat_src_port", type: USMALLINT, data: rows.nat.srcPort },
          { name: "nat_dst_port", type: USMALLINT, data: rows.nat.dstPort },
        ]
      : []),
  ];
}

/** Splits addresses, which are in network byte order, into two halves each. */
function splitAddresses(bytes: Uint8Array, count: number): { high: BigUint64Array; low: BigUint64Array } {
  const swapped = Buffer.from(bytes.subarray(0, count * ADDRESS_BYTES)).swap64();
  const copied = new Uint8Array(swapped.length);
  copied.set(swapped);
  const halves = new Uint32Array(copied.buffer);
  const high = new Uint32Array(2 * count);
  const low = new Uint32Array(2 * count);
  for (let row = 0; row < count; row++) {
    high[2 * row] = halves[4 * row]!;
    high[2 * row + 1] = halves[4 * row + 1]!;
    low[2 * row] = halves[4 * row + 2]!;
    low[2 * row + 1] = halves[4 * row + 3]!;
  }
  return { high: new BigUint64Array(high.buffer), low: new BigUint64Array(low.buffer) };
}

/** Stages the rows in a table of the engine, one column at a time. */
export async function stageRows(connection: DuckDBConnection, rows: FlowRows): Promise<void> {
  if (rows.count > BATCH_ROWS_MAX) throw new RangeError(`a batch of flows has at most ${BATCH_ROWS_MAX} rows`);
  const columns = stagedColumns(rows);
  const list = columns.map(({ name, type }) => `${name} ${type.toString()}`).join(", ");
  await connection.run(`CREATE OR REPLACE TABLE staged(${list})`);
  const appender = await connection.createAppender("staged");
  const types = columns.map(({ type }) => type);
  for (let row = 0; row < rows.count; row += VECTOR_ROWS) {
    const length = Math.min(VECTOR_ROWS, rows.count - row);
    const chunk = DuckDBDataChunk.create(types, length);
    for (const [column, vector] of vectorsOf(chunk).entries()) {
      const { data } = columns[column]!;
      const from = data.byteOffset + row * data.BYTES_PER_ELEMENT;
      writeValues(vector, data.buffer as ArrayBuffer, from, length * data.BYTES_PER_ELEMENT);
    }
    appender.appendDataChunk(chunk);
  }
  appender.closeSync();
}

const isFour = (name: string) => `(${name}_high = 0 AND ${name}_low >> 32 = 65535)`;
const COUNTER_END = 1n << 63n;
const BOTH_FOUR = `(${isFour("src")} AND ${isFour("dst")} AND bytes < ${COUNTER_END} AND packets < ${COUNTER_END})`;
/** Rows with an IPv4 address in the table `six`. */
export const MIXED = `(${isFour("src")} OR ${isFour("dst")})`;

export interface StagedMove {
  readonly database: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly lastSeq: number;
  /** Alternates from batch to batch. */
  readonly isBackwards: boolean;
  /** True when the staged rows have NAT columns. */
  readonly hasNat: boolean;
}

/** In the order of NAT_COLUMNS; zero stands for a missing value. */
const STAGED_NAT = [
  ...["nat_src", "nat_dst"].flatMap((name) =>
    ["high", "low"].map((half) => `CASE WHEN ${name}_high > 0 OR ${name}_low > 0 THEN ${name}_${half} END`),
  ),
  "nullif(nat_src_port, 0)",
  "nullif(nat_dst_port, 0)",
].join(", ");
const NO_NAT = NAT_COLUMNS.map(() => "NULL").join(", ");

/**
 * Moves the staged rows of one day to a table. Sorted rows take less space, since similar rows are adjacent: requests next to
 * requests. Every other batch is sorted backwards, so that adjacent batches meet in similar rows too.
 */
export function moveStagedSql(table: "four" | "six", move: StagedMove): string {
  const { database, fromMs, toMs, lastSeq, isBackwards, hasNat } = move;
  const direction = isBackwards ? "DESC" : "ASC";
  const addresses =
    table === "four"
      ? "(src_low & 4294967295)::UINTEGER AS src, (dst_low & 4294967295)::UINTEGER AS dst"
      : "src_high, src_low, dst_high, dst_low";
  const order = ["src_port < dst_port", "src_high", "src_low", "dst_high", "dst_low"].map(
    (key) => `${key} ${direction}`,
  );
  return `
    INSERT INTO ${database}.${table}
    SELECT ts, ${lastSeq} + row_number() OVER (), * EXCLUDE (ts) FROM (
      SELECT (window_start + ${FLOW_WINDOW_MS})::BIGINT AS ts, ${addresses}, exporter_high, exporter_low,
        src_port, dst_port, protocol, tcp_flags, bytes, packets,
        (first_seen - window_start)::BIGINT, (last_seen - first_seen)::BIGINT, version, ${hasNat ? STAGED_NAT : NO_NAT}
      FROM staged
      WHERE window_start >= ${fromMs - FLOW_WINDOW_MS} AND window_start < ${toMs - FLOW_WINDOW_MS}
        AND ${table === "four" ? BOTH_FOUR : `NOT ${BOTH_FOUR}`}
      ORDER BY ts, exporter_high, exporter_low, ${order.join(", ")})`;
}
