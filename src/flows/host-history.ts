import { FLOW_WINDOW_MS } from "../model/flow.ts";
import { Contacts } from "./contacts.ts";
import { freeColumns, growColumn, KeyIndex } from "./key-index.ts";
import {
  COUNTER_WORDS,
  DST_WORD,
  KEY_WORDS,
  KIND_WORD,
  MINUTE_WORD,
  PORTS_WORD,
  SRC_WORD,
  type WindowTable,
} from "./window-table.ts";

// The traffic and the contacts of each host in each of the last minutes. Tables are merged in when they are closed. A late record
// is in a later table than the rest of its minute, so minutes are kept for as long as records may be late. Merging takes
// minima, maxima, sums and unions: the order of tables does not change the result.

export interface HostHistorySettings {
  /** How late a record may be when its table is closed, which is how long minutes are kept. */
  readonly lookbackMs: number;
  /** The limit of hosts, peers and ports over all minutes. */
  readonly entriesMax: number;
}

/** The cost of an empty minute, in entries. */
export const MINUTE_ENTRIES = 64;
/** Minutes kept beyond the look-back, for intervals that begin a minute earlier and for tables closed out of order. */
const SLACK_MINUTES = 4;
const ADDRESS_WORDS = 4;
const CAPACITY_MIN = 16;
const WORD = 2 ** 32;

const TCP = 6;
const UDP = 17;
const ICMP = 1;
const ICMPV6 = 58;
const SYN = 2;
const ACK = 16;
const ICMP_REQUESTS = new Set([8, 13, 15, 17]);
const ICMPV6_ECHO_REQUEST = 128;

/** The figures of the last summary of a host and minute. */
export interface LastSummary {
  readonly peers: number;
  readonly ports: number;
  readonly bytes: number;
  readonly revision: number;
}

/** One minute, with its hosts indexed in the order in which they were first seen. */
export class MinuteHosts {
  readonly minute: number;
  readonly hosts: KeyIndex;
  readonly peers: Contacts;
  readonly ports: Contacts;
  bytes: Float64Array;
  packets: Float64Array;
  flows: Uint32Array;
  /** The row with the most bytes: destination, ports, and exporter with protocol and version. */
  topBytes: Float64Array;
  topDst: Uint32Array;
  topPorts: Uint32Array;
  topKind: Uint32Array;
  readonly topExporter: Uint8Array[] = [];
  readonly lastSummaries = new Map<number, LastSummary>();
  /** Hosts that the last table changed. */
  readonly touched: number[] = [];
  #isTouched: Uint8Array;

  constructor(minute: number, rows: number) {
    this.minute = minute;
    this.hosts = new KeyIndex(ADDRESS_WORDS, Math.max(CAPACITY_MIN, rows >> 4));
    this.peers = new Contacts(ADDRESS_WORDS, Math.max(CAPACITY_MIN, rows >> 2));
    this.ports = new Contacts(1);
    const { capacity } = this.hosts;
    this.bytes = new Float64Array(capacity);
    this.packets = new Float64Array(capacity);
    this.flows = new Uint32Array(capacity);
    this.topBytes = new Float64Array(capacity);
    this.topDst = new Uint32Array(capacity * ADDRESS_WORDS);
    this.topPorts = new Uint32Array(capacity);
    this.topKind = new Uint32Array(capacity);
    this.#isTouched = new Uint8Array(capacity);
  }

  get entries(): number {
    return this.hosts.count + this.peers.index.count + this.ports.index.count;
  }

  /** The index of another minute's host in this one; -1 if it sent nothing. */
  findHost(other: MinuteHosts, host: number): number {
    const { lookupKey } = this.hosts;
    for (let word = 0; word < ADDRESS_WORDS; word++) lookupKey[word] = other.hosts.keys[host * ADDRESS_WORDS + word]!;
    return this.hosts.find(0);
  }

  /** Adds a row with traffic. Returns false if it did not fit in full. */
  add(table: WindowTable, row: number, hasRoom: boolean): boolean {
    const { keys } = table.index;
    const key = row * KEY_WORDS;
    for (let word = 0; word < ADDRESS_WORDS; word++) this.hosts.lookupKey[word] = keys[key + SRC_WORD + word]!;
    const host = this.hosts.find(hasRoom ? Number.MAX_SAFE_INTEGER : 0);
    if (host < 0) return false;
    if (host >= this.bytes.length) this.#grow();
    if (this.#isTouched[host] === 0) {
      this.#isTouched[host] = 1;
      this.touched.push(host);
    }
    const bytes = counterAt(table, row, 0);
    this.bytes[host]! += bytes;
    this.packets[host]! += counterAt(table, row, 2);
    this.flows[host]!++;
    this.#addTop(table, row, host, bytes);
    if (!isInitiator(table, row)) return true;
    const startMs = this.minute * FLOW_WINDOW_MS;
    const lastMs = table.lastSeen[row]! - startMs;
    const firstMs = table.firstEnd[row] === 0 ? lastMs : table.firstEnd[row]! - 1;
    const { lookupKey } = this.peers.index;
    for (let word = 0; word < ADDRESS_WORDS; word++) lookupKey[1 + word] = keys[key + DST_WORD + word]!;
    const peerFits = this.peers.add(host, firstMs, lastMs, hasRoom);
    const protocol = (keys[key + KIND_WORD]! >>> 8) & 0xff;
    if (protocol !== TCP && protocol !== UDP) return peerFits;
    this.ports.index.lookupKey[1] = keys[key + PORTS_WORD]! & 0xffff;
    return this.ports.add(host, firstMs, lastMs, hasRoom) && peerFits;
  }

  /** Updates the host's largest tuple. Its rows from different tables are added up only while it is the largest. */
  #addTop(table: WindowTable, row: number, host: number, bytes: number): void {
    const { keys } = table.index;
    const key = row * KEY_WORDS;
    const isFirst = this.flows[host] === 1;
    const order = isFirst ? 0 : this.#compareTop(keys, key, host);
    if (!isFirst && order === 0) {
      this.topBytes[host]! += bytes;
      return;
    }
    const most = this.topBytes[host]!;
    // Ties are broken by address and ports, so that the order of rows does not matter.
    if (!isFirst && (bytes < most || (bytes === most && order > 0))) return;
    this.topBytes[host] = bytes;
    this.topPorts[host] = keys[key + PORTS_WORD]!;
    this.topKind[host] = keys[key + KIND_WORD]!;
    for (let word = 0; word < ADDRESS_WORDS; word++) {
      this.topDst[host * ADDRESS_WORDS + word] = keys[key + DST_WORD + word]!;
    }
    this.topExporter[host] = table.exporters.get(keys[key + KIND_WORD]! >>> 16)!;
  }

  #compareTop(keys: Uint32Array, key: number, host: number): number {
    for (let word = 0; word < ADDRESS_WORDS; word++) {
      const difference = keys[key + DST_WORD + word]! - this.topDst[host * ADDRESS_WORDS + word]!;
      if (difference !== 0) return difference;
    }
    return keys[key + PORTS_WORD]! - this.topPorts[host]! || keys[key + KIND_WORD]! - this.topKind[host]!;
  }

  clearTouched(): void {
    for (const host of this.touched) this.#isTouched[host] = 0;
    this.touched.length = 0;
  }

  /** Frees the memory at once. Nothing may be used any more. */
  free(): void {
    this.hosts.free();
    this.peers.free();
    this.ports.free();
    freeColumns(this.bytes, this.packets, this.flows, this.topBytes, this.topDst, this.topPorts, this.topKind);
    freeColumns(this.#isTouched);
  }

  #grow(): void {
    const { capacity } = this.hosts;
    this.bytes = growColumn(this.bytes, capacity);
    this.packets = growColumn(this.packets, capacity);
    this.flows = growColumn(this.flows, capacity);
    this.topBytes = growColumn(this.topBytes, capacity);
    this.topDst = growColumn(this.topDst, capacity * ADDRESS_WORDS);
    this.topPorts = growColumn(this.topPorts, capacity);
    this.topKind = growColumn(this.topKind, capacity);
    this.#isTouched = growColumn(this.#isTouched, capacity);
  }
}

export class HostHistory {
  /** Rows that no summary counts in full: their minute was evicted, or the limit was reached. */
  uncountedRows = 0;
  readonly #settings: HostHistorySettings;
  readonly #minutes = new Map<number, MinuteHosts>();
  #entries = 0;
  #newest = 0;
  /** Earlier minutes are not kept. */
  #oldest = 0;
  /** The earliest minute with data. */
  #first = Infinity;

  constructor(settings: HostHistorySettings) {
    this.#settings = settings;
  }

  get entries(): number {
    return this.#entries;
  }

  /** The earliest minute that is kept. */
  get oldest(): number {
    return this.#oldest;
  }

  minute(minute: number): MinuteHosts | undefined {
    return this.#minutes.get(minute);
  }

  /** Merges a closed table; returns the minutes that it changed. */
  merge(table: WindowTable, nowMs: number): readonly MinuteHosts[] {
    const { keys } = table.index;
    for (const minute of this.#minutes.values()) minute.clearTouched();
    // A clock that is ahead must not evict minutes that others still add to.
    this.#newest = Math.max(this.#newest, Math.min(table.minute, Math.floor(nowMs / FLOW_WINDOW_MS)));
    this.#evictBefore(this.#newest - Math.ceil(this.#settings.lookbackMs / FLOW_WINDOW_MS) - SLACK_MINUTES);
    let minute: MinuteHosts | undefined;
    for (let row = 0; row < table.count; row++) {
      if (!hasTraffic(table, row) || !hasSource(keys, row)) continue;
      const number = keys[row * KEY_WORDS + MINUTE_WORD]!;
      // Making room for one minute may evict another.
      if (minute?.minute !== number || number < this.#oldest) minute = this.#minuteFor(number, table);
      if (!minute) {
        this.uncountedRows++;
        continue;
      }
      const hasRoom = this.#makeRoom(number);
      const before = minute.entries;
      if (!minute.add(table, row, hasRoom)) this.uncountedRows++;
      this.#entries += minute.entries - before;
    }
    return [...this.#minutes.values()].filter(({ touched }) => touched.length > 0);
  }

  #minuteFor(number: number, table: WindowTable): MinuteHosts | undefined {
    const known = this.#minutes.get(number);
    if (known || number < this.#oldest || !this.#makeRoom(number, MINUTE_ENTRIES)) return known;
    const made = new MinuteHosts(number, number === table.minute ? table.count : 0);
    this.#minutes.set(number, made);
    this.#first = Math.min(this.#first, number);
    this.#entries += MINUTE_ENTRIES;
    return made;
  }

  /** Evicts the oldest minutes, but none in favour of an older one. A row takes at most three entries. */
  #makeRoom(forMinute: number, entries = 3): boolean {
    while (this.#entries + entries > this.#settings.entriesMax) {
      if (this.#first >= forMinute) return false;
      this.#evictBefore(this.#first + 1);
    }
    return true;
  }

  #evictBefore(oldest: number): void {
    if (oldest <= this.#oldest) return;
    this.#oldest = oldest;
    for (const [number, minute] of this.#minutes) {
      if (number >= oldest) continue;
      this.#minutes.delete(number);
      this.#entries -= minute.entries + MINUTE_ENTRIES;
      minute.free();
    }
    this.#first = Math.min(...this.#minutes.keys());
  }
}

function counterAt(table: WindowTable, row: number, word: number): number {
  const at = row * COUNTER_WORDS + word;
  return table.counters[at + 1]! * WORD + table.counters[at]!;
}

/** True if the row has packets or bytes; exporters may leave out either. */
function hasTraffic(table: WindowTable, row: number): boolean {
  const { counters } = table;
  const at = row * COUNTER_WORDS;
  return (counters[at]! | counters[at + 1]! | counters[at + 2]! | counters[at + 3]!) !== 0;
}

function hasSource(keys: Uint32Array, row: number): boolean {
  const at = row * KEY_WORDS + SRC_WORD;
  return (keys[at]! | keys[at + 1]! | keys[at + 2]! | keys[at + 3]!) !== 0;
}

/** True if the source initiated the flow: to a port not above its own, as an ICMP request, or as an unanswered SYN. */
function isInitiator(table: WindowTable, row: number): boolean {
  const { keys } = table.index;
  const protocol = (keys[row * KEY_WORDS + KIND_WORD]! >>> 8) & 0xff;
  const ports = keys[row * KEY_WORDS + PORTS_WORD]!;
  const [src, dst] = [ports >>> 16, ports & 0xffff];
  if (protocol === ICMP) return ICMP_REQUESTS.has(dst >> 8);
  if (protocol === ICMPV6) return dst >> 8 === ICMPV6_ECHO_REQUEST;
  return dst <= src || (protocol === TCP && (table.tcpFlags[row]! & (SYN | ACK)) === SYN);
}
