import { NAT_WORDS, type RecordBatch } from "../collectors/flows/flow-records.ts";
import { ADDRESS_BYTES, FLOW_WINDOW_MS, type FlowRows } from "../model/flow.ts";
import { emptyFlowRows } from "../model/flow-rows.ts";
import { freeColumns, growColumn, KeyIndex } from "./key-index.ts";
import { NatTranslations } from "./nat-translations.ts";

// The tuples of one open window, together with late records of windows that are already closed.

/** Minute, exporter with protocol and version, ports, source, destination. */
export const KEY_WORDS = 11;
export const MINUTE_WORD = 0;
export const KIND_WORD = 1;
export const PORTS_WORD = 2;
export const SRC_WORD = 3;
export const DST_WORD = 7;
/** Lower and upper half of bytes, then of packets. */
export const COUNTER_WORDS = 4;
const WORD = 2 ** 32;
const WORD_MAX = WORD - 1;

/** Overflow rows, which collect the records beyond the limit on rows. They may exceed that limit by this many. */
const OVERFLOW_ROWS_MAX = 4096;
const OVERFLOW_PROTOCOL = 255;

/** The values of a row, without its key. */
interface RowValues {
  readonly counters: Uint32Array;
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly tcpFlags: number;
  readonly firstEnd: number;
}

export class WindowTable {
  /** Unique across restarts: the store identifies this table's rows by it. */
  readonly id: string;
  readonly minute: number;
  readonly index: KeyIndex;
  /** Exporter addresses by index, since an index may be reused later. */
  readonly exporters = new Map<number, Uint8Array>();
  counters: Uint32Array;
  firstSeen: Float64Array;
  lastSeen: Float64Array;
  tcpFlags: Uint16Array;
  /** End of the first flow with traffic: milliseconds within the row's minute plus one, or 0 if unknown. */
  firstEnd: Uint16Array;
  /** The last reported NAT translation of each row. */
  readonly translations = new NatTranslations();
  /** Rows that changed since the journal's last write. */
  #changed: Int32Array;
  #isChanged: Uint8Array;
  #changedCount = 0;
  #overflowRows = 0;

  constructor(id: string, minute: number, rows?: number) {
    this.id = id;
    this.minute = minute;
    this.index = new KeyIndex(KEY_WORDS, rows);
    const { capacity } = this.index;
    this.counters = new Uint32Array(capacity * COUNTER_WORDS);
    this.firstSeen = new Float64Array(capacity);
    this.lastSeen = new Float64Array(capacity);
    this.tcpFlags = new Uint16Array(capacity);
    this.firstEnd = new Uint16Array(capacity);
    this.#changed = new Int32Array(capacity);
    this.#isChanged = new Uint8Array(capacity);
  }

  get count(): number {
    return this.index.count;
  }

  /** Frees the memory at once. Nothing may be used any more. */
  free(): void {
    this.index.free();
    freeColumns(this.counters, this.firstSeen, this.lastSeen, this.tcpFlags, this.firstEnd);
    freeColumns(this.#changed, this.#isChanged);
  }

  /** Adds a record to the row of its tuple. Returns false if a new row would exceed `rowsMax`. */
  add(batch: RecordBatch, record: number, minute: number, rowsMax: number): boolean {
    const { lookupKey } = this.index;
    const words = record * 4;
    lookupKey[MINUTE_WORD] = minute;
    lookupKey[KIND_WORD] = kindOf(batch.exporter[record]!, batch.protocol[record]!, batch.version[record]!);
    lookupKey[PORTS_WORD] = batch.ports[record]!;
    for (let word = 0; word < 4; word++) {
      lookupKey[SRC_WORD + word] = batch.src[words + word]!;
      lookupKey[DST_WORD + word] = batch.dst[words + word]!;
    }
    const row = this.index.find(rowsMax);
    if (row < 0) return false;
    this.#merge(batch, record, row);
    this.#noteEnd(batch, record, row, minute);
    if (batch.isTranslated[record] === 1) this.translations.set(row, batch.nat, record * NAT_WORDS);
    return true;
  }

  /** Adds a record to the overflow row of its exporter and protocol: only addresses and ports are lost. */
  addToOverflow(batch: RecordBatch, record: number): void {
    const { lookupKey } = this.index;
    const exporter = batch.exporter[record]!;
    lookupKey.fill(0);
    lookupKey[MINUTE_WORD] = this.minute;
    lookupKey[KIND_WORD] = kindOf(exporter, batch.protocol[record]!, batch.version[record]!);
    const before = this.count;
    let row = this.index.find(before + (this.#overflowRows < OVERFLOW_ROWS_MAX ? 1 : 0));
    if (row < 0) {
      lookupKey[KIND_WORD] = kindOf(exporter, OVERFLOW_PROTOCOL, 0);
      row = this.index.find(Number.MAX_SAFE_INTEGER);
    }
    this.#overflowRows += this.count - before;
    this.#merge(batch, record, row);
  }

  #merge(batch: RecordBatch, record: number, row: number): void {
    if (this.index.capacity > this.firstSeen.length) this.#grow();
    const { counters, firstSeen, lastSeen } = this;
    const at = row * COUNTER_WORDS;
    const first = batch.firstSeen[record]!;
    const last = batch.lastSeen[record]!;
    if (lastSeen[row] === 0) {
      firstSeen[row] = first;
      lastSeen[row] = last;
    } else {
      if (first < firstSeen[row]!) firstSeen[row] = first;
      if (last > lastSeen[row]!) lastSeen[row] = last;
    }
    this.tcpFlags[row]! |= batch.tcpFlags[record]!;
    addCounter(counters, at, batch.bytes[record * 2]!, batch.bytes[record * 2 + 1]!);
    addCounter(counters, at + 2, batch.packets[record * 2]!, batch.packets[record * 2 + 1]!);
    this.#touch(row);
  }

  #noteEnd(batch: RecordBatch, record: number, row: number, minute: number): void {
    const { bytes, packets } = batch;
    const at = record * 2;
    if ((bytes[at]! | bytes[at + 1]! | packets[at]! | packets[at + 1]!) === 0) return;
    const end = batch.lastSeen[record]! - minute * FLOW_WINDOW_MS + 1;
    const known = this.firstEnd[row]!;
    if (known === 0 || end < known) this.firstEnd[row] = end;
  }

  #touch(row: number): void {
    if (this.#isChanged[row] === 1) return;
    this.#isChanged[row] = 1;
    this.#changed[this.#changedCount++] = row;
  }

  /** Returns the rows that changed since the last call. */
  takeChanged(): Int32Array {
    const rows = this.#changed.slice(0, this.#changedCount);
    for (const row of rows) this.#isChanged[row] = 0;
    this.#changedCount = 0;
    return rows;
  }

  /** Marks rows as changed again after a failed write, in the order in which they were created. */
  markChanged(rows: Int32Array): void {
    for (const row of rows) this.#touch(row);
    this.#changed.subarray(0, this.#changedCount).sort();
  }

  /** Restores a row from a journal, in the order in which rows were created. Returns false if the row is invalid. */
  restore(row: number, key: Uint32Array, { counters, firstSeen, lastSeen, tcpFlags, firstEnd }: RowValues): boolean {
    this.index.lookupKey.set(key);
    if (row > this.count || this.index.find(Number.MAX_SAFE_INTEGER) !== row) return false;
    if (this.index.capacity > this.firstSeen.length) this.#grow();
    this.counters.set(counters, row * COUNTER_WORDS);
    this.firstSeen[row] = firstSeen;
    this.lastSeen[row] = lastSeen;
    this.tcpFlags[row] = tcpFlags;
    this.firstEnd[row] = firstEnd;
    return true;
  }

  rows(from: number, to: number): FlowRows {
    const count = to - from;
    const { keys } = this.index;
    const counters = this.counters.slice(from * COUNTER_WORDS, to * COUNTER_WORDS);
    const rows = emptyFlowRows(count);
    const [src, dst] = [new Uint32Array(rows.src.buffer), new Uint32Array(rows.dst.buffer)];
    const [bytes, packets] = [new Uint32Array(rows.bytes.buffer), new Uint32Array(rows.packets.buffer)];
    for (let row = 0; row < count; row++) {
      const key = (from + row) * KEY_WORDS;
      const kind = keys[key + KIND_WORD]!;
      const ports = keys[key + PORTS_WORD]!;
      rows.windowStart[row] = keys[key + MINUTE_WORD]! * FLOW_WINDOW_MS;
      rows.exporter.set(this.exporters.get(kind >>> 16)!, row * ADDRESS_BYTES);
      rows.protocol[row] = kind >>> 8;
      rows.version[row] = kind;
      rows.srcPort[row] = ports >>> 16;
      rows.dstPort[row] = ports;
      for (let word = 0; word < 4; word++) {
        src[row * 4 + word] = keys[key + SRC_WORD + word]!;
        dst[row * 4 + word] = keys[key + DST_WORD + word]!;
      }
      bytes[row * 2] = counters[row * 4]!;
      bytes[row * 2 + 1] = counters[row * 4 + 1]!;
      packets[row * 2] = counters[row * 4 + 2]!;
      packets[row * 2 + 1] = counters[row * 4 + 3]!;
    }
    rows.tcpFlags.set(this.tcpFlags.subarray(from, to));
    rows.firstSeen.set(this.firstSeen.subarray(from, to));
    rows.lastSeen.set(this.lastSeen.subarray(from, to));
    return { ...rows, nat: this.translations.columns(from, to) };
  }

  #grow(): void {
    const { capacity } = this.index;
    this.counters = growColumn(this.counters, capacity * COUNTER_WORDS);
    this.firstSeen = growColumn(this.firstSeen, capacity);
    this.lastSeen = growColumn(this.lastSeen, capacity);
    this.tcpFlags = growColumn(this.tcpFlags, capacity);
    this.firstEnd = growColumn(this.firstEnd, capacity);
    this.#changed = growColumn(this.#changed, capacity);
    this.#isChanged = growColumn(this.#isChanged, capacity);
  }
}

function kindOf(exporter: number, protocol: number, version: number): number {
  return ((exporter << 16) | (protocol << 8) | version) >>> 0;
}

/** Adds to a 64-bit counter, which saturates at its maximum. */
function addCounter(counters: Uint32Array, at: number, low: number, high: number): void {
  const sumLow = counters[at]! + low;
  const sumHigh = counters[at + 1]! + high + (sumLow > WORD_MAX ? 1 : 0);
  const full = sumHigh > WORD_MAX;
  counters[at] = full ? WORD_MAX : sumLow;
  counters[at + 1] = full ? WORD_MAX : sumHigh;
}
