import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { breakOff, type HostClient, type PostgresDatabase } from "./postgres-database.ts";

// A connection that receives what other processes announce with NOTIFY. Notices that are sent while it is down are lost, so
// whoever caches asks `isCurrent` first.

/** How often the connection is asked for a sign of life. */
const PING_MS = 300;
/** How old the last answered ping may be: changes elsewhere are known within a second. */
const CURRENT_MS_MAX = 900;
/** A server that does not answer for so long is given up: it may be paused, and its connection never break. */
const ANSWER_MS_MAX = 3000;
/** Clocks are compared only by answers that came this quickly. */
const CLOCK_MS_MAX = 500;
/** Clocks that differ by less are as good as equal. */
const CLOCK_SKEW_MS = 1000;
const RECONNECT_MS = 100;
const RECONNECT_MS_MAX = 2000;

/** The channels of the service. Names are shared by all versions that run at once. */
export const CHANNELS_LISTENED = [
  "tocsin_keys",
  "tocsin_sessions",
  "tocsin_leases",
  "tocsin_alerts",
  "tocsin_notifications",
  "tocsin_arrivals",
  "tocsin_rules",
  "tocsin_lists",
  "tocsin_exports",
  "tocsin_analysis",
] as const;
export type NoticeChannel = (typeof CHANNELS_LISTENED)[number];

export interface PostgresListenerOptions {
  readonly database: PostgresDatabase;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: (() => number) | undefined;
}

export class PostgresListener {
  readonly #database: PostgresDatabase;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #losses: Counter;
  readonly #handlers = new Map<NoticeChannel, Set<(payload: string) => void>>();
  readonly #lossHandlers = new Set<() => void>();
  readonly #returnHandlers = new Set<() => void>();
  readonly #closing = new AbortController();
  #client: HostClient | undefined;
  /** When the ping was sent that was answered last. */
  #confirmedAt = -Infinity;
  #running: Promise<void> | undefined;
  #clockOffsetMs = 0;

  constructor({ database, registry, log, now = Date.now }: PostgresListenerOptions) {
    this.#database = database;
    this.#log = log;
    this.#now = now;
    this.#losses = new Counter({
      name: "tocsin_postgres_listener_losses_total",
      help: "How often the connection that receives the notices of other processes was lost",
      registers: [registry],
    });
    const isCurrent = () => this.isCurrent;
    new Gauge({
      name: "tocsin_postgres_listener_current",
      help: "1 while notices of other processes arrive, else 0: caches are not used then",
      registers: [registry],
      collect() {
        this.set(isCurrent() ? 1 : 0);
      },
    });
    const aheadMs = () => -this.#clockOffsetMs;
    new Gauge({
      name: "tocsin_clock_ahead_seconds",
      help: "How far the clock of this node is ahead of that of PostgreSQL; 0 within a second",
      registers: [registry],
      collect() {
        this.set(aheadMs() / 1000);
      },
    });
  }

  /** True if every change that was committed more than a second ago has been announced here. */
  get isCurrent(): boolean {
    return this.#client !== undefined && performance.now() - this.#confirmedAt < CURRENT_MS_MAX;
  }

  /** How far the clock of the server is ahead of this one; 0 within a second. */
  get clockOffsetMs(): number {
    return this.#clockOffsetMs;
  }

  /** Calls the handler with each notice of the channel. Returns a function that removes it. */
  on(channel: NoticeChannel, handler: (payload: string) => void): () => void {
    const handlers = this.#handlers.get(channel) ?? new Set();
    this.#handlers.set(channel, handlers.add(handler));
    return () => void handlers.delete(handler);
  }

  /** Calls the handler when notices may have been missed. */
  onLoss(handler: () => void): () => void {
    this.#lossHandlers.add(handler);
    return () => void this.#lossHandlers.delete(handler);
  }

  /** Calls the handler when notices arrive again after a loss. */
  onReturn(handler: () => void): () => void {
    this.#returnHandlers.add(handler);
    return () => void this.#returnHandlers.delete(handler);
  }

  /** Connects, and from then on reconnects by itself. */
  async start(): Promise<void> {
    const client = await this.#connect();
    this.#running = this.#run(client);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #connect(): Promise<HostClient> {
    const client = this.#database.newClient();
    try {
      await client.connect();
      await this.#database.requirePrimary(client);
      client.on("notification", ({ channel, payload = "" }) => {
        for (const handler of this.#handlers.get(channel as NoticeChannel) ?? []) handler(payload);
      });
      await client.query(CHANNELS_LISTENED.map((channel) => `LISTEN ${channel}`).join("; "));
      await this.#confirm(client);
      this.#client = client;
      return client;
    } catch (error) {
      breakOff(client);
      throw error;
    }
  }

  async #run(first: HostClient): Promise<void> {
    const { signal } = this.#closing;
    let client: HostClient | undefined = first;
    let pauseMs = RECONNECT_MS;
    while (!signal.aborted) {
      try {
        if (!client) {
          client = await this.#connect();
          for (const handler of this.#returnHandlers) handler();
        }
        pauseMs = RECONNECT_MS;
        await this.#ping(client);
      } catch (error) {
        if (client) {
          this.#lost(client, error);
          client = undefined;
        }
        await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
        pauseMs = Math.min(pauseMs * 2, RECONNECT_MS_MAX);
      }
    }
    this.#client = undefined;
    if (client) await client.end().catch(() => breakOff(client));
  }

  async #ping(client: HostClient): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await sleep(PING_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await this.#confirm(client);
    }
  }

  async #confirm(client: HostClient): Promise<void> {
    const sentAt = performance.now();
    const late = setTimeout(() => breakOff(client), ANSWER_MS_MAX);
    try {
      const { rows } = await client.query<{ ms: number }>(
        "SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms",
      );
      this.#compareClocks(rows[0]!.ms, performance.now() - sentAt);
    } finally {
      clearTimeout(late);
    }
    this.#confirmedAt = sentAt;
  }

  #compareClocks(serverMs: number, tookMs: number): void {
    if (tookMs > CLOCK_MS_MAX) return;
    const found = serverMs - (this.#now() - tookMs / 2);
    const offsetMs = Math.abs(found) <= CLOCK_SKEW_MS ? 0 : Math.round(found);
    if (offsetMs !== 0 && this.#clockOffsetMs === 0)
      this.#log.warn(
        { ahead_seconds: Math.round(-offsetMs / 1000) },
        "the clock of this node differs from that of PostgreSQL: set both by NTP",
      );
    this.#clockOffsetMs = offsetMs;
  }

  #lost(client: HostClient, error: unknown): void {
    this.#client = undefined;
    this.#database.passOver(client);
    breakOff(client);
    this.#losses.inc();
    this.#log.warn({ err: error }, "the connection that receives notices of PostgreSQL was lost; reconnecting");
    for (const handler of this.#lossHandlers) handler();
  }
}
