import { FLOW_WINDOW_MS } from "../model/flow.ts";
import { Contacts } from "./contacts.ts";
import { grown, KeyIndex } from "./key-index.ts";
import {
  COUNTER_WORDS,
  DST_WORD,
  KEY_WORDS,
  KIND_WORD,
  MINUTE_WORD,
  PORTS_WORD,
  SRC_WORD,
  type FlowTable,
} from "./table.ts";

// What each host sent in each of the last minutes, and to whom. Tables are merged in as they are closed. A late record
// is in a later table than the rest of its minute, so minutes are kept for as long as records may be late. Merging
// takes minima, maxima, sums and unions: the order of tables does not change the outcome.

export interface HistorySettings {
  /** How late a record may be when its table is closed: minutes are kept for so long. */
  readonly reachMs: number;
  /** Hosts, peers and ports of all minutes together. */
  readonly entriesMax: number;
}

/** What an empty minute costs, in entries. */
export const MINUTE_ENTRIES = 64;
/** Minutes kept beyond the reach: for the intervals that begin a minute earlier, and for tables closed out of order. */
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

/** What the last summary of a host and minute said. */
export interface Told {
  readonly peers: number;
  readonly ports: number;
  readonly bytes: number;
  readonly revision: number;
}

/** One minute, with its hosts numbered in the order in which they were first seen. */
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
  readonly told = new Map<number, Told>();
  /** Hosts that the last table added to. */
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

  /** The number of the host that another minute has; -1 where it sent nothing in this one. */
  hostLike(other: MinuteHosts, host: number): number {
    const { wanted } = this.hosts;
    for (let word = 0; word < ADDRESS_WORDS; word++) wanted[word] = other.hosts.keys[host * ADDRESS_WORDS + word]!;
    return this.hosts.find(0);
  }

  /** Adds a row that carried traffic. False where some of it found no room. */
  add(table: FlowTable, row: number, hasRoom: boolean): boolean {
    const { keys } = table.index;
    const key = row * KEY_WORDS;
    for (let word = 0; word < ADDRESS_WORDS; word++) this.hosts.wanted[word] = keys[key + SRC_WORD + word]!;
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
    if (!turnedTo(table, row)) return true;
    const startMs = this.minute * FLOW_WINDOW_MS;
    const lastMs = table.lastSeen[row]! - startMs;
    const firstMs = table.firstEnd[row] === 0 ? lastMs : table.firstEnd[row]! - 1;
    const { wanted } = this.peers.index;
    for (let word = 0; word < ADDRESS_WORDS; word++) wanted[1 + word] = keys[key + DST_WORD + word]!;
    const peerFits = this.peers.add(host, firstMs, lastMs, hasRoom);
    const protocol = (keys[key + KIND_WORD]! >>> 8) & 0xff;
    if (protocol !== TCP && protocol !== UDP) return peerFits;
    this.ports.index.wanted[1] = keys[key + PORTS_WORD]! & 0xffff;
    return this.ports.add(host, firstMs, lastMs, hasRoom) && peerFits;
  }

  /** Rows of one tuple that came in different tables are added up only while the tuple is the host's largest. */
  #addTop(table: FlowTable, row: number, host: number, bytes: number): void {
    const { keys } = table.index;
    const key = row * KEY_WORDS;
    const isFirst = this.flows[host] === 1;
    const order = isFirst ? 0 : this.#compareTop(keys, key, host);
    if (!isFirst && order === 0) {
      this.topBytes[host]! += bytes;
      return;
    }
    const most = this.topBytes[host]!;
    // Ties go by address and ports, so that the order of rows decides nothing.
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

  #grow(): void {
    const { capacity } = this.hosts;
    this.bytes = grown(this.bytes, capacity);
    this.packets = grown(this.packets, capacity);
    this.flows = grown(this.flows, capacity);
    this.topBytes = grown(this.topBytes, capacity);
    this.topDst = grown(this.topDst, capacity * ADDRESS_WORDS);
    this.topPorts = grown(this.topPorts, capacity);
    this.topKind = grown(this.topKind, capacity);
    this.#isTouched = grown(this.#isTouched, capacity);
  }
}

export class HostHistory {
  /** Rows that no summary counts, or not fully: their minute is no longer kept, or there was no room. */
  uncountedRows = 0;
  readonly #settings: HistorySettings;
  readonly #minutes = new Map<number, MinuteHosts>();
  #entries = 0;
  #newest = 0;
  /** Minutes before this one are not kept. */
  #oldest = 0;
  /** The first minute that there is. */
  #first = Infinity;

  constructor(settings: HistorySettings) {
    this.#settings = settings;
  }

  get entries(): number {
    return this.#entries;
  }

  /** The first minute that is still kept. */
  get oldest(): number {
    return this.#oldest;
  }

  minute(minute: number): MinuteHosts | undefined {
    return this.#minutes.get(minute);
  }

  /** Adds a closed table; gives the minutes that it added to. */
  merge(table: FlowTable, nowMs: number): readonly MinuteHosts[] {
    const { keys } = table.index;
    for (const minute of this.#minutes.values()) minute.clearTouched();
    // A clock that is ahead must not evict what others still add to.
    this.#newest = Math.max(this.#newest, Math.min(table.minute, Math.floor(nowMs / FLOW_WINDOW_MS)));
    this.#evictBefore(this.#newest - Math.ceil(this.#settings.reachMs / FLOW_WINDOW_MS) - SLACK_MINUTES);
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

  #minuteFor(number: number, table: FlowTable): MinuteHosts | undefined {
    const known = this.#minutes.get(number);
    if (known || number < this.#oldest || !this.#makeRoom(number, MINUTE_ENTRIES)) return known;
    const made = new MinuteHosts(number, number === table.minute ? table.count : 0);
    this.#minutes.set(number, made);
    this.#first = Math.min(this.#first, number);
    this.#entries += MINUTE_ENTRIES;
    return made;
  }

  /** Evicts the oldest minutes, but none for the sake of an older one. A row takes at most three entries. */
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
    for (const [number, { entries }] of this.#minutes) {
      if (number >= oldest) continue;
      this.#minutes.delete(number);
      this.#entries -= entries + MINUTE_ENTRIES;
    }
    this.#first = Math.min(...this.#minutes.keys());
  }
}

function counterAt(table: FlowTable, row: number, word: number): number {
  const at = row * COUNTER_WORDS + word;
  return table.counters[at + 1]! * WORD + table.counters[at]!;
}

/** An exporter may leave out the packets or the bytes; a row with neither says that nothing was sent. */
function hasTraffic(table: FlowTable, row: number): boolean {
  const { counters } = table;
  const at = row * COUNTER_WORDS;
  return (counters[at]! | counters[at + 1]! | counters[at + 2]! | counters[at + 3]!) !== 0;
}

function hasSource(keys: Uint32Array, row: number): boolean {
  const at = row * KEY_WORDS + SRC_WORD;
  return (keys[at]! | keys[at + 1]! | keys[at + 2]! | keys[at + 3]!) !== 0;
}

/** Whether the source began it: to a port that is not above its own, a request, or a connection that was never answered. */
function turnedTo(table: FlowTable, row: number): boolean {
  const { keys } = table.index;
  const protocol = (keys[row * KEY_WORDS + KIND_WORD]! >>> 8) & 0xff;
  const ports = keys[row * KEY_WORDS + PORTS_WORD]!;
  const [src, dst] = [ports >>> 16, ports & 0xffff];
  if (protocol === ICMP) return ICMP_REQUESTS.has(dst >> 8);
  if (protocol === ICMPV6) return dst >> 8 === ICMPV6_ECHO_REQUEST;
  return dst <= src || (protocol === TCP && (table.tcpFlags[row]! & (SYN | ACK)) === SYN);
}
