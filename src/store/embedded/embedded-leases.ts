import { LeaseLost, type Fence, type LeaseState, type LeaseStore } from "../ports/lease-store.ts";

interface HeldLease {
  readonly holder: string | null;
  readonly epoch: number;
  readonly expiresAt: number;
  readonly status: string | null;
}

/** The leases of the data folder. One process holds the folder, so its memory is enough. Epochs begin anew with the process. */
export function embeddedLeases(): LeaseStore {
  const leases = new Map<string, HeldLease>();
  const listeners = new Set<(name: string) => void>();
  const now = () => performance.now();
  const heldIn = ({ name, epoch }: Fence) => {
    const lease = leases.get(name);
    return lease?.epoch === epoch && lease.holder !== null ? lease : undefined;
  };
  return {
    acquire: async (name, holder, ttlMs) => {
      const lease = leases.get(name);
      const isFree = !lease || lease.holder === null || lease.holder === holder || lease.expiresAt <= now();
      if (!isFree) return undefined;
      const epoch = (lease?.epoch ?? 0) + 1;
      leases.set(name, { holder, epoch, expiresAt: now() + ttlMs, status: null });
      return { name, holder, epoch };
    },
    renew: async (lease, ttlMs, status = null) => {
      const held = heldIn(lease);
      if (held) leases.set(lease.name, { ...held, expiresAt: now() + ttlMs, status });
      return held !== undefined;
    },
    release: async (lease) => {
      const held = heldIn(lease);
      if (!held) return;
      leases.set(lease.name, { ...held, holder: null });
      for (const listener of listeners) listener(lease.name);
    },
    current: async (name): Promise<LeaseState | undefined> => {
      const lease = leases.get(name);
      if (!lease || lease.holder === null) return undefined;
      const { holder, epoch, expiresAt, status } = lease;
      return { name, holder, epoch, expiresInMs: Math.max(0, Math.ceil(expiresAt - now())), status };
    },
    check: async (fence) => {
      if (!heldIn(fence)) throw new LeaseLost(fence);
    },
    onRelease: (listener) => {
      const entry = (name: string) => listener(name);
      listeners.add(entry);
      return () => void listeners.delete(entry);
    },
  };
}
