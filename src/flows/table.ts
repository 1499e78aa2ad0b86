import { NAT_WORDS, type RecordBatch } from "../collectors/records.ts";
import { ADDRESS_BYTES, FLOW_WINDOW_MS, type FlowRows } from "../model/flow.ts";
import { emptyFlowRows } from "../model/flow-rows.ts";
import { grown, KeyIndex } from "./key-index.ts";
import { Translations } from "./translations.ts";

// The tuples of one window that is not closed yet, and of windows that were closed before their last records came.

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

/** Rows that stand for everything that found no row of its own. They may exceed the limit on rows by this many. */
const OTHER_ROWS_MAX = 4096;
const OTHER_PROTOCOL = 255;

/** Everything about a row but its key. */
interface RowState {
  readonly counters: Uint32Array;
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly tcpFlags: number;
  readonly firstEnd: number;
}

export class FlowTable {
  /** Unique over restarts: what the store knows this table's rows by. */
  readonly id: string;
  readonly minute: number;
  readonly index: KeyIndex;
  /** The addresses behind the numbers of exporters, which may come to mean another one later. */
  readonly exporters = new Map<number, Uint8Array>();
  counters: Uint32Array;
  firstSeen: Float64Array;
  lastSeen: Float64Array;
  tcpFlags: Uint16Array;
  /** When the first flow with traffic ended: milliseconds of the row's minute plus one, 0 where that is not known. */
  firstEnd: Uint16Array;
  /** What each row was translated to, as the last of its records that was translated tells it. */
  readonly translations = new Translations();
  /** Rows that changed since the journal last asked. */
  #changed: Int32Array;
  #isChanged: Uint8Array;
  #changedCount = 0;
  #otherRows = 0;

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

  /** Adds a record to the row of its tuple. False where a new row would be one too many. */
  add(batch: RecordBatch, record: number, minute: number, rowsMax: number): boolean {
    const { wanted } = this.index;
    const words = record * 4;
    wanted[MINUTE_WORD] = minute;
    wanted[KIND_WORD] = kindOf(batch.exporter[record]!, batch.protocol[record]!, batch.version[record]!);
    wanted[PORTS_WORD] = batch.ports[record]!;
    for (let word = 0; word < 4; word++) {
      wanted[SRC_WORD + word] = batch.src[words + word]!;
      wanted[DST_WORD + word] = batch.dst[words + word]!;
    }
    const row = this.index.find(rowsMax);
    if (row < 0) return false;
    this.#merge(batch, record, row);
    this.#noteEnd(batch, record, row, minute);
    if (batch.isTranslated[record] === 1) this.translations.set(row, batch.nat, record * NAT_WORDS);
    return true;
  }

  /** Adds a record to the row of all that are like it in exporter and protocol: nothing is lost but the ends. */
  addToOther(batch: RecordBatch, record: number): void {
    const { wanted } = this.index;
    const exporter = batch.exporter[record]!;
    wanted.fill(0);
    wanted[MINUTE_WORD] = this.minute;
    wanted[KIND_WORD] = kindOf(exporter, batch.protocol[record]!, batch.version[record]!);
    const before = this.count;
    let row = this.index.find(before + (this.#otherRows < OTHER_ROWS_MAX ? 1 : 0));
    if (row < 0) {
      wanted[KIND_WORD] = kindOf(exporter, OTHER_PROTOCOL, 0);
      row = this.index.find(Number.MAX_SAFE_INTEGER);
    }
    this.#otherRows += this.count - before;
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

  /** Rows that changed since this was last asked. */
  takeChanged(): Int32Array {
    const rows = this.#changed.slice(0, this.#changedCount);
    for (const row of rows) this.#isChanged[row] = 0;
    this.#changedCount = 0;
    return rows;
  }

  /** What was taken could not be kept: it counts as changed again, in the order in which rows were made. */
  giveBack(rows: Int32Array): void {
    for (const row of rows) this.#touch(row);
    this.#changed.subarray(0, this.#changedCount).sort();
  }

  /** Sets a row as a journal tells it, in the order in which rows were made. False where it cannot be one. */
  restore(row: number, key: Uint32Array, { counters, firstSeen, lastSeen, tcpFlags, firstEnd }: RowState): boolean {
    this.index.wanted.set(key);
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
    this.counters = grown(this.counters, capacity * COUNTER_WORDS);
    this.firstSeen = grown(this.firstSeen, capacity);
    this.lastSeen = grown(this.lastSeen, capacity);
    this.tcpFlags = grown(this.tcpFlags, capacity);
    this.firstEnd = grown(this.firstEnd, capacity);
    this.#changed = grown(this.#changed, capacity);
    this.#isChanged = grown(this.#isChanged, capacity);
  }
}

function kindOf(exporter: number, protocol: number, version: number): number {
  return ((exporter << 16) | (protocol << 8) | version) >>> 0;
}

/** What is more than 64 bits hold stays at their maximum. */
function addCounter(counters: Uint32Array, at: number, low: number, high: number): void {
  const sumLow = counters[at]! + low;
  const sumHigh = counters[at + 1]! + high + (sumLow > WORD_MAX ? 1 : 0);
  const full = sumHigh > WORD_MAX;
  counters[at] = full ? WORD_MAX : sumLow;
  counters[at + 1] = full ? WORD_MAX : sumHigh;
}
