import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { Lease, LeaseState, LeaseStore } from "../ports/lease-store.ts";
import { roleGauge } from "./role-gauge.ts";

// Work that one node does at a time. The others wait for its lease, and one of them goes on when it expires or is released.

/** A standby takes over within this time and one attempt. */
const TTL_MS = 5000;
const RENEW_MS = 1250;
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
  /**
   * Works until the signal aborts, and calls `begun` once it is at work. May return earlier if it notices that the lease is
   * over.
   */
  readonly work: (lease: Lease, signal: AbortSignal, begun: () => void) => Promise<void>;
  /** What other nodes can read about the work; sent whenever the lease is renewed. */
  readonly status?: (() => string | null) | undefined;
  readonly ttlMs?: number | undefined;
}

export class LeasedRole {
  readonly #options: RoleOptions;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  readonly #begun = Promise.withResolvers<void>();
  readonly #setActive: (isActive: boolean) => void;
  #wake: (() => void) | undefined;

  constructor(options: RoleOptions) {
    this.#options = options;
    this.#setActive = roleGauge(options.registry, options.name);
    this.#setActive(false);
    this.#running = this.#run();
  }

  /** Resolves once the work has begun on this node, or another node turns out to have the lease. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  async close(): Promise<void> {
    this.#closing.abort();
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
        const hasFailed = lease !== undefined && !(await this.#hold(lease, startedAt));
        this.#begun.resolve();
        await this.#pause(hasFailed);
      }
    } finally {
      forget();
    }
  }

  async #acquire(): Promise<Lease | undefined> {
    const { name, holder, leases, log, ttlMs = TTL_MS } = this.#options;
    try {
      // Only looked at while another has it: an attempt to acquire would wait for what the holder is committing.
      const current = await leases.current(name);
      if (current && isOfAnother(current, holder)) return undefined;
      return await leases.acquire(name, holder, ttlMs);
    } catch (error) {
      log.warn({ err: error, lease: name }, "a lease could not be requested; trying again");
      return undefined;
    }
  }

  /**
   * Works under the lease until it is over; returns false if the work failed. `since`: before it was acquired, by the clock of
   * this process.
   */
  async #hold(lease: Lease, since: number): Promise<boolean> {
    const { name, leases, log, work } = this.#options;
    const lost = new AbortController();
    const done = new AbortController();
    this.#setActive(true);
    log.info({ lease: name, epoch: lease.epoch }, "this node has the lease");
    const renewing = this.#renew(lease, since, lost, done.signal);
    let isDone = true;
    try {
      await work(lease, AbortSignal.any([lost.signal, this.#closing.signal]), () => this.#begun.resolve());
    } catch (error) {
      isDone = false;
      log.error({ err: error, lease: name }, "work under a lease failed; it begins again");
    } finally {
      this.#setActive(false);
      done.abort();
      await renewing;
    }
    try {
      await leases.release(lease);
    } catch (error) {
      // It expires by itself.
      log.warn({ err: error, lease: name }, "a lease could not be released");
    }
    return isDone;
  }

  /** Aborts `lost` as soon as the lease is lost, or may be: only the clock of this process is asked, which no failure stops. */
  async #renew(lease: Lease, since: number, lost: AbortController, done: AbortSignal): Promise<void> {
    const { name, leases, log, status, ttlMs = TTL_MS } = this.#options;
    const lose = (why: string) => {
      if (lost.signal.aborted || done.aborted) return;
      log.warn({ lease: name, epoch: lease.epoch, why }, "the lease is lost: its work stops on this node");
      this.#setActive(false);
      lost.abort();
    };
    const expire = () => lose("it could not be renewed in time");
    const timeLeft = (from: number) => Math.max(0, from + ttlMs - MARGIN_MS - performance.now());
    let timer = setTimeout(expire, timeLeft(since));
    // Work that is ending, because the process is, still needs the lease.
    const stop = AbortSignal.any([lost.signal, done]);
    try {
      while (!stop.aborted) {
        await sleep(Math.min(RENEW_MS, ttlMs / 4), undefined, { signal: stop }).catch(() => undefined);
        if (stop.aborted) return;
        const sentAt = performance.now();
        try {
          if (!(await leases.renew(lease, ttlMs, status?.() ?? null))) return lose("another node has it");
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

  /** Until the next attempt. A release ends it, unless work has failed: that release was our own. */
  async #pause(hasFailed: boolean): Promise<void> {
    const stop = new AbortController();
    if (!hasFailed) this.#wake = () => stop.abort();
    const signal = AbortSignal.any([this.#closing.signal, stop.signal]);
    await sleep(ATTEMPT_MS, undefined, { signal }).catch(() => undefined);
    this.#wake = undefined;
  }
}

function isOfAnother(current: LeaseState, holder: string): boolean {
  return current.holder !== holder && current.expiresInMs > 0;
}
