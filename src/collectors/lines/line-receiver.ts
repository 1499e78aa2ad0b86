import { randomUUID } from "node:crypto";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import { endingProcess, Thread } from "../../lib/thread.ts";
import { startOfDay } from "../../lib/time.ts";
import type { EventDraft } from "../../model/event.ts";
import { fromColumns } from "../formats/event-draft.ts";
import type { FormatDescriptions } from "../formats/line-formats.ts";
import { REFUSAL_REASONS, type ParsedFlow } from "../formats/reading.ts";
import { CollectTally, type LineReceiverStatus } from "./line-status.ts";
import { readTlsFiles, type TlsSettings } from "./tls-files.ts";
import type { PackedBatch, LineReceiverThreadApi, LineReceiverThreadData } from "./line-receiver-thread.ts";
import { statusMetrics } from "../../lib/status-metrics.ts";

// Receives lines from devices. A separate thread reads them; this side pulls its batches and stores a few at a time. While
// the store accepts none, the thread stops reading streams and files, and datagrams are dropped and counted.

/** Batches in flight to the store. */
const BATCHES_MAX = 16;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5000;
/** Longest wait at a stop for a store that accepts nothing. */
const CLOSE_MS_MAX = 8000;
const CHECKPOINT_FILE = join("collectors", "eve-file.json");

export interface LineReceiverSettings extends TlsSettings {
  readonly ports: LineReceiverThreadData["ports"];
  readonly addresses: readonly string[];
  readonly allowedSenders: readonly string[];
  readonly eveSocket: string | null;
  readonly eveFile: string | null;
  readonly linesPerSecondMax: number;
  readonly lineBytesMax: number;
  readonly connectionsMax: number;
  readonly connectionsPerSenderMax: number;
  readonly unparsed: boolean;
}

export interface LineReceiverOptions {
  readonly settings: LineReceiverSettings;
  readonly dataDir: string;
  readonly platform: string;
  readonly timezone: string;
  readonly formats: FormatDescriptions;
  readonly registry: Registry;
  readonly log: Logger;
  /** Stores events. The token makes it idempotent. A rejected call is retried, with the same `attemptToken`. */
  readonly collect: (
    drafts: readonly EventDraft[],
    token?: string,
    atMs?: number,
    attemptToken?: string,
  ) => Promise<unknown>;
  /** Adds flows that a sender reported. */
  readonly addFlows: (flows: readonly ParsedFlow[], sender: string) => Promise<unknown>;
}

export interface LineReceiver {
  /** Lines are read with these formats from now on. */
  useFormats(formats: FormatDescriptions): Promise<void>;
  status(): Promise<LineReceiverStatus>;
  /** Stops receiving, stores the lines already read, releases everything. */
  close(): Promise<void>;
}

/** Rejects with a ListenFailure if a port, socket or file cannot be opened. */
export async function openLineReceiver(options: LineReceiverOptions): Promise<LineReceiver> {
  if (!hasInputs(options.settings)) return closedLineReceiver(options.registry);
  const receiver = new ThreadedLineReceiver(options);
  await receiver.open();
  return receiver;
}

class ThreadedLineReceiver implements LineReceiver {
  readonly #options: LineReceiverOptions;
  readonly #thread: Thread<LineReceiverThreadApi>;
  readonly #stop = new AbortController();
  /** Batches are numbered from the start of the service. */
  readonly #run = randomUUID();
  #storing: Promise<unknown> = Promise.resolve();
  #isOpen = false;
  #lost = 0;

  constructor(options: LineReceiverOptions) {
    this.#options = options;
    const { settings, dataDir, platform, timezone, formats } = options;
    const { ports, addresses, allowedSenders, eveSocket, eveFile } = settings;
    const { linesPerSecondMax, lineBytesMax, connectionsMax, connectionsPerSenderMax } = settings;
    const data: LineReceiverThreadData = {
      ports,
      addresses,
      allowedSenders,
      tls: settings.ports.syslog_tls === null ? null : readTlsFiles(settings),
      eveSocket,
      eveFile: eveFile === null ? null : { path: resolve(eveFile), checkpointPath: join(dataDir, CHECKPOINT_FILE) },
      linesPerSecondMax,
      lineBytesMax,
      connectionsMax,
      connectionsPerSenderMax,
      reader: { platform, timezone, keepsUnparsed: settings.unparsed },
      formats,
    };
    this.#thread = new Thread(
      new URL("./line-receiver-thread.ts", import.meta.url),
      data,
      endingProcess("the line receiver thread"),
    );
    registerMetrics(options.registry, () => (this.#isOpen ? this.status() : undefined));
  }

  async open(): Promise<void> {
    this.#storing = Promise.all([...Array.from({ length: BATCHES_MAX }, () => this.#storeAll()), this.#logWarnings()]);
    try {
      await this.#thread.call("start");
      this.#isOpen = true;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async #storeAll(): Promise<void> {
    for (;;) {
      const batch = await this.#thread.call("take");
      if (!batch) return;
      if (await this.#store(batch)) await this.#thread.call("stored", batch.id);
    }
  }

  /** Retries until the batch is stored. Returns false if the service has to stop first. */
  async #store(batch: PackedBatch): Promise<boolean> {
    const { drafts, flows, token } = batch;
    const { addFlows, log } = this.#options;
    const flowsLeft = [...flows];
    const daysLeft = token === null ? new Set(Array.from(drafts.timesMs, startOfDay)) : new Set([undefined]);
    for (let waitMs = RETRY_MS_MIN; ; waitMs = Math.min(2 * waitMs, RETRY_MS_MAX)) {
      try {
        while (flowsLeft.length > 0) {
          await addFlows(flowsLeft[0]!.flows, flowsLeft[0]!.sender);
          flowsLeft.shift();
        }
        await this.#collect(batch, daysLeft);
        return true;
      } catch (error) {
        const events = drafts.timesMs.length;
        if (this.#stop.signal.aborted) {
          this.#lost += token === null ? events : 0;
          return false;
        }
        log.warn({ err: error, events }, "collected events not stored; retrying");
        await sleep(waitMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
  }

  /**
   * Stores a batch day by day, so that a retry covers the days that are not stored yet. With a token the store separates the days
   * itself. Unpacked events are not retained during the call, which saves the garbage collector from copying them.
   */
  async #collect({ id, drafts, token, atMs }: PackedBatch, daysLeft: Set<number | undefined>): Promise<void> {
    for (const day of daysLeft) {
      const attemptToken = `lines ${this.#run} ${id} ${day}`;
      await this.#options.collect(fromColumns(drafts, day), token ?? undefined, atMs, attemptToken);
      daysLeft.delete(day);
    }
  }

  async #logWarnings(): Promise<void> {
    for (let warning; (warning = await this.#thread.call("nextWarning")) !== null;) this.#options.log.warn(warning);
  }

  async useFormats(formats: FormatDescriptions): Promise<void> {
    if (this.#isOpen) await this.#thread.call("useFormats", formats);
  }

  status(): Promise<LineReceiverStatus> {
    return this.#thread.call("status");
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    const giveUp = setTimeout(() => this.#stop.abort(), CLOSE_MS_MAX);
    const gaveUp = new Promise<void>((resolve) => {
      // Lets pending retries notice the abort.
      this.#stop.signal.addEventListener("abort", () => setTimeout(resolve, 2 * RETRY_MS_MIN).unref());
    });
    const stopped = Promise.all([this.#thread.call("stop"), this.#storing]);
    stopped.catch(() => undefined);
    await Promise.race([stopped, gaveUp]);
    clearTimeout(giveUp);
    if (this.#stop.signal.aborted)
      this.#options.log.error({ events: this.#lost }, "collected events lost: the store accepted none before the stop");
    this.#storing.catch(() => undefined);
    await this.#thread.end();
  }
}

/** True if any port, socket or file is configured. */
function hasInputs({ ports, eveSocket, eveFile }: LineReceiverSettings): boolean {
  return Object.values(ports).some((port) => port !== null) || eveSocket !== null || eveFile !== null;
}

/** A receiver without inputs, which needs no thread. */
function closedLineReceiver(registry: Registry): LineReceiver {
  const status = async () => ({
    listeners: [],
    senders: [],
    total: new CollectTally().counts(),
    queued: 0,
    file: null,
    formats: {},
  });
  registerMetrics(registry, status);
  return { status, useFormats: () => Promise.resolve(), close: () => Promise.resolve() };
}

function registerMetrics(registry: Registry, getStatus: () => Promise<LineReceiverStatus> | undefined): void {
  const { read, total, level } = statusMetrics(registry, getStatus);
  total("tocsin_collect_lines_total", "lines received by syslog and EVE", (status) => status.total.lines);
  total("tocsin_collect_events_total", "events read from received lines", (status) => status.total.events);
  total("tocsin_collect_flows_total", "flow records read from received lines", (status) => status.total.flows);
  total(
    "tocsin_collect_nothing_total",
    "lines that were understood but contain nothing new",
    (status) => status.total.nothing,
  );
  total("tocsin_collect_unparsed_total", "received lines that no format understood", (status) => status.total.unparsed);
  total(
    "tocsin_collect_system_drops_total",
    "datagrams that the kernel dropped before they could be read",
    ({ listeners }) => listeners.reduce((sum, { systemDrops }) => sum + (systemDrops ?? 0), 0),
  );
  level("tocsin_collect_waiting_lines", "received lines that are queued", ({ queued }) => queued);
  level("tocsin_collect_connections", "open connections of senders", ({ senders }) =>
    senders.reduce((sum, { connections }) => sum + connections, 0),
  );
  level(
    "tocsin_collect_file_lag_bytes",
    "bytes of the tailed EVE file that are not stored yet",
    ({ file }) => file?.lagBytes ?? 0,
  );
  registry.registerMetric(
    new Counter({
      name: "tocsin_collect_refused_total",
      help: "lines, messages and connections that did not become events, by reason",
      labelNames: ["reason"],
      registers: [],
      async collect() {
        const status = await read();
        this.reset();
        for (const reason of REFUSAL_REASONS) this.inc({ reason }, status?.total.refused[reason] ?? 0);
      },
    }),
  );
}
