import { setImmediate } from "node:timers/promises";

/** How long work may hold a thread before others have their turn. */
const PART_MS = 50;

/** Divides long work of a thread that serves others as well into parts, between which it can be stopped. */
export class TimeSlices {
  readonly #signal: AbortSignal;
  readonly #partMs: number;
  #until: number;

  constructor(signal: AbortSignal, partMs = PART_MS) {
    this.#signal = signal;
    this.#partMs = partMs;
    this.#until = performance.now() + partMs;
  }

  /** Whether the current part has used up its time. */
  get isOver(): boolean {
    return performance.now() >= this.#until;
  }

  /** Lets others have their turn, then begins the next part. Rejects when the work was stopped. */
  async next(): Promise<void> {
    await setImmediate();
    this.#signal.throwIfAborted();
    this.#until = performance.now() + this.#partMs;
  }
}
