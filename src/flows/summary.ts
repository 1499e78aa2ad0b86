import { formatAddress } from "../lib/ip.ts";
import { formatTime } from "../lib/time.ts";
import { FLOW_WINDOW_MS } from "../model/flow.ts";
import { sourceName, type EventDraft } from "../model/event.ts";
import { KeyIndex } from "./key-index.ts";
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

// What each busy host did in a window, as an event: so that rules on port scans, sweeps and exfiltration work on flows
// alone. Peers and ports are those that the host itself turned to: what a server answers would look like a scan.

export interface SummarySettings {
  /** A host is told of when it reached any of these within a window. */
  readonly peersMin: number;
  readonly portsMin: number;
  readonly bytesMin: number;
}

/** Hosts of one window that events are made for, those with the most peers and ports first. */
const SUMMARIES_MAX = 500;

export interface RaisedEvent {
  readonly draft: EventDraft;
  /** The same again after a crash is the same event. */
  readonly idempotencyToken: string;
}

const TCP = 6;
const UDP = 17;
const ICMP = 1;
const ICMPV6 = 58;
const SYN = 2;
const ACK = 16;
const ICMP_REQUESTS = new Set([8, 13, 15, 17]);
const ICMPV6_ECHO_REQUEST = 128;
const WORD = 2 ** 32;

interface Host {
  bytes: number;
  packets: number;
  flows: number;
  peers: number;
  ports: number;
  /** The row with the most bytes. */
  largest: number;
  largestBytes: number;
  exporter: number;
}

export function summarise(
  table: FlowTable,
  settings: SummarySettings,
  platform: string,
): { events: RaisedEvent[]; left: number } {
  const busy = hostsOf(table)
    .filter(({ peers, ports, bytes }) => {
      return peers >= settings.peersMin || ports >= settings.portsMin || bytes >= settings.bytesMin;
    })
    .sort((left, right) => right.peers + right.ports - (left.peers + left.ports) || right.bytes - left.bytes);
  const events = busy.slice(0, SUMMARIES_MAX).map((host) => eventOf(table, host, platform));
  return { events, left: busy.length - events.length };
}

/** Everyone who sent something in the window. */
function hostsOf(table: FlowTable): Host[] {
  const { keys } = table.index;
  const sources = new KeyIndex(4, table.count >> 3);
  const peers = new KeyIndex(5, table.count >> 1);
  const ports = new KeyIndex(2, table.count >> 1);
  const hosts: Host[] = [];
  for (let row = 0; row < table.count; row++) {
    const key = row * KEY_WORDS;
    // Late records of other windows belong to summaries that have been told.
    if (keys[key + MINUTE_WORD] !== table.minute) continue;
    for (let word = 0; word < 4; word++) sources.wanted[word] = keys[key + SRC_WORD + word]!;
    if (sources.wanted.every((word) => word === 0)) continue;
    const index = sources.find(Number.MAX_SAFE_INTEGER);
    const at = row * COUNTER_WORDS;
    const bytes = table.counters[at + 1]! * WORD + table.counters[at]!;
    const host = (hosts[index] ??= newHost(row, keys[key + KIND_WORD]! >>> 16));
    host.bytes += bytes;
    host.packets += table.counters[at + 3]! * WORD + table.counters[at + 2]!;
    host.flows++;
    if (bytes > host.largestBytes) [host.largest, host.largestBytes] = [row, bytes];
    if (!turnedTo(table, row)) continue;
    peers.wanted[0] = index;
    for (let word = 0; word < 4; word++) peers.wanted[1 + word] = keys[key + DST_WORD + word]!;
    host.peers += added(peers);
    const protocol = (keys[key + KIND_WORD]! >>> 8) & 0xff;
    if (protocol !== TCP && protocol !== UDP) continue;
    ports.wanted[0] = index;
    ports.wanted[1] = keys[key + PORTS_WORD]! & 0xffff;
    host.ports += added(ports);
  }
  return hosts;
}

function newHost(row: number, exporter: number): Host {
  return { bytes: 0, packets: 0, flows: 0, peers: 0, ports: 0, largest: row, largestBytes: -1, exporter };
}

function added(index: KeyIndex): number {
  const before = index.count;
  index.find(Number.MAX_SAFE_INTEGER);
  return index.count - before;
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

function addressAt(words: Uint32Array, at: number): string {
  const bytes = new Uint8Array(words.buffer, words.byteOffset + at * 4, 16);
  return formatAddress(bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n));
}

function eventOf(table: FlowTable, host: Host, platform: string): RaisedEvent {
  const { keys } = table.index;
  const address = addressAt(keys, host.largest * KEY_WORDS + SRC_WORD);
  const startMs = table.minute * FLOW_WINDOW_MS;
  const exporter = table.exporters.get(host.exporter)!;
  const largest = host.largest * KEY_WORDS;
  return {
    idempotencyToken: `flow_summary ${table.id} ${address}`,
    draft: {
      type: "flow_summary",
      source: sourceName(platform, "network"),
      severity: "info",
      class: "network",
      timestampMs: startMs + FLOW_WINDOW_MS,
      raw: {
        src_ip: address,
        bytes: host.bytes,
        packets: host.packets,
        flows: host.flows,
        peers: host.peers,
        ports: host.ports,
        top_dst_ip: addressAt(keys, largest + DST_WORD),
        top_dst_port: keys[largest + PORTS_WORD]! & 0xffff,
        top_bytes: host.largestBytes,
        exporter_ip: formatAddress(exporter.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)),
        window_start: formatTime(startMs),
        window_end: formatTime(startMs + FLOW_WINDOW_MS),
      },
      enrichment: {},
    },
  };
}
