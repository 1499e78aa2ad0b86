import { StoreUnavailable } from "./store-errors.ts";

/** The right to do something alone, such as detection, until it expires. */
export interface Lease {
  readonly name: string;
  readonly holder: string;
  /** Grows whenever the lease is acquired. A write that names an earlier epoch is refused. */
  readonly epoch: number;
}

/** Identifies the lease under which something is written. */
export type Fence = Pick<Lease, "name" | "epoch">;

export interface LeaseState extends Lease {
  /** By the clock of the store; 0 once it has expired. */
  readonly expiresInMs: number;
  /** What the holder said when it renewed the lease last. */
  readonly status: string | null;
}

/**
 * Somebody else has acquired the lease, or the holder has released it: nothing was written. Whoever works under a lease treats
 * it like any store that is unavailable, until the work is stopped.
 */
export class LeaseLost extends StoreUnavailable {
  readonly fence: Fence;
  constructor(fence: Fence) {
    super("lease_lost", `the lease ${fence.name} of epoch ${fence.epoch} is over`);
    this.name = "LeaseLost";
    this.fence = fence;
  }
}

export interface LeaseStore {
  /**
   * Acquires the lease if it is free, has expired, or the holder has it already: its epoch grows then too. Undefined if
   * another holder has it.
   */
  acquire(name: string, holder: string, ttlMs: number): Promise<Lease | undefined>;
  /**
   * Extends the lease from now, and tells others the status. False if it was acquired by another or released since; an expired
   * one is extended.
   */
  renew(lease: Lease, ttlMs: number, status?: string | null): Promise<boolean>;
  /** Frees the lease at once. Does nothing if it was acquired by another since. */
  release(lease: Lease): Promise<void>;
  /** Undefined if the lease is free. */
  current(name: string): Promise<LeaseState | undefined>;
  /** Rejects with LeaseLost unless the epoch is the current one. Inside a transaction a store checks it again. */
  check(fence: Fence): Promise<void>;
  /** Calls the listener with the name of each released lease. Returns a function that removes it. */
  onRelease(listener: (name: string) => void): () => void;
}
