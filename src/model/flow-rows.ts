import { parseAddress } from "../lib/ip.ts";
import { ADDRESS_BYTES, type FlowRows, type NatColumns } from "./flow.ts";
import type { Flow } from "./flow-query.ts";

type NatField = "natSrc" | "natDst" | "natSrcPort" | "natDstPort";
export type FlowRow = Omit<Flow, "id" | NatField> & Partial<Pick<Flow, NatField>>;

/** Allocates columns for this many rows. */
export function emptyFlowRows(count: number): FlowRows {
  return {
    count,
    windowStart: new Float64Array(count),
    exporter: new Uint8Array(count * ADDRESS_BYTES),
    src: new Uint8Array(count * ADDRESS_BYTES),
    dst: new Uint8Array(count * ADDRESS_BYTES),
    srcPort: new Uint16Array(count),
    dstPort: new Uint16Array(count),
    protocol: new Uint8Array(count),
    tcpFlags: new Uint16Array(count),
    bytes: new BigUint64Array(count),
    packets: new BigUint64Array(count),
    firstSeen: new Float64Array(count),
    lastSeen: new Float64Array(count),
    version: new Uint8Array(count),
    nat: null,
  };
}

export function emptyNatColumns(count: number): NatColumns {
  return {
    src: new Uint8Array(count * ADDRESS_BYTES),
    dst: new Uint8Array(count * ADDRESS_BYTES),
    srcPort: new Uint16Array(count),
    dstPort: new Uint16Array(count),
  };
}

/** Converts rows to columns, for callers with few rows. Addresses must be valid. */
export function flowRowsOf(rows: readonly FlowRow[]): FlowRows {
  const addresses = (pick: (row: FlowRow) => string | null | undefined) => {
    const bytes = new Uint8Array(rows.length * ADDRESS_BYTES);
    for (const [index, row] of rows.entries()) {
      const address = pick(row);
      if (address === null || address === undefined) continue;
      const digits = parseAddress(address)!
        .toString(16)
        .padStart(2 * ADDRESS_BYTES, "0");
      bytes.set(Buffer.from(digits, "hex"), index * ADDRESS_BYTES);
    }
    return bytes;
  };
  return {
    count: rows.length,
    windowStart: Float64Array.from(rows, (row) => row.windowStartMs),
    exporter: addresses((row) => row.exporter),
    src: addresses((row) => row.src),
    dst: addresses((row) => row.dst),
    srcPort: Uint16Array.from(rows, (row) => row.srcPort),
    dstPort: Uint16Array.from(rows, (row) => row.dstPort),
    protocol: Uint8Array.from(rows, (row) => row.protocol),
    tcpFlags: Uint16Array.from(rows, (row) => row.tcpFlags),
    bytes: BigUint64Array.from(rows, (row) => row.bytes),
    packets: BigUint64Array.from(rows, (row) => row.packets),
    firstSeen: Float64Array.from(rows, (row) => row.firstSeenMs),
    lastSeen: Float64Array.from(rows, (row) => row.lastSeenMs),
    version: Uint8Array.from(rows, (row) => row.version),
    nat: rows.some(({ natSrc, natDst }) => natSrc || natDst)
      ? {
          src: addresses((row) => row.natSrc),
          dst: addresses((row) => row.natDst),
          srcPort: Uint16Array.from(rows, (row) => row.natSrcPort ?? 0),
          dstPort: Uint16Array.from(rows, (row) => row.natDstPort ?? 0),
        }
      : null,
  };
}
