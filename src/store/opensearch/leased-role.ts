import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import type { Lease, LeaseStore } from "../ports/lease-store.ts";

// Work that one node does at a time. The others wait for its lease, and one of them goes on when it expires or is released.

/** A standby takes over within this time and one attempt. */
const TTL_MS = 6000;
const RENEW_MS = 1500;
/** A holder that could not renew its lease stops this long before it expires. */
const MARGIN_MS = 1000;
const ATTEMPT_MS = 1000;

export interface RoleOptions {
  readonly name: string;
  /** Unique to this process. */
  readonly holder: string;
  readonly leases: LeaseStore;
  readonly registry: Registry;
  readonly log: Logger;
  /** Works until the signal aborts. May return earlier if it notices that the lease is over. */
  readonly work: (lease: Lease, signal: AbortSignal) => Promise<void>;
  readonly ttlMs?: number | undefined;
}

export class LeasedRole {
  readonly #options: RoleOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  #isHolder = false;
  #wake: (() => void) | undefined;

  constructor(options: RoleOptions) {
    this.#options = options;
    const isHolder = () => (this.#isHolder ? 1 : 0);
    new Gauge({
      name: `tocsin_${options.name}_active`,
      help: `1 on the node that has the lease ${options.name}`,
      registers: [options.registry],
      collect() {
        this.set(isHolder());
      },
    });
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { name, leases } = this.#options;
    const forget = leases.onRelease((released) => {
      if (released === name) this.#wake?.();
    });
    try {
      while (!this.#closing.signal.aborted) {
        const startedAt = performance.now();
        const lease = await this.#acquire();
        if (lease) await this.#hold(lease, startedAt);
        if (!this.#closing.signal.aborted) await this.#pause(ATTEMPT_MS, this.#closing.signal);
      }
    } finally {
      forget();
    }
  }

  async #acquire(): Promise<Lease | undefined> {
    const { name, holder, leases, log, ttlMs = TTL_MS } = this.#options;
    try {
      return await leases.acquire(name, holder, ttlMs);
    } catch (error) {
      log.warn({ err: error, lease: name }, "a lease could not be requested; trying again");
      return undefined;
    }
  }

  /** Works under the lease until it is over. `since`: before it was acquired, by the clock of this process. */
  async #hold(lease: Lease, since: number): Promise<void> {
    const { name, leases, log, work } = this.#options;
    const over = new AbortController();
    const stop = AbortSignal.any([over.signal, this.#closing.signal]);
    this.#isHolder = true;
    log.info({ lease: name, epoch: lease.epoch }, "this node has the lease");
    const renewing = this.#renew(lease, since, over, stop);
    try {
      await work(lease, stop);
    } catch (error) {
      log.error({ err: error, lease: name }, "work under a lease failed; it begins again");
    } finally {
      this.#isHolder = false;
      over.abort();
      await renewing;
    }
    try {
      await leases.release(lease);
    } catch (error) {
      // It expires by itself.
      log.warn({ err: error, lease: name }, "a lease could not be released");
    }
  }

  /** Aborts `over` as soon as the lease is lost, or may be: only the clock of this process is asked, which no failure stops. */
  async #renew(lease: Lease, since: number, over: AbortController, stop: AbortSignal): Promise<void> {
    const { name, leases, log, ttlMs = TTL_MS } = this.#options;
    const lose = (why: string) => {
      if (stop.aborted) return;
      log.warn({ lease: name, epoch: lease.epoch, why }, "the lease is lost: its work stops on this node");
      over.abort();
    };
    const expire = () => lose("it could not be renewed in time");
    const timeLeft = (from: number) => Math.max(0, from + ttlMs - MARGIN_MS - performance.now());
    let timer = setTimeout(expire, timeLeft(since));
    try {
      while (!stop.aborted) {
        await sleep(Math.min(RENEW_MS, ttlMs / 4), undefined, { signal: stop }).catch(() => undefined);
        if (stop.aborted) return;
        const sentAt = performance.now();
        try {
          if (!(await leases.renew(lease, ttlMs))) return lose("another node has it");
          clearTimeout(timer);
          timer = setTimeout(expire, timeLeft(sentAt));
        } catch (error) {
          log.warn({ err: error, lease: name }, "a lease could not be renewed; trying again");
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    this.#wake = () => stop.abort();
    await sleep(ms, undefined, { signal: AbortSignal.any([signal, stop.signal]) }).catch(() => undefined);
    this.#wake = undefined;
  }
}
