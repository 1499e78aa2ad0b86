import { formatAddress, type AddressRange } from "../../../lib/ip.ts";
import { FLOW_WINDOW_MS } from "../../../model/flow.ts";
import type { Flow, FlowFilter, FlowOrder, Split, TalkerDimension } from "../../../model/flow-question.ts";
import { protocolName } from "../../../model/protocol.ts";
import { and } from "../columns/sql.ts";
import type { Unit } from "./units.ts";

// Questions about flows in the engine's words. Only numbers come from outside, and are checked or written as such.

const HALF = (1n << 64n) - 1n;
const half = (value: bigint) => `${value}::UBIGINT`;

export function whereSql({ fromMs, toMs, src, dst, exporter, port, protocol }: FlowFilter): string {
  return and([
    fromMs === undefined ? "TRUE" : `ts >= ${Math.ceil(fromMs)}`,
    toMs === undefined ? "TRUE" : `ts < ${Math.ceil(toMs)}`,
    rangeSql("src", src),
    rangeSql("dst", dst),
    rangeSql("exporter", exporter),
    port === undefined ? "TRUE" : `(src_port = ${Math.trunc(port)} OR dst_port = ${Math.trunc(port)})`,
    protocol === undefined ? "TRUE" : `protocol = ${Math.trunc(protocol)}`,
  ]);
}

/** Each half is compared on its own, which lets the engine pass over whole blocks. */
function rangeSql(name: string, range: AddressRange | undefined): string {
  if (!range) return "TRUE";
  const [high, low] = [`${name}_high`, `${name}_low`];
  const [from, to] = [halves(range.from), halves(range.to)];
  if (from.high === to.high)
    return `(${high} = ${half(from.high)} AND ${low} BETWEEN ${half(from.low)} AND ${half(to.low)})`;
  return and([
    `${high} BETWEEN ${half(from.high)} AND ${half(to.high)}`,
    from.low === 0n ? "TRUE" : `(${high} > ${half(from.high)} OR ${low} >= ${half(from.low)})`,
    to.low === HALF ? "TRUE" : `(${high} < ${half(to.high)} OR ${low} <= ${half(to.low)})`,
  ]);
}

function halves(address: bigint): { high: bigint; low: bigint } {
  return { high: address >> 64n, low: address & HALF };
}

/** The rows of several units as one table. */
export function unitsSql(units: readonly Unit[], columns: string): string {
  return `(${units.map(({ name }) => `SELECT ${columns} FROM ${name}.flows`).join(" UNION ALL ")})`;
}

export function orderSql({ sort, descending }: FlowOrder): string {
  const direction = descending ? "DESC" : "ASC";
  const keys = sort === "timestamp" ? ["ts", "seq"] : [sort, "ts", "seq"];
  return keys.map((key) => `${key} ${direction}`).join(", ");
}

/** In the order in which toFlow reads them. */
export const FLOW_COLUMNS =
  "ts, seq, src_high, src_low, dst_high, dst_low, src_port, dst_port, protocol, tcp_flags, bytes, packets, " +
  "first_seen, duration, exporter_high, exporter_low, version";

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
  };
}

/** When its window ended, and its number among the flows of that day: rises with both, and never changes. */
function flowId(ts: number, seq: number): string {
  return `flw_${ts.toString(16).padStart(12, "0")}${seq.toString(16).padStart(10, "0")}`;
}

function addressOf(cells: readonly unknown[], column: number): string {
  return formatAddress(((cells[column] as bigint) << 64n) | (cells[column + 1] as bigint));
}

/** What rows are added up by. */
export interface Dimension {
  readonly columns: readonly string[];
  /** The key in the engine's words, and what it has to be asked back for. */
  readonly keySql: string;
  readonly keyOf: (cells: readonly unknown[]) => string;
}

/** The engine has no words for the spelling of an IPv6 address. */
export const ADDRESS_FUNCTION = "address_text";

function addressSql(name: string): string {
  const octet = (shift: number) => `((${name}_low >> ${shift}) & 255)`;
  const four = [24, 16, 8, 0].map(octet).join(` || '.' || `);
  return `CASE WHEN ${name}_high = 0 AND ${name}_low >> 32 = 65535 THEN ${four} ELSE ${ADDRESS_FUNCTION}(${name}_high, ${name}_low) END`;
}

const addressDimension = (name: string): Dimension => ({
  columns: [`${name}_high`, `${name}_low`],
  keySql: addressSql(name),
  keyOf: (cells) => addressOf(cells, 0),
});

export const DIMENSIONS: Readonly<Record<TalkerDimension | Split, Dimension>> = {
  src: addressDimension("src"),
  dst: addressDimension("dst"),
  exporter: addressDimension("exporter"),
  pair: {
    columns: ["src_high", "src_low", "dst_high", "dst_low"],
    keySql: `(${addressSql("src")}) || ' → ' || (${addressSql("dst")})`,
    keyOf: (cells) => `${addressOf(cells, 0)} → ${addressOf(cells, 2)}`,
  },
  protocol: {
    columns: ["protocol"],
    keySql: `[${Array.from({ length: 256 }, (_, number) => `'${protocolName(number)}'`).join(", ")}][protocol + 1]`,
    keyOf: ([protocol]) => protocolName(Number(protocol)),
  },
};
