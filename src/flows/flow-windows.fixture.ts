import {
  NAT_DST_WORD,
  NAT_PORTS_WORD,
  NAT_SRC_WORD,
  NAT_WORDS,
  RecordBatch,
  setExactCounter,
} from "../collectors/flows/flow-records.ts";
import type { WindowTable } from "./window-table.ts";
import { FlowWindows, type FlowWindowSettings } from "./flow-windows.ts";

export const MINUTE = 60_000;
export const T0 = 1_700_000_070_000;
const SETTINGS: FlowWindowSettings = { graceMs: 15_000, lateMaxMs: 3_600_000, rowsMax: 10_000 };

export interface FlowRecord {
  readonly exporter?: number;
  readonly src?: number;
  readonly dst?: number;
  readonly srcPort?: number;
  readonly dstPort?: number;
  readonly protocol?: number;
  readonly flags?: number;
  readonly bytes?: bigint;
  readonly packets?: bigint;
  readonly first?: number;
  readonly last?: number;
  /** The last word of the translated source address, and its port; 0 for an untranslated side. */
  readonly natSrc?: number;
  readonly natSrcPort?: number;
  readonly natDst?: number;
  readonly natDstPort?: number;
}

export function batchOf(records: readonly FlowRecord[]): RecordBatch {
  const batch = new RecordBatch(() => undefined);
  for (const record of records) {
    const row = batch.next();
    batch.exporter[row] = record.exporter ?? 0;
    batch.version[row] = 9;
    batch.protocol[row] = record.protocol ?? 6;
    batch.tcpFlags[row] = record.flags ?? 0;
    batch.ports[row] = (((record.srcPort ?? 0) << 16) | (record.dstPort ?? 0)) >>> 0;
    batch.src[row * 4 + 3] = record.src ?? 1;
    batch.dst[row * 4 + 3] = record.dst ?? 2;
    setExactCounter(batch.bytes, row, record.bytes ?? 100n);
    setExactCounter(batch.packets, row, record.packets ?? 1n);
    batch.lastSeen[row] = record.last ?? T0;
    batch.firstSeen[row] = record.first ?? batch.lastSeen[row]!;
    const { natSrc = 0, natDst = 0, natSrcPort = 0, natDstPort = 0 } = record;
    batch.isTranslated[row] = natSrc || natDst ? 1 : 0;
    batch.nat[row * NAT_WORDS + NAT_SRC_WORD + 3] = natSrc;
    batch.nat[row * NAT_WORDS + NAT_DST_WORD + 3] = natDst;
    batch.nat[row * NAT_WORDS + NAT_PORTS_WORD] = ((natSrcPort << 16) | natDstPort) >>> 0;
  }
  return batch;
}

/** Opens windows and collects their closed tables. */
export function openWindows(settings: Partial<FlowWindowSettings> = {}) {
  const closed: WindowTable[] = [];
  const tooLate: number[] = [];
  const exporters = {
    addressBytes: (index: number) => new Uint8Array(16).fill(index),
    tooLate: (index: number) => void tooLate.push(index),
    accepted: () => undefined,
  };
  const windows = new FlowWindows({ ...SETTINGS, ...settings }, exporters, "run", (table) => void closed.push(table));
  return { windows, closed, tooLate };
}
