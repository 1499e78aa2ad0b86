import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import type { ReadFlow } from "../collectors/reading.ts";
import { Receiver, type ReceiverSettings } from "../collectors/receiver.ts";
import { makeRing } from "../collectors/ring.ts";
import { DROP_REASONS, noDrops, type CollectorsStatus } from "../collectors/status.ts";
import { endingProcess, Thread } from "../lib/thread.ts";
import type { FlowRows } from "../model/flow.ts";
import { hasWindows, refuseNewerWindows } from "./journal.ts";
import { NO_SUMMARIES, type RaisedEvent, type SummarySettings } from "./summary.ts";
import type { WindowSettings } from "./windows.ts";
import type { FlowsThreadApi, FlowsThreadData, ThreadStatus, WindowPart } from "./worker.ts";

// From an exporter's packet to rows of closed windows. Sockets are read here; a thread of its own decodes and adds up. It is
// started by the first thing there is for it: a site without exporters has no memory to spend on it.

const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 30_000;
const JOURNAL_FOLDER = "flow-windows";
const TEMPLATES_FILE = "flow-templates";

export interface FlowsSettings {
  readonly receiver: ReceiverSettings;
  readonly windows: WindowSettings;
  readonly ringBytes: number;
  /** An exporter whose clock is further off is corrected by how far it is. */
  readonly clockSkewMaxMs: number;
  /** A crash loses at most the records of so long. */
  readonly journalMs: number;
  /** Null: no events about hosts. */
  readonly summary: SummarySettings | null;
}

export interface FlowsOptions {
  readonly settings: FlowsSettings;
  readonly dataDir: string;
  readonly platform: string;
  readonly registry: Registry;
  readonly log: Logger;
  /** Makes rows durable. The same batch again is the same rows. What rejects is tried again. */
  readonly deliver: (rows: FlowRows, batchId: string) => Promise<void>;
  /** Stores events about busy hosts; one with the same token again is the same event. */
  readonly raise: (events: readonly RaisedEvent[]) => Promise<unknown>;
  readonly now?: () => number;
}

export interface Flows {
  status(): Promise<CollectorsStatus>;
  /** Flows that someone has told of in words rather than in packets; `sender` is who. */
  add(flows: readonly ReadFlow[], sender: string): Promise<void>;
  /** Closes every open window and waits until the store has them. */
  flush(): Promise<void>;
  /** Stops receiving, stores what is there, releases everything. What the store refuses is kept for the next start. */
  close(): Promise<void>;
}

/** Throws NewerFile where a newer version has written there: to be called before anything in the data folder is touched. */
export function refuseNewerFlows(dataDir: string): void {
  refuseNewerWindows(join(dataDir, JOURNAL_FOLDER));
}

/** Rejects with a ListenFailure where a port is taken. */
export async function openFlows(options: FlowsOptions): Promise<Flows> {
  const flows = new FlowsPart(options);
  await flows.open();
  return flows;
}

/** What the thread would say before anything came. */
const nothingYet = (): ThreadStatus => ({
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

class FlowsPart implements Flows {
  readonly #options: FlowsOptions;
  readonly #ring;
  #thread: Thread<FlowsThreadApi> | undefined;
  #starting: Promise<Thread<FlowsThreadApi>> | undefined;
  #receiver: Receiver | undefined;
  #delivering: Promise<void> = Promise.resolve();
  #stopping = false;
  readonly #stop = new AbortController();

  constructor(options: FlowsOptions) {
    this.#options = options;
    this.#ring = makeRing(options.settings.ringBytes);
    this.#register(options.registry);
  }

  get #journalFolder(): string {
    return join(this.#options.dataDir, JOURNAL_FOLDER);
  }

  async open(): Promise<void> {
    const { settings, log, now = Date.now } = this.#options;
    try {
      if (hasWindows(this.#journalFolder)) await this.#started();
      this.#receiver = await Receiver.open({
        settings: settings.receiver,
        ring: this.#ring,
        now,
        log,
        wake: () => void this.#started().then((thread) => thread.call("drain")),
        meet: (address) => void this.#started().then((thread) => thread.call("meet", address)),
      });
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  #started(): Promise<Thread<FlowsThreadApi>> {
    return (this.#starting ??= this.#start());
  }

  async #start(): Promise<Thread<FlowsThreadApi>> {
    const { settings, dataDir, platform, log } = this.#options;
    const data: FlowsThreadData = {
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
    const thread = new Thread<FlowsThreadApi>(
      new URL("./worker.ts", import.meta.url),
      data,
      endingProcess("the thread of the collectors"),
    );
    this.#thread = thread;
    const { rows, troubles } = await thread.call("start");
    for (const trouble of troubles) log.error(trouble);
    if (rows > 0) log.info({ rows }, "flow windows of the last run are taken up");
    this.#delivering = this.#deliverAll(thread);
    return thread;
  }

  async #deliverAll(thread: Thread<FlowsThreadApi>): Promise<void> {
    for (;;) {
      const part = await thread.call("take");
      if (!part) return;
      const { log } = this.#options;
      for (const trouble of part.troubles) log.error(trouble);
      if (part.hostsLeft > 0)
        log.warn({ hosts: part.hostsLeft }, "more busy hosts in one window than summaries are made for");
      if (!(await this.#store(part))) return;
      await thread.call("stored");
    }
  }

  /** Tries until the store takes it. False where the service stops first: the journal has it. */
  async #store(part: WindowPart): Promise<boolean> {
    const { deliver, raise, log } = this.#options;
    for (let waitMs = RETRY_MS_MIN; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
      try {
        // Events first: repeated after a crash they are known by their tokens, whereas a stored window is not told of again.
        if (part.events.length > 0) await raise(part.events);
        await deliver(part.rows, part.batchId);
        return true;
      } catch (error) {
        log.error({ err: error, rows: part.rows.count }, "flows not stored; they are kept and tried again");
        if (this.#stopping) return false;
        await sleep(waitMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
  }

  async add(flows: readonly ReadFlow[], sender: string): Promise<void> {
    const thread = await this.#started();
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
    if (!receiver) throw new Error("the collectors are not open");
    const { ringFull, drops, ...received } = receiver.status();
    const thread = (await this.#thread?.call("status", receiver.connected())) ?? nothingYet();
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

  #register(registry: Registry): void {
    // One look for all that are read at the same time.
    let reading: Promise<CollectorsStatus> | undefined;
    const read = () => {
      if (!this.#receiver || this.#stopping) return undefined;
      return (reading ??= this.status().finally(() => (reading = undefined)));
    };
    const total = (name: string, help: string, value: (status: CollectorsStatus) => number) =>
      registry.registerMetric(
        new Counter({
          name,
          help,
          registers: [],
          async collect() {
            const status = await read();
            this.reset();
            if (status) this.inc(value(status));
          },
        }),
      );
    const level = (name: string, help: string, value: (status: CollectorsStatus) => number) =>
      registry.registerMetric(
        new Gauge({
          name,
          help,
          registers: [],
          async collect() {
            const status = await read();
            if (status) this.set(value(status));
          },
        }),
      );
    const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);
    total("tocsin_flows_packets_total", "packets of flow exporters that arrived", ({ listeners }) =>
      sum(listeners.map(({ packets }) => packets)),
    );
    total(
      "tocsin_flows_system_drops_total",
      "packets that the system dropped before they could be read",
      ({ listeners }) => sum(listeners.map(({ systemDrops }) => systemDrops ?? 0)),
    );
    total("tocsin_flows_records_total", "flow records that were decoded", ({ totals }) => totals.records);
    // A packet that was overtaken counts as lost until it comes. A counter must not fall: it waits for the next loss.
    let lost = 0;
    total("tocsin_flows_lost_total", "units that exporters numbered and that never came", ({ totals }) => {
      return (lost = Math.max(lost, totals.lost));
    });
    total("tocsin_flows_rows_total", "rows of closed windows that were stored", ({ windows }) => windows.writtenRows);
    total(
      "tocsin_flows_folded_total",
      "records added to other rows since there were too many tuples",
      ({ windows }) => {
        return windows.foldedRecords;
      },
    );
    total(
      "tocsin_flows_late_total",
      "records that came after their window was closed",
      ({ windows }) => windows.lateRecords,
    );
    total(
      "tocsin_flows_uncounted_total",
      "rows that no summary of a host counts: their minute is no longer in memory, or there was no room for them",
      ({ windows }) => windows.uncountedRows,
    );
    total(
      "tocsin_flows_hosts_left_total",
      "busy hosts that got no summary since too many were busy at once",
      ({ windows }) => windows.hostsLeft,
    );
    level(
      "tocsin_flows_host_entries",
      "hosts, peers and ports that summaries hold in memory",
      ({ windows }) => windows.summaryEntries,
    );
    total(
      "tocsin_flows_journal_failures_total",
      "times that open windows could not be written down against a crash; they are written with what comes next",
      ({ windows }) => windows.journalFailures,
    );
    level("tocsin_flows_open_tuples", "tuples in windows that are not closed yet", ({ windows }) => windows.openTuples);
    level(
      "tocsin_flows_waiting_rows",
      "rows of closed windows that are not stored yet",
      ({ windows }) => windows.waitingRows,
    );
    level(
      "tocsin_flows_ring_used_bytes",
      "bytes in the ring between receiving and decoding",
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
