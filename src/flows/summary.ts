import type { WindowsStatus } from "../collectors/status.ts";
import { formatAddress } from "../lib/ip.ts";
import { formatTime } from "../lib/time.ts";
import { FLOW_WINDOW_MS } from "../model/flow.ts";
import { sourceName, type EventDraft } from "../model/event.ts";
import { HostHistory, type HistorySettings, type MinuteHosts } from "./host-history.ts";
import type { FlowTable } from "./table.ts";

// What each busy host did in a minute, as an event, so that rules on port scans, sweeps and exfiltration work on flows
// alone. Peers and ports are those that the host itself turned to: what a server answers would look like a scan. They are
// counted over any 60 seconds that end in the minute, so a scan across its boundary counts as a whole. Late records
// lead to another summary of the same host and minute, with all that is known by then.

export interface SummarySettings {
  /** A host gets a summary once it reaches any of these. */
  readonly peersMin: number;
  readonly portsMin: number;
  readonly bytesMin: number;
}

/** Summaries made of one closed table, those with the most peers and ports first. */
const SUMMARIES_MAX = 500;

export interface RaisedEvent {
  readonly draft: EventDraft;
  /** The same again after a crash is the same event. */
  readonly idempotencyToken: string;
}

export type SummaryCounts = Pick<WindowsStatus, "summaryEntries" | "uncountedRows" | "hostsLeft">;

export const NO_SUMMARIES: SummaryCounts = { summaryEntries: 0, uncountedRows: 0, hostsLeft: 0 };

interface Busy {
  readonly minute: MinuteHosts;
  readonly host: number;
  readonly peers: number;
  readonly ports: number;
  readonly bytes: number;
}

export class Summaries {
  readonly #settings: SummarySettings;
  readonly #platform: string;
  readonly #history: HostHistory;
  #hostsLeft = 0;

  constructor(settings: SummarySettings, history: HistorySettings, platform: string) {
    this.#settings = settings;
    this.#platform = platform;
    this.#history = new HostHistory(history);
  }

  get counts(): SummaryCounts {
    const { entries, uncountedRows } = this.#history;
    return { summaryEntries: entries, uncountedRows, hostsLeft: this.#hostsLeft };
  }

  /** Tables of earlier minutes are of no use any more. */
  get oldestMinute(): number {
    return this.#history.oldest;
  }

  /** Adds a closed table; gives the summaries that it leads to, and how many hosts are left without one. */
  take(table: FlowTable, nowMs: number): { events: RaisedEvent[]; left: number } {
    const busy = this.#grown(this.#history.merge(table, nowMs)).sort(
      (one, other) => other.peers + other.ports - (one.peers + one.ports) || other.bytes - one.bytes,
    );
    const events = busy.slice(0, SUMMARIES_MAX).map((host) => this.#eventOf(table, host, this.#tell(host)));
    const left = busy.length - events.length;
    this.#hostsLeft += left;
    return { events, left };
  }

  /** Adds a table of an earlier run. Its rows were stored after its summaries, so there is nothing new to tell. */
  restore(table: FlowTable, nowMs: number): void {
    for (const host of this.#grown(this.#history.merge(table, nowMs))) this.#tell(host);
  }

  #tell({ minute, host, peers, ports, bytes }: Busy): number {
    const revision = (minute.told.get(host)?.revision ?? 0) + 1;
    minute.told.set(host, { peers, ports, bytes, revision });
    return revision;
  }

  /** Busy hosts that have more to tell than their last summary of the minute did. */
  #grown(changed: readonly MinuteHosts[]): Busy[] {
    const grown: Busy[] = [];
    const considered = new Map<MinuteHosts, Set<number>>();
    const consider = (minute: MinuteHosts, host: number) => {
      const busy = this.#busyOf(minute, host);
      if (!busy) return;
      const hosts = considered.get(minute) ?? new Set();
      considered.set(minute, hosts);
      if (hosts.has(host)) return;
      hosts.add(host);
      grown.push(busy);
    };
    for (const minute of changed) {
      // Intervals that end in the next minute may begin in this one.
      const next = this.#history.minute(minute.minute + 1);
      for (const host of minute.touched) {
        consider(minute, host);
        const hostNext = next?.hostLike(minute, host) ?? -1;
        if (hostNext >= 0) consider(next!, hostNext);
      }
    }
    return grown;
  }

  #busyOf(minute: MinuteHosts, host: number): Busy | undefined {
    const { peersMin, portsMin, bytesMin } = this.#settings;
    const bytes = minute.bytes[host]!;
    const before = this.#history.minute(minute.minute - 1);
    const hostBefore = before?.hostLike(minute, host) ?? -1;
    let [peers, ports] = [minute.peers.countOf(host), minute.ports.countOf(host)];
    if (before && hostBefore >= 0) {
      // Most hosts are idle enough that both minutes together are not busy.
      const peersMax = peers + before.peers.countOf(hostBefore);
      const portsMax = ports + before.ports.countOf(hostBefore);
      if (peersMax < peersMin && portsMax < portsMin && bytes < bytesMin) return undefined;
      peers = minute.peers.mostWithinMinute(host, before.peers, hostBefore);
      ports = minute.ports.mostWithinMinute(host, before.ports, hostBefore);
    }
    const told = minute.told.get(host) ?? { peers: 0, ports: 0, bytes: 0 };
    const hasGrown =
      (peers >= peersMin && peers > told.peers) ||
      (ports >= portsMin && ports > told.ports) ||
      (bytes >= bytesMin && bytes > told.bytes);
    return hasGrown ? { minute, host, peers, ports, bytes } : undefined;
  }

  #eventOf(table: FlowTable, { minute, host, peers, ports, bytes }: Busy, revision: number): RaisedEvent {
    const address = addressAt(minute.hosts.keys, host);
    const startMs = minute.minute * FLOW_WINDOW_MS;
    const exporter = minute.topExporter[host]!;
    return {
      // With the figures: after a crash tables may come in another order, and then the last one has more to tell.
      idempotencyToken: `flow_summary ${table.id} ${minute.minute} ${address} ${peers} ${ports} ${bytes}`,
      draft: {
        type: "flow_summary",
        source: sourceName(this.#platform, "network"),
        severity: "info",
        class: "network",
        timestampMs: startMs + FLOW_WINDOW_MS,
        raw: {
          src_ip: address,
          bytes,
          packets: minute.packets[host]!,
          flows: minute.flows[host]!,
          peers,
          ports,
          top_dst_ip: addressAt(minute.topDst, host),
          top_dst_port: minute.topPorts[host]! & 0xffff,
          top_bytes: minute.topBytes[host]!,
          exporter_ip: formatAddress(exporter.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)),
          window_start: formatTime(startMs),
          window_end: formatTime(startMs + FLOW_WINDOW_MS),
          revision,
        },
        enrichment: {},
      },
    };
  }
}

function addressAt(words: Uint32Array, index: number): string {
  const bytes = new Uint8Array(words.buffer, words.byteOffset + index * 16, 16);
  return formatAddress(bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n));
}
