// Addresses whose reputation is wanted, in the order in which they came, each with the events and alerts that wait for it.

const ADDRESSES_MAX = 5000;
const EVENTS_PER_ADDRESS_MAX = 50;
const ALERTS_PER_ADDRESS_MAX = 50;

export type DroppedKind = "address" | "event" | "alert";

export interface Waiting {
  readonly events: Set<string>;
  readonly alerts: Set<string>;
  failures: number;
}

export class Wanted {
  readonly #waiting = new Map<string, Waiting>();
  readonly #onDrop: (kind: DroppedKind, count: number) => void;

  constructor(onDrop: (kind: DroppedKind, count: number) => void) {
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** The address that has waited longest. */
  first(): string | undefined {
    return this.#waiting.keys().next().value;
  }

  addEvent(address: string, id: string): void {
    let waiting = this.#waiting.get(address);
    if (!waiting) {
      // Of too many, the oldest goes: an attack that is under way is worth more than one that is over.
      if (this.#waiting.size >= ADDRESSES_MAX) this.#drop(this.first()!);
      this.#waiting.set(address, (waiting = { events: new Set(), alerts: new Set(), failures: 0 }));
    }
    if (waiting.events.size < EVENTS_PER_ADDRESS_MAX) waiting.events.add(id);
    else this.#onDrop("event", 1);
  }

  /** False when nobody waits for the address any more. */
  addAlert(address: string, id: string): boolean {
    const waiting = this.#waiting.get(address);
    if (!waiting) return false;
    if (waiting.alerts.size < ALERTS_PER_ADDRESS_MAX) waiting.alerts.add(id);
    else this.#onDrop("alert", 1);
    return true;
  }

  /** One more failed try, and how many that makes. The others have their turn before the next. */
  fail(address: string): number {
    const waiting = this.#waiting.get(address);
    if (!waiting) return 0;
    this.#waiting.delete(address);
    this.#waiting.set(address, waiting);
    return ++waiting.failures;
  }

  /** Takes the address out, with all that waited for it. */
  take(address: string): Waiting | undefined {
    const waiting = this.#waiting.get(address);
    this.#waiting.delete(address);
    return waiting;
  }

  giveUp(address: string): void {
    this.#drop(address);
  }

  #drop(address: string): void {
    const waiting = this.take(address);
    if (!waiting) return;
    this.#onDrop("address", 1);
    this.#onDrop("event", waiting.events.size);
    this.#onDrop("alert", waiting.alerts.size);
  }
}
