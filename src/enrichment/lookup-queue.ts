// The queue of reputation lookups: addresses in order of arrival, each with the events and alerts that wait for its report.

const ADDRESSES_MAX = 5000;
const EVENTS_PER_ADDRESS_MAX = 50;
const ALERTS_PER_ADDRESS_MAX = 50;

export type DroppedKind = "address" | "event" | "alert";

export interface PendingLookup {
  readonly events: Set<string>;
  readonly alerts: Set<string>;
  failures: number;
}

export class LookupQueue {
  readonly #pending = new Map<string, PendingLookup>();
  readonly #onDrop: (kind: DroppedKind, count: number) => void;

  constructor(onDrop: (kind: DroppedKind, count: number) => void) {
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** The oldest address. */
  first(): string | undefined {
    return this.#pending.keys().next().value;
  }

  addEvent(address: string, id: string): void {
    let lookup = this.#pending.get(address);
    if (!lookup) {
      // The oldest address is dropped: an ongoing attack matters more than a past one.
      if (this.#pending.size >= ADDRESSES_MAX) this.drop(this.first()!);
      this.#pending.set(address, (lookup = { events: new Set(), alerts: new Set(), failures: 0 }));
    }
    if (lookup.events.size < EVENTS_PER_ADDRESS_MAX) lookup.events.add(id);
    else this.#onDrop("event", 1);
  }

  /** Returns false if the address is no longer pending. */
  addAlert(address: string, id: string): boolean {
    const lookup = this.#pending.get(address);
    if (!lookup) return false;
    if (lookup.alerts.size < ALERTS_PER_ADDRESS_MAX) lookup.alerts.add(id);
    else this.#onDrop("alert", 1);
    return true;
  }

  /** Counts a failed lookup and moves the address to the end. Returns the number of failures. */
  fail(address: string): number {
    const lookup = this.#pending.get(address);
    if (!lookup) return 0;
    this.#pending.delete(address);
    this.#pending.set(address, lookup);
    return ++lookup.failures;
  }

  /** Removes and returns the lookup of an address. */
  take(address: string): PendingLookup | undefined {
    const lookup = this.#pending.get(address);
    this.#pending.delete(address);
    return lookup;
  }

  drop(address: string): void {
    const lookup = this.take(address);
    if (!lookup) return;
    this.#onDrop("address", 1);
    this.#onDrop("event", lookup.events.size);
    this.#onDrop("alert", lookup.alerts.size);
  }
}
