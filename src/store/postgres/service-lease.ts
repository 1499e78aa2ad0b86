import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { Lease, LeaseStore } from "../ports/lease-store.ts";

// One service at a time works on a database: its events are in a data folder that the others do not have.

const NAME = "service";
/** Every service of several nodes has somebody in this role. */
const NODES_ROLE = "detector";
const TTL_MS = 15_000;
const RENEW_MS = 3000;
/** How often a start looks whether the service before it is gone. */
const LOOK_MS = 500;

export class DatabaseInUse extends Error {
  constructor(holder: string) {
    super(
      `The database of postgres.url is in use by another tocsin (${holder}). Stop that one first, or set another database.`,
    );
    this.name = "DatabaseInUse";
  }
}

/** Rejects with DatabaseInUse if nodes that share their store, or a service with a data folder, work on the database. */
export async function refuseOthers(leases: LeaseStore, kind: "nodes" | "service"): Promise<void> {
  const current = await leases.current(kind === "nodes" ? NODES_ROLE : NAME);
  if (current && current.expiresInMs > 0) throw new DatabaseInUse(current.holder);
}

export interface ServiceLeaseOptions {
  readonly leases: LeaseStore;
  /** Two processes never have the same. A service that is started again takes its own lease over at once. */
  readonly holder: string;
  /** Another service works on the database: this one must write no more. */
  readonly onLost: (error: Error) => void;
  readonly log: Logger;
  readonly ttlMs?: number | undefined;
}

export interface ServiceLease {
  readonly lease: Lease;
  close(): Promise<void>;
}

/** Waits for a service that ended without a word until its lease expires; rejects with DatabaseInUse if it lives. */
export async function holdServiceLease(options: ServiceLeaseOptions): Promise<ServiceLease> {
  const { leases, holder, onLost, log, ttlMs = TTL_MS } = options;
  const lease = await acquire(options, ttlMs);
  const stop = new AbortController();
  const renewing = (async () => {
    while (!stop.signal.aborted) {
      await sleep(Math.min(RENEW_MS, ttlMs / 3), undefined, { signal: stop.signal }).catch(() => undefined);
      if (stop.signal.aborted) return;
      try {
        if (await leases.renew(lease, ttlMs)) continue;
      } catch (error) {
        // While PostgreSQL is out of reach, nothing can be written to it either.
        log.warn({ err: error }, "the lease of the database could not be renewed; trying again");
        continue;
      }
      onLost(new DatabaseInUse((await leases.current(NAME).catch(() => undefined))?.holder ?? `not ${holder}`));
      return;
    }
  })();
  return {
    lease,
    close: async () => {
      stop.abort();
      await renewing;
      await leases.release(lease);
    },
  };
}

/**
 * Rejects with DatabaseInUse as soon as another service, or a node of one, is seen to live; waits while it may have ended without a
 * word.
 */
export async function refuseLivingService(leases: LeaseStore, holder: string): Promise<void> {
  for (const name of [NAME, NODES_ROLE]) await refuseLivingHolder(leases, name, holder);
}

async function refuseLivingHolder(leases: LeaseStore, name: string, holder: string): Promise<void> {
  let before = Infinity;
  for (;;) {
    const current = await leases.current(name);
    if (current === undefined || current.holder === holder || current.expiresInMs <= 0) return;
    if (current.expiresInMs > before) throw new DatabaseInUse(current.holder);
    before = current.expiresInMs;
    await sleep(LOOK_MS);
  }
}

async function acquire({ leases, holder, log }: ServiceLeaseOptions, ttlMs: number): Promise<Lease> {
  const until = performance.now() + ttlMs + LOOK_MS;
  for (let isFirst = true; ; isFirst = false) {
    const lease = await leases.acquire(NAME, holder, ttlMs);
    if (lease) return lease;
    const other = (await leases.current(NAME))?.holder;
    if (other === undefined) continue;
    if (performance.now() > until) throw new DatabaseInUse(other);
    if (isFirst) log.info({ holder: other }, "waiting for the service that uses the database");
    await sleep(LOOK_MS);
  }
}
