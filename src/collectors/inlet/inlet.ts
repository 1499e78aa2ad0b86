import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { endingProcess, Thread } from "../../lib/thread.ts";
import { startOfDay } from "../../lib/time.ts";
import type { EventDraft } from "../../model/event.ts";
import { fromColumns, type DraftColumns } from "../draft.ts";
import { REFUSAL_REASONS, type ReadFlow } from "../reading.ts";
import { Tally, type CollectCounts, type InletStatus } from "./status.ts";
import { readTlsFiles, type TlsSettings } from "./tls-files.ts";
import type { GivenBatch, InletThreadApi, InletThreadData } from "./worker.ts";

// Lines of devices on their way to the store. A thread of its own reads them; here its batches are stored, a few at a time:
// while the store takes none, the thread reads no more from streams and files, and datagrams are dropped and counted.

/** Batches that are being stored at once. */
const BATCHES_MAX = 16;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5000;
/** How long a stop waits for a store that takes nothing. */
const CLOSE_MS_MAX = 8000;
const NOTE_FILE = join("collectors", "eve-file.json");

export interface InletSettings extends TlsSettings {
  readonly ports: InletThreadData["ports"];
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

export interface InletOptions {
  readonly settings: InletSettings;
  readonly dataDir: string;
  readonly platform: string;
  readonly timezone: string;
  readonly registry: Registry;
  readonly log: Logger;
  /** Stores events; with a token, those that are stored already are not stored again. What rejects is tried again. */
  readonly collect: (drafts: readonly EventDraft[], token?: string, atMs?: number) => Promise<unknown>;
  /** Adds flows that a sender has told of. */
  readonly addFlows: (flows: readonly ReadFlow[], sender: string) => Promise<unknown>;
}

export interface Inlet {
  status(): Promise<InletStatus>;
  /** Takes nothing more, stores what was read, releases everything. */
  close(): Promise<void>;
}

/** Rejects with a ListenFailure where something cannot be opened. */
export async function openInlet(options: InletOptions): Promise<Inlet> {
  if (!hasPlaces(options.settings)) return closedInlet(options.registry);
  const inlet = new InletPart(options);
  await inlet.open();
  return inlet;
}

class InletPart implements Inlet {
  readonly #options: InletOptions;
  readonly #thread: Thread<InletThreadApi>;
  readonly #stop = new AbortController();
  #storing: Promise<unknown> = Promise.resolve();
  #isOpen = false;
  #lost = 0;

  constructor(options: InletOptions) {
    this.#options = options;
    const { settings, dataDir, platform, timezone } = options;
    const { ports, addresses, allowedSenders, eveSocket, eveFile } = settings;
    const { linesPerSecondMax, lineBytesMax, connectionsMax, connectionsPerSenderMax } = settings;
    const data: InletThreadData = {
      ports,
      addresses,
      allowedSenders,
      tls: settings.ports.syslog_tls === null ? null : readTlsFiles(settings),
      eveSocket,
      eveFile: eveFile === null ? null : { path: resolve(eveFile), notePath: join(dataDir, NOTE_FILE) },
      linesPerSecondMax,
      lineBytesMax,
      connectionsMax,
      connectionsPerSenderMax,
      reader: { platform, timezone, keepsUnparsed: settings.unparsed },
    };
    this.#thread = new Thread(
      new URL("./worker.ts", import.meta.url),
      data,
      endingProcess("the thread that reads lines"),
    );
    registerMetrics(options.registry, () => (this.#isOpen ? this.status() : undefined));
  }

  async open(): Promise<void> {
    this.#storing = Promise.all([...Array.from({ length: BATCHES_MAX }, () => this.#storeAll()), this.#logTroubles()]);
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

  /** Tries until the store takes it. False where the service has to end first. */
  async #store({ drafts, flows, token, atMs }: GivenBatch): Promise<boolean> {
    const { addFlows, log } = this.#options;
    const flowsLeft = [...flows];
    const daysLeft = token === null ? new Set(Array.from(drafts.timesMs, startOfDay)) : new Set([undefined]);
    for (let waitMs = RETRY_MS_MIN; ; waitMs = Math.min(2 * waitMs, RETRY_MS_MAX)) {
      try {
        while (flowsLeft.length > 0) {
          await addFlows(flowsLeft[0]!.flows, flowsLeft[0]!.sender);
          flowsLeft.shift();
        }
        await this.#collect(drafts, daysLeft, token, atMs);
        return true;
      } catch (error) {
        const events = drafts.timesMs.length;
        if (this.#stop.signal.aborted) {
          this.#lost += token === null ? events : 0;
          return false;
        }
        log.warn({ err: error, events }, "collected events not stored; they are kept and tried again");
        await sleep(waitMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
  }

  /**
   * A day's events are stored together or not at all: what is tried again is a whole day, and none of it is there yet. With a
   * token the days are the store's to tell apart. What is unpacked is not held meanwhile, which spares the collector
   * from copying it.
   */
  async #collect(
    drafts: DraftColumns,
    daysLeft: Set<number | undefined>,
    token: string | null,
    atMs: number,
  ): Promise<void> {
    for (const day of daysLeft) {
      await this.#options.collect(fromColumns(drafts, day), token ?? undefined, atMs);
      daysLeft.delete(day);
    }
  }

  async #logTroubles(): Promise<void> {
    for (let trouble; (trouble = await this.#thread.call("trouble")) !== null;) this.#options.log.warn(trouble);
  }

  status(): Promise<InletStatus> {
    return this.#thread.call("status");
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    const giveUp = setTimeout(() => this.#stop.abort(), CLOSE_MS_MAX);
    const gaveUp = new Promise<void>((resolve) => {
      // A moment for those who wait to see it.
      this.#stop.signal.addEventListener("abort", () => setTimeout(resolve, 2 * RETRY_MS_MIN).unref());
    });
    const stopped = Promise.all([this.#thread.call("stop"), this.#storing]);
    stopped.catch(() => undefined);
    await Promise.race([stopped, gaveUp]);
    clearTimeout(giveUp);
    if (this.#stop.signal.aborted)
      this.#options.log.error({ events: this.#lost }, "the store took nothing more: collected events are lost");
    this.#storing.catch(() => undefined);
    await this.#thread.end();
  }
}

/** Whether anything is to be read at all. */
function hasPlaces({ ports, eveSocket, eveFile }: InletSettings): boolean {
  return Object.values(ports).some((port) => port !== null) || eveSocket !== null || eveFile !== null;
}

/** Nobody can send anything: no thread waits for it. */
function closedInlet(registry: Registry): Inlet {
  const status = async () => ({ listeners: [], senders: [], total: new Tally().counts(), waiting: 0, file: null });
  registerMetrics(registry, status);
  return { status, close: () => Promise.resolve() };
}

function registerMetrics(registry: Registry, look: () => Promise<InletStatus> | undefined): void {
  // One look for all that are read at the same time.
  let reading: Promise<InletStatus> | undefined;
  const read = () => (reading ??= look()?.finally(() => (reading = undefined)));
  const total = (name: string, help: string, value: (counts: CollectCounts, status: InletStatus) => number) =>
    registry.registerMetric(
      new Counter({
        name,
        help,
        registers: [],
        async collect() {
          const status = await read();
          this.reset();
          if (status) this.inc(value(status.total, status));
        },
      }),
    );
  const level = (name: string, help: string, value: (status: InletStatus) => number) =>
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
  total("tocsin_collect_lines_total", "lines that came by syslog and EVE", ({ lines }) => lines);
  total("tocsin_collect_events_total", "events that they became", ({ events }) => events);
  total("tocsin_collect_flows_total", "flow records that they became", ({ flows }) => flows);
  total("tocsin_collect_nothing_total", "lines that were understood and say nothing new", ({ nothing }) => nothing);
  total(
    "tocsin_collect_system_drops_total",
    "datagrams that the system dropped before they could be read",
    (_, status) => status.listeners.reduce((sum, { systemDrops }) => sum + (systemDrops ?? 0), 0),
  );
  level("tocsin_collect_waiting_lines", "lines that are read and not handed on yet", ({ waiting }) => waiting);
  level("tocsin_collect_connections", "open connections of senders", ({ senders }) =>
    senders.reduce((sum, { connections }) => sum + connections, 0),
  );
  level(
    "tocsin_collect_file_lag_bytes",
    "bytes of the followed file that are not stored yet",
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
