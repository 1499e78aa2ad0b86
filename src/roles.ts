import type { Logger } from "pino";
import type { Metric, Registry } from "prom-client";
import { LeasedRole } from "./store/leases/leased-role.ts";
import { roleGauge } from "./store/leases/role-gauge.ts";
import { LeaseLost, type Fence } from "./store/ports/lease-store.ts";
import { StoreUnavailable } from "./store/ports/store-errors.ts";
import type { SharedStore, Store } from "./store/ports/store.ts";

// Parts of the service that one node runs at a time. If no other node uses the store, they are simply open from start to end.
// Otherwise each is open while this node has the lease of its name.

/** What a part is opened with, for as long as this node has the role. */
export interface RoleTerm {
  /** Refuses every change once the lease is over. */
  readonly store: Store;
  /** Undefined if no other node uses the store. */
  readonly fence: Fence | undefined;
  /** For the metrics of the part, which go when it closes. */
  readonly registry: Registry;
}

export interface RoleSpec<Part, Status> {
  readonly name: string;
  readonly open: (term: RoleTerm) => Promise<Part>;
  /** What every node can know about the part. */
  readonly status: (part: Part) => Status;
}

export interface Role<Part, Status> {
  /** The part, while this node has the role. */
  readonly part: Part | undefined;
  /** Of the part, whichever node has it, and up to a few seconds old if another does. Undefined if none does. */
  status(): Promise<Status | undefined>;
  close(): Promise<void>;
}

interface Closable {
  close(): unknown;
}

export interface RolesOptions {
  readonly store: Store;
  readonly registry: Registry;
  readonly log: Logger;
}

export class Roles {
  readonly #options: RolesOptions;
  readonly #all: { readonly name: string; isHeld(): boolean }[] = [];

  constructor(options: RolesOptions) {
    this.#options = options;
  }

  /** The roles that this node has. */
  get held(): string[] {
    return this.#all.filter((role) => role.isHeld()).map(({ name }) => name);
  }

  /** Resolves once the part is open, or another node turns out to have the role. */
  async take<Part extends Closable, Status extends object>(spec: RoleSpec<Part, Status>): Promise<Role<Part, Status>> {
    const { store, registry } = this.#options;
    const role = store.shared
      ? await this.#takeShared(spec, store.shared)
      : await takeAlone(spec, { store, registry, fence: undefined });
    this.#all.push({ name: spec.name, isHeld: () => role.part !== undefined });
    return role;
  }

  async #takeShared<Part extends Closable, Status extends object>(
    { name, open, status }: RoleSpec<Part, Status>,
    { node, under }: SharedStore,
  ): Promise<Role<Part, Status>> {
    const { store, registry, log } = this.#options;
    const { leases } = store;
    let part: Part | undefined;
    const role = new LeasedRole({
      name,
      holder: node,
      leases,
      registry,
      log,
      status: () => (part ? JSON.stringify(status(part)) : null),
      work: async (fence, signal, begun) => {
        const metrics = new TermMetrics(registry);
        let opened: Part | undefined;
        try {
          opened = await open({ store: under(fence), fence, registry: metrics.registry });
          part = opened;
          begun();
          await aborted(signal);
        } finally {
          part = undefined;
          try {
            if (opened) await closeLeaving(opened, log, name);
          } finally {
            metrics.forget();
          }
        }
      },
    });
    await role.begun;
    return {
      get part() {
        return part;
      },
      status: async () => {
        if (part) return status(part);
        const current = await leases.current(name);
        return current?.status == null ? undefined : (JSON.parse(current.status) as Status);
      },
      close: () => role.close(),
    };
  }
}

async function takeAlone<Part extends Closable, Status>(
  { name, open, status }: RoleSpec<Part, Status>,
  term: RoleTerm,
): Promise<Role<Part, Status>> {
  const part = await open(term);
  roleGauge(term.registry, name)(true);
  return {
    part,
    status: async () => status(part),
    close: async () => void (await part.close()),
  };
}

/** What a part still had to write when its lease was lost, or its store was out of reach, the next holder does. */
async function closeLeaving(part: Closable, log: Logger, role: string): Promise<void> {
  try {
    await part.close();
  } catch (error) {
    if (!(error instanceof LeaseLost || error instanceof StoreUnavailable)) throw error;
    log.info({ role }, "the rest of the work is left to the next node");
  }
}

/** Metrics of one term: they are registered again when this node gets the role back. */
class TermMetrics {
  /** Its metrics are in the one that it was made of. */
  readonly registry: Registry;
  readonly #of: Registry;
  readonly #names: string[] = [];

  constructor(registry: Registry) {
    this.#of = registry;
    this.registry = Object.create(registry, {
      registerMetric: {
        value: (metric: Metric & { readonly name: string }) => {
          registry.registerMetric(metric);
          this.#names.push(metric.name);
        },
      },
    }) as Registry;
  }

  forget(): void {
    for (const name of this.#names) this.#of.removeSingleMetric(name);
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
