import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import type { ParsedFlow } from "../collectors/formats/reading.ts";
import { openFlowReceiver, type FlowReceiver, type FlowReceiverSettings } from "../collectors/flows/flow-receiver.ts";
import { createRing } from "../collectors/flows/packet-ring.ts";
import { DROP_REASONS, noDrops, type CollectorsStatus } from "../collectors/flows/flow-status.ts";
import { endingProcess, Thread } from "../lib/thread.ts";
import type { FlowRows } from "../model/flow.ts";
import { hasWindows, refuseNewerWindows } from "./window-journal.ts";
import { NO_SUMMARIES, type SummaryEvent, type SummarySettings } from "./host-summaries.ts";
import type { FlowWindowSettings } from "./flow-windows.ts";
import type {
  FlowPipelineThreadApi,
  FlowPipelineThreadData,
  FlowThreadStatus,
  WindowPart,
} from "./flow-pipeline-thread.ts";
import { statusMetrics } from "../lib/status-metrics.ts";

// The flow pipeline, from packets to rows of closed windows. Sockets are read here; a separate thread decodes and aggregates. It
// starts with the first packet, so that it takes no memory at a site without exporters.

const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 30_000;
const JOURNAL_FOLDER = "flow-windows";
const TEMPLATES_FILE = "flow-templates";

export interface FlowPipelineSettings {
  readonly receiver: FlowReceiverSettings;
  readonly windows: FlowWindowSettings;
  readonly ringBytes: number;
  /** The times of an exporter whose clock is off by more are corrected. */
  readonly clockSkewMaxMs: number;
  /** A crash loses at most the records of this period. */
  readonly journalMs: number;
  /** Null disables summaries of busy hosts. */
  readonly summary: SummarySettings | null;
}

export interface FlowPipelineOptions {
  readonly settings: FlowPipelineSettings;
  readonly dataDir: string;
  readonly platform: string;
  readonly registry: Registry;
  readonly log: Logger;
  /** Stores rows durably; must be idempotent by batch id. A rejected call is retried. */
  readonly deliver: (rows: FlowRows, batchId: string) => Promise<void>;
  /** Stores events about busy hosts; must be idempotent by token. */
  readonly raise: (events: readonly SummaryEvent[]) => Promise<unknown>;
  readonly now?: () => number;
}

export interface FlowPipeline {
  status(): Promise<CollectorsStatus>;
  /** Adds flows from a log rather than from packets, with the address of their sender. */
  add(flows: readonly ParsedFlow[], sender: string): Promise<void>;
  /** Closes all open windows and waits until they are stored. */
  flush(): Promise<void>;
  /** Stops receiving and stores all windows. Windows that the store refuses are kept for the next start. */
  close(): Promise<void>;
}

/** Throws NewerFile if a newer version has written window files; call it before touching the data folder. */
export function refuseNewerFlowFiles(dataDir: string): void {
  refuseNewerWindows(join(dataDir, JOURNAL_FOLDER));
}

/** Rejects with a ListenFailure if a port cannot be opened. */
export async function openFlowPipeline(options: FlowPipelineOptions): Promise<FlowPipeline> {
  const flows = new ThreadedFlowPipeline(options);
  await flows.open();
  return flows;
}

/** The status before the thread has started. */
const idleStatus = (): FlowThreadStatus => ({
  exporters: [],
  drops: noDrops(),
  totals: { records: 0, lost: 0 },
  windows: {
    openTuples: 0,
    waitingRows: 0,
    writtenRows: 0,
    foldedRecords: 0,
    lateRecords: 0,
    earlyFlushes: 0,
    journalFailures: 0,
    ...NO_SUMMARIES,
  },
});

class ThreadedFlowPipeline implements FlowPipeline {
  readonly #options: FlowPipelineOptions;
  readonly #ring;
  #thread: Thread<FlowPipelineThreadApi> | undefined;
  #starting: Promise<Thread<FlowPipelineThreadApi>> | undefined;
  #receiver: FlowReceiver | undefined;
  #delivering: Promise<void> = Promise.resolve();
  #stopping = false;
  readonly #stop = new AbortController();

  constructor(options: FlowPipelineOptions) {
    this.#options = options;
    this.#ring = createRing(options.settings.ringBytes);
    this.#registerMetrics(options.registry);
  }

  get #journalFolder(): string {
    return join(this.#options.dataDir, JOURNAL_FOLDER);
  }

  async open(): Promise<void> {
    const { settings, log, now = Date.now } = this.#options;
    try {
      if (hasWindows(this.#journalFolder)) await this.#startedThread();
      this.#receiver = await openFlowReceiver({
        settings: settings.receiver,
        ring: this.#ring,
        now,
        log,
        wake: () => void this.#startedThread().then((thread) => thread.call("drain")),
        onConnection: (address) =>
          void this.#startedThread().then((thread) => thread.call("registerExporter", address)),
      });
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  #startedThread(): Promise<Thread<FlowPipelineThreadApi>> {
    return (this.#starting ??= this.#start());
  }

  async #start(): Promise<Thread<FlowPipelineThreadApi>> {
    const { settings, dataDir, platform, log } = this.#options;
    const data: FlowPipelineThreadData = {
      ring: this.#ring,
      journalFolder: this.#journalFolder,
      journalMs: settings.journalMs,
      templatesFile: join(dataDir, TEMPLATES_FILE),
      platform,
      clockSkewMaxMs: settings.clockSkewMaxMs,
      windows: settings.windows,
      summary: settings.summary,
      run: randomUUID().slice(0, 8),
    };
    const thread = new Thread<FlowPipelineThreadApi>(
      new URL("./flow-pipeline-thread.ts", import.meta.url),
      data,
      endingProcess("the flow pipeline thread"),
    );
    this.#thread = thread;
    const { rows, troubles } = await thread.call("start");
    for (const trouble of troubles) log.error(trouble);
    if (rows > 0) log.info({ rows }, "recovered flow windows of the last run");
    this.#delivering = this.#deliverAll(thread);
    return thread;
  }

  async #deliverAll(thread: Thread<FlowPipelineThreadApi>): Promise<void> {
    for (;;) {
      const part = await thread.call("take");
      if (!part) return;
      const { log } = this.#options;
      for (const trouble of part.troubles) log.error(trouble);
      if (part.hostsLeft > 0)
        log.warn({ hosts: part.hostsLeft }, "too many busy hosts in one window; some have no summary");
      if (!(await this.#store(part))) return;
      await thread.call("stored");
    }
  }

  /** Retries until the part is stored. Returns false if the service stops first: the part is in the journal. */
  async #store(part: WindowPart): Promise<boolean> {
    const { deliver, raise, log } = this.#options;
    for (let waitMs = RETRY_MS_MIN; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
      try {
        // Events first: after a crash their tokens deduplicate them, whereas a stored window is not summarised again.
        if (part.events.length > 0) await raise(part.events);
        await deliver(part.rows, part.batchId);
        return true;
      } catch (error) {
        log.error({ err: error, rows: part.rows.count }, "storing flows failed; retrying");
        if (this.#stopping) return false;
        await sleep(waitMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
  }

  async add(flows: readonly ParsedFlow[], sender: string): Promise<void> {
    const thread = await this.#startedThread();
    return thread.call("add", flows, sender);
  }

  async flush(): Promise<void> {
    const thread = await this.#starting;
    if (!thread) return;
    await thread.call("flush");
    while ((await thread.call("status", [])).windows.waitingRows > 0) await sleep(10);
  }

  async status(): Promise<CollectorsStatus> {
    const receiver = this.#receiver;
    if (!receiver) throw new Error("the flow pipeline is not open");
    const { ringFull, drops, ...received } = receiver.status();
    const thread = (await this.#thread?.call("status", receiver.connected())) ?? idleStatus();
    return {
      ...received,
      exporters: thread.exporters.map((exporter) => {
        const full = ringFull.get(exporter.address) ?? 0;
        return full === 0 ? exporter : { ...exporter, drops: { ...exporter.drops, ring_full: full } };
      }),
      drops: { ...thread.drops, ...drops },
      totals: thread.totals,
      windows: thread.windows,
    };
  }

  async close(): Promise<void> {
    await this.#receiver?.close();
    this.#stopping = true;
    this.#stop.abort();
    if (!this.#thread) return;
    await Promise.allSettled([this.#starting]);
    await this.#thread.call("stop");
    await this.#delivering;
    await this.#thread.call("end");
    await this.#thread.end();
  }

  #registerMetrics(registry: Registry): void {
    const isRunning = () => this.#receiver !== undefined && !this.#stopping;
    const { read, total, level } = statusMetrics(registry, () => (isRunning() ? this.status() : undefined));
    const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);
    total("tocsin_flows_packets_total", "packets received from flow exporters", ({ listeners }) =>
      sum(listeners.map(({ packets }) => packets)),
    );
    total("tocsin_flows_system_drops_total", "packets that the system dropped before they were read", ({ listeners }) =>
      sum(listeners.map(({ systemDrops }) => systemDrops ?? 0)),
    );
    total("tocsin_flows_records_total", "flow records decoded", ({ totals }) => totals.records);
    // A late packet counts as lost until it arrives. The counter must not fall, so it keeps its highest value.
    let lost = 0;
    total(
      "tocsin_flows_lost_total",
      "packets, flows or records missing in the exporters' sequence numbers",
      ({ totals }) => {
        return (lost = Math.max(lost, totals.lost));
      },
    );
    total("tocsin_flows_rows_total", "rows of closed windows stored", ({ windows }) => windows.writtenRows);
    total(
      "tocsin_flows_folded_total",
      "records added to overflow rows because there were too many tuples",
      ({ windows }) => {
        return windows.foldedRecords;
      },
    );
    total(
      "tocsin_flows_late_total",
      "records that arrived after their window was closed",
      ({ windows }) => windows.lateRecords,
    );
    total(
      "tocsin_flows_uncounted_total",
      "rows that no host summary counts in full: their minute was evicted, or the memory limit was reached",
      ({ windows }) => windows.uncountedRows,
    );
    total(
      "tocsin_flows_hosts_left_total",
      "busy hosts without a summary because too many were busy at once",
      ({ windows }) => windows.hostsLeft,
    );
    level(
      "tocsin_flows_host_entries",
      "hosts, peers and ports that host summaries hold in memory",
      ({ windows }) => windows.summaryEntries,
    );
    total(
      "tocsin_flows_journal_failures_total",
      "failed writes of open windows to the journal; their rows are written again with the next ones",
      ({ windows }) => windows.journalFailures,
    );
    level("tocsin_flows_open_tuples", "tuples in open windows", ({ windows }) => windows.openTuples);
    level(
      "tocsin_flows_waiting_rows",
      "rows of closed windows that are not stored yet",
      ({ windows }) => windows.waitingRows,
    );
    level(
      "tocsin_flows_ring_used_bytes",
      "bytes in the packet ring, received and not decoded yet",
      ({ ring }) => ring.usedBytes,
    );
    registry.registerMetric(
      new Counter({
        name: "tocsin_flows_dropped_total",
        help: "packets, sets or records that did not become flows, by reason",
        labelNames: ["reason"],
        registers: [],
        async collect() {
          const status = await read();
          this.reset();
          for (const reason of DROP_REASONS) this.inc({ reason }, status?.drops[reason] ?? 0);
        },
      }),
    );
  }
}
