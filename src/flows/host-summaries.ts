import type { WindowsStatus } from "../collectors/flows/flow-status.ts";
import { formatAddress } from "../lib/ip.ts";
import { formatTime } from "../lib/time.ts";
import { FLOW_WINDOW_MS } from "../model/flow.ts";
import { sourceName, type EventDraft } from "../model/event.ts";
import { HostHistory, type HostHistorySettings, type MinuteHosts } from "./host-history.ts";
import type { WindowTable } from "./window-table.ts";

// Events that summarise the traffic of each busy host in a minute, so that rules on port scans, sweeps and exfiltration work on
// flows alone. Only peers and ports that the host itself contacted count, since a server's answers would look like a scan. They
// are counted over any 60 seconds that end in the minute, so a scan across its boundary counts in full. Late records cause
// another summary of the same host and minute, with all data up to then.

export interface SummarySettings {
  /** A host gets a summary once it reaches any of these. */
  readonly peersMin: number;
  readonly portsMin: number;
  readonly bytesMin: number;
}

/** Summaries of one closed table; those with the most peers and ports come first. */
const SUMMARIES_MAX = 500;

export interface SummaryEvent {
  readonly draft: EventDraft;
  /** Deduplicates the event after a crash. */
  readonly idempotencyToken: string;
}

export type SummaryCounts = Pick<WindowsStatus, "summaryEntries" | "uncountedRows" | "hostsLeft">;

export const NO_SUMMARIES: SummaryCounts = { summaryEntries: 0, uncountedRows: 0, hostsLeft: 0 };

interface BusyHost {
  readonly minute: MinuteHosts;
  readonly host: number;
  readonly peers: number;
  readonly ports: number;
  readonly bytes: number;
}

export class HostSummaries {
  readonly #settings: SummarySettings;
  readonly #platform: string;
  readonly #history: HostHistory;
  #hostsLeft = 0;

  constructor(settings: SummarySettings, history: HostHistorySettings, platform: string) {
    this.#settings = settings;
    this.#platform = platform;
    this.#history = new HostHistory(history);
  }

  get counts(): SummaryCounts {
    const { entries, uncountedRows } = this.#history;
    return { summaryEntries: entries, uncountedRows, hostsLeft: this.#hostsLeft };
  }

  /** The earliest minute that summaries still need. */
  get oldestMinute(): number {
    return this.#history.oldest;
  }

  /** Adds a closed table; returns the summaries that it causes, and the number of hosts without one. */
  summarise(table: WindowTable, nowMs: number): { events: SummaryEvent[]; left: number } {
    const busy = this.#busyHosts(this.#history.merge(table, nowMs)).sort(
      (one, other) => other.peers + other.ports - (one.peers + one.ports) || other.bytes - one.bytes,
    );
    const events = busy.slice(0, SUMMARIES_MAX).map((host) => this.#eventOf(table, host, this.#noteSummary(host)));
    const left = busy.length - events.length;
    this.#hostsLeft += left;
    return { events, left };
  }

  /** Adds a table of an earlier run. Its summaries were stored before its rows, so it causes no new ones. */
  restore(table: WindowTable, nowMs: number): void {
    for (const host of this.#busyHosts(this.#history.merge(table, nowMs))) this.#noteSummary(host);
  }

  #noteSummary({ minute, host, peers, ports, bytes }: BusyHost): number {
    const revision = (minute.lastSummaries.get(host)?.revision ?? 0) + 1;
    minute.lastSummaries.set(host, { peers, ports, bytes, revision });
    return revision;
  }

  /** Busy hosts whose figures have grown since their last summary of the minute. */
  #busyHosts(changed: readonly MinuteHosts[]): BusyHost[] {
    const grown: BusyHost[] = [];
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
        const hostNext = next?.findHost(minute, host) ?? -1;
        if (hostNext >= 0) consider(next!, hostNext);
      }
    }
    return grown;
  }

  #busyOf(minute: MinuteHosts, host: number): BusyHost | undefined {
    const { peersMin, portsMin, bytesMin } = this.#settings;
    const bytes = minute.bytes[host]!;
    const before = this.#history.minute(minute.minute - 1);
    const hostBefore = before?.findHost(minute, host) ?? -1;
    let [peers, ports] = [minute.peers.countOf(host), minute.ports.countOf(host)];
    if (before && hostBefore >= 0) {
      // Most hosts stay below the thresholds even with both minutes together.
      const peersMax = peers + before.peers.countOf(hostBefore);
      const portsMax = ports + before.ports.countOf(hostBefore);
      if (peersMax < peersMin && portsMax < portsMin && bytes < bytesMin) return undefined;
      peers = minute.peers.mostWithinMinute(host, before.peers, hostBefore);
      ports = minute.ports.mostWithinMinute(host, before.ports, hostBefore);
    }
    const last = minute.lastSummaries.get(host) ?? { peers: 0, ports: 0, bytes: 0 };
    const hasGrown =
      (peers >= peersMin && peers > last.peers) ||
      (ports >= portsMin && ports > last.ports) ||
      (bytes >= bytesMin && bytes > last.bytes);
    return hasGrown ? { minute, host, peers, ports, bytes } : undefined;
  }

  #eventOf(table: WindowTable, { minute, host, peers, ports, bytes }: BusyHost, revision: number): SummaryEvent {
    const address = addressAt(minute.hosts.keys, host);
    const startMs = minute.minute * FLOW_WINDOW_MS;
    const exporter = minute.topExporter[host]!;
    return {
      // Includes the figures: after a crash tables may be merged in another order, and the last one then has larger figures.
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
