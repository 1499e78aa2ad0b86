import { formatAddress, type AddressRange } from "../../../lib/ip.ts";
import { FLOW_WINDOW_MS } from "../../../model/flow.ts";
import {
  NO_PORT_KEY,
  PROTOCOLS_WITH_PORTS,
  type Flow,
  type FlowFilter,
  type FlowOrder,
  type Split,
  type TalkerDimension,
} from "../../../model/flow-query.ts";
import { protocolName } from "../../../model/protocol.ts";
import { and, FALSE, or, TRUE } from "../columns/sql.ts";
import type { FlowDay } from "./flow-days.ts";

// SQL for flow queries. Input consists of numbers only, which are written as such.

/** The two tables of a day; flow-table.ts has the reason. */
type Family = "four" | "six";
const FAMILIES = ["four", "six"] as const;

const HALF = (1n << 64n) - 1n;
/** The start of IPv4 addresses among all addresses. */
const MAPPED = 0xffff_0000_0000n;
const FOUR_MAX = 0xffff_ffffn;
const half = (value: bigint) => `${value}::UBIGINT`;

function whereSql(family: Family, filter: FlowFilter): string {
  const { fromMs, toMs, src, dst, host, exporter, port, protocol } = filter;
  const address = family === "four" ? fourSql : rangeSql;
  return and([
    fromMs === undefined ? TRUE : `ts >= ${Math.ceil(fromMs)}`,
    toMs === undefined ? TRUE : `ts < ${Math.ceil(toMs)}`,
    address("src", src),
    address("dst", dst),
    or([address("src", host), address("dst", host)]),
    rangeSql("exporter", exporter),
    port === undefined ? TRUE : `(src_port = ${Math.trunc(port)} OR dst_port = ${Math.trunc(port)})`,
    protocol === undefined ? TRUE : `protocol = ${Math.trunc(protocol)}`,
    natSql(filter),
  ]);
}

/** Matches either end, with address and port of the same end. A missing translation is null and matches nothing. */
function natSql({ nat, natPort }: FlowFilter): string {
  if (nat === undefined && natPort === undefined) return TRUE;
  const end = (name: string) =>
    and([rangeSql(name, nat), natPort === undefined ? TRUE : `${name}_port = ${Math.trunc(natPort)}`]);
  return `((${end("nat_src")}) OR (${end("nat_dst")}))`;
}

function fourSql(name: string, range: AddressRange | undefined): string {
  if (!range) return TRUE;
  const from = range.from < MAPPED ? 0n : range.from - MAPPED;
  const to = range.to > MAPPED + FOUR_MAX ? FOUR_MAX : range.to - MAPPED;
  if (from > FOUR_MAX || to < 0n) return FALSE;
  return from === 0n && to === FOUR_MAX ? TRUE : `${name} BETWEEN ${from}::UINTEGER AND ${to}::UINTEGER`;
}

/** Compares each half separately, which lets DuckDB skip blocks. */
function rangeSql(name: string, range: AddressRange | undefined): string {
  if (!range) return TRUE;
  const [high, low] = [`${name}_high`, `${name}_low`];
  const [from, to] = [halves(range.from), halves(range.to)];
  if (from.high === to.high)
    return `(${high} = ${half(from.high)} AND ${low} BETWEEN ${half(from.low)} AND ${half(to.low)})`;
  return and([
    `${high} BETWEEN ${half(from.high)} AND ${half(to.high)}`,
    from.low === 0n ? TRUE : `(${high} > ${half(from.high)} OR ${low} >= ${half(from.low)})`,
    to.low === HALF ? TRUE : `(${high} < ${half(to.high)} OR ${low} <= ${half(to.low)})`,
  ]);
}

function halves(address: bigint): { high: bigint; low: bigint } {
  return { high: address >> 64n, low: address & HALF };
}

/**
 * Both directions of a connection belong to its service, whose port is as a rule the lower one. 0 is no port: a fragment, or a
 * protocol without ports.
 */
const SERVICE_PORT = `CASE WHEN protocol NOT IN (${PROTOCOLS_WITH_PORTS.join(", ")}) THEN 0::USMALLINT
  WHEN src_port = 0 OR dst_port = 0 THEN greatest(src_port, dst_port) ELSE least(src_port, dst_port) END`;

/** Columns that neither table has. */
const COMPUTED: Readonly<Record<string, string>> = { service_port: SERVICE_PORT };

/** Columns that the table `four` does not have, computed from those it has. */
const IN_FOUR: Readonly<Record<string, string>> = {
  src_high: "0::UBIGINT",
  src_low: `${half(MAPPED)} + src`,
  dst_high: "0::UBIGINT",
  dst_low: `${half(MAPPED)} + dst`,
  pair: "(src::UBIGINT << 32) | dst",
};

/** The matching rows as a relation with these columns. */
export function rowsSql(
  days: readonly FlowDay[],
  filter: FlowFilter,
  columns: readonly string[],
  families: readonly Family[] = FAMILIES,
): string {
  const selects = days.flatMap(({ name }) =>
    families.map(
      (family) =>
        `SELECT ${listSql(family, columns, families.length > 1)} FROM ${name}.${family} WHERE ${whereSql(family, filter)}`,
    ),
  );
  return `(${selects.join(" UNION ALL ")})`;
}

/** `isWide`: the rows of both tables are combined, so that their types must agree. */
function listSql(family: Family, columns: readonly string[], isWide: boolean): string {
  const words: Readonly<Record<string, string>> = isWide ? { ...IN_FOUR, ...COUNTERS_IN_FOUR } : IN_FOUR;
  const computed = family === "four" ? { ...words, ...COMPUTED } : COMPUTED;
  return columns.map((column) => (column in computed ? `${computed[column]} AS ${column}` : column)).join(", ");
}

const COUNTERS_IN_FOUR = { bytes: "bytes::UBIGINT", packets: "packets::UBIGINT" };

/**
 * A page of the matching rows in order. Each table is queried for its own first rows, so that DuckDB reads the sort columns of
 * all rows and the other columns only of the first.
 */
export function pageSql(
  days: readonly FlowDay[],
  filter: FlowFilter,
  order: FlowOrder,
  offset: number,
  limit: number,
): string {
  const by = orderSql(order);
  const firsts = days.flatMap(({ name }) =>
    FAMILIES.map((family) => {
      const rows = `FROM ${name}.${family} WHERE ${whereSql(family, filter)} ORDER BY ${by} LIMIT ${offset + limit}`;
      return `SELECT ${listSql(family, FLOW_COLUMNS, true)} FROM (${rows})`;
    }),
  );
  return `FROM (${firsts.join(" UNION ALL ")}) ORDER BY ${by} LIMIT ${limit} OFFSET ${offset}`;
}

/** The rows of a day after one sequence number and up to another. */
export function spanSql({ name }: FlowDay, after: number, upTo: number): string {
  const parts = FAMILIES.map(
    (family) =>
      `SELECT ${listSql(family, FLOW_COLUMNS, true)} FROM ${name}.${family} WHERE seq > ${after} AND seq <= ${upTo}`,
  );
  return `FROM (${parts.join(" UNION ALL ")}) ORDER BY seq`;
}

/** A table of one day. */
interface FlowTable {
  readonly day: FlowDay;
  readonly family: Family;
}

/** The tables of these days, in the order in which places number them. */
function tablesOf(days: readonly FlowDay[]): FlowTable[] {
  return days.flatMap((day) => FAMILIES.map((family) => ({ day, family })));
}

/** The places of the matching rows, with the columns of the order: the others are wide, and a page needs few of them. */
function placesSql(days: readonly FlowDay[], filter: FlowFilter, { sort }: FlowOrder): string {
  const columns = orderColumns(sort);
  const selects = tablesOf(days).map(
    ({ day: { name }, family }, table) =>
      `SELECT ${table} AS nth, rowid AS place, ${listSql(family, columns, true)}
       FROM ${name}.${family} WHERE ${whereSql(family, filter)}`,
  );
  return selects.join(" UNION ALL ");
}

/**
 * A page of the places of the matching rows, in order, each with the number of matches after it, in one scan. All places are in
 * memory until the query ends. Not without MATERIALIZED: sorting the union directly, DuckDB sometimes leaves out a row.
 */
export function countedPlacesSql(days: readonly FlowDay[], filter: FlowFilter, page: FlowPageOrder): string {
  return `WITH found AS MATERIALIZED (${placesSql(days, filter, page.order)})
    SELECT nth, place, (SELECT count(*) FROM found) FROM found ${pageOrderSql(page)}`;
}

function pageOrderSql({ order, offset, limit }: FlowPageOrder): string {
  return `ORDER BY ${orderSql(order)} LIMIT ${limit} OFFSET ${offset}`;
}

/** The rows at these places, in any order; the place of each follows its columns. */
export function rowsAtSql(days: readonly FlowDay[], places: readonly FlowPlace[]): string {
  const tables = tablesOf(days);
  const selects = [...Map.groupBy(places, ({ table }) => table)].map(([nth, within]) => {
    const { day, family } = tables[nth]!;
    const wanted = within.map(({ row }) => `(${row})`).join(", ");
    return `SELECT ${listSql(family, FLOW_COLUMNS, true)}, ${nth}, rowid FROM ${day.name}.${family}
      SEMI JOIN (VALUES ${wanted}) AS wanted(place) ON rowid = wanted.place`;
  });
  return selects.join(" UNION ALL ");
}

export interface FlowPageOrder {
  readonly order: FlowOrder;
  readonly offset: number;
  readonly limit: number;
}

/** The place of a row: the number of its table among those of the query, and the row in it. Valid within a transaction. */
export interface FlowPlace {
  readonly table: number;
  readonly row: bigint;
}

/** The number of matches, as one row. */
export function countSql(days: readonly FlowDay[], filter: FlowFilter): string {
  const counts = days.flatMap(({ name }) =>
    FAMILIES.map((family) => `(SELECT count(*) FROM ${name}.${family} WHERE ${whereSql(family, filter)})`),
  );
  return `SELECT ${counts.join(" + ")}`;
}

function orderSql({ sort, descending }: FlowOrder): string {
  const direction = descending ? "DESC" : "ASC";
  return orderColumns(sort)
    .map((key) => `${key} ${direction}`)
    .join(", ");
}

function orderColumns(sort: FlowOrder["sort"]): readonly string[] {
  return sort === "timestamp" ? ["ts", "seq"] : [sort, "ts", "seq"];
}

/** The order in which toFlow reads them. */
const FLOW_COLUMNS = [
  "ts",
  "seq",
  "src_high",
  "src_low",
  "dst_high",
  "dst_low",
  "src_port",
  "dst_port",
  "protocol",
  "tcp_flags",
  "bytes",
  "packets",
  "first_seen",
  "duration",
  "exporter_high",
  "exporter_low",
  "version",
  "nat_src_high",
  "nat_src_low",
  "nat_dst_high",
  "nat_dst_low",
  "nat_src_port",
  "nat_dst_port",
] as const;

/** The place that follows the columns of a row. */
export function placeAfterColumns(cells: readonly unknown[]): FlowPlace {
  return toPlace(cells.slice(FLOW_COLUMNS.length));
}

export function toPlace([table, row]: readonly unknown[]): FlowPlace {
  return { table: Number(table), row: row as bigint };
}

export function toFlow(cells: readonly unknown[]): Flow {
  const number = (column: number) => Number(cells[column]);
  const address = (column: number) => addressOf(cells, column);
  const windowStartMs = number(0) - FLOW_WINDOW_MS;
  const firstSeenMs = windowStartMs + number(12);
  return {
    id: flowId(number(0), number(1)),
    windowStartMs,
    src: address(2),
    dst: address(4),
    srcPort: number(6),
    dstPort: number(7),
    protocol: number(8),
    tcpFlags: number(9),
    bytes: BigInt(cells[10] as bigint),
    packets: BigInt(cells[11] as bigint),
    firstSeenMs,
    lastSeenMs: firstSeenMs + number(13),
    exporter: address(14),
    version: number(16),
    natSrc: cells[17] === null ? null : address(17),
    natDst: cells[19] === null ? null : address(19),
    natSrcPort: cells[21] as number | null,
    natDstPort: cells[22] as number | null,
  };
}

/** The end of the window and the sequence number within its day: ascending in both, and stable. */
function flowId(ts: number, seq: number): string {
  return `flw_${ts.toString(16).padStart(12, "0")}${seq.toString(16).padStart(10, "0")}`;
}

function addressOf(cells: readonly unknown[], column: number): string {
  return formatAddress(((cells[column] as bigint) << 64n) | (cells[column + 1] as bigint));
}

/** Rows and the columns by which they are summed up. */
export interface Grouping {
  readonly families: readonly Family[];
  readonly columns: readonly string[];
  /** SQL of the key. */
  readonly keySql: string;
  readonly keyOf: (cells: readonly unknown[]) => string;
}

/** A scalar function that formats an IPv6 address, for which DuckDB has none. */
export const ADDRESS_FUNCTION = "address_text";

const octetsSql = (number: string) =>
  [24, 16, 8, 0].map((shift) => `((${number} >> ${shift}) & 255)`).join(` || '.' || `);

function addressSql(name: string): string {
  const isFour = `${name}_high = 0 AND ${name}_low >> 32 = 65535`;
  return `CASE WHEN ${isFour} THEN ${octetsSql(`${name}_low`)} ELSE ${ADDRESS_FUNCTION}(${name}_high, ${name}_low) END`;
}

const fourText = (value: bigint) => formatAddress(MAPPED + value);

const fourAddress = (name: string): Grouping => ({
  families: ["four"],
  columns: [name],
  keySql: octetsSql(name),
  keyOf: ([value]) => fourText(BigInt(value as number)),
});

/** One number is half the work of two, and most pairs are IPv4. */
const fourPair: Grouping = {
  families: ["four"],
  columns: ["pair"],
  keySql: `(${octetsSql("(pair >> 32)")}) || ' → ' || (${octetsSql("pair")})`,
  keyOf: ([value]) => `${fourText((value as bigint) >> 32n)} → ${fourText((value as bigint) & FOUR_MAX)}`,
};

const wideAddress = (name: string, families: readonly Family[]): Grouping => ({
  families,
  columns: [`${name}_high`, `${name}_low`],
  keySql: addressSql(name),
  keyOf: (cells) => addressOf(cells, 0),
});

const widePair = (families: readonly Family[]): Grouping => ({
  families,
  columns: ["src_high", "src_low", "dst_high", "dst_low"],
  keySql: `(${addressSql("src")}) || ' → ' || (${addressSql("dst")})`,
  keyOf: (cells) => `${addressOf(cells, 0)} → ${addressOf(cells, 2)}`,
});

const byProtocol: Grouping = {
  families: FAMILIES,
  columns: ["protocol"],
  keySql: `[${Array.from({ length: 256 }, (_, number) => `'${protocolName(number)}'`).join(", ")}][protocol + 1]`,
  keyOf: ([protocol]) => protocolName(Number(protocol)),
};

const byPort: Grouping = {
  families: FAMILIES,
  columns: ["service_port"],
  keySql: `CASE service_port WHEN 0 THEN '${NO_PORT_KEY}' ELSE service_port::VARCHAR END`,
  keyOf: ([port]) => (port === 0 ? NO_PORT_KEY : String(port)),
};

/**
 * The groupings of a dimension. No two of them share a key, so that each is summed up separately; except in days with mixed
 * rows, where an IPv4 address talked to an IPv6 address or a counter needed 64 bits, which is rare.
 */
export function groupingsOf(dimension: TalkerDimension | Split, days: readonly FlowDay[]): readonly Grouping[] {
  if (dimension === "protocol") return [byProtocol];
  if (dimension === "port") return [byPort];
  if (dimension === "exporter") return [wideAddress("exporter", FAMILIES)];
  if (days.some(({ isMixed }) => isMixed))
    return [dimension === "pair" ? widePair(FAMILIES) : wideAddress(dimension, FAMILIES)];
  return dimension === "pair"
    ? [fourPair, widePair(["six"])]
    : [fourAddress(dimension), wideAddress(dimension, ["six"])];
}
