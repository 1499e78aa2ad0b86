import { setImmediate } from "node:timers/promises";

/** How long work may block a thread. */
const SLICE_MS = 50;

/** Divides long work of a shared thread into slices. Between them other calls run, and the work can be stopped. */
export class TimeSlices {
  readonly #signal: AbortSignal;
  readonly #sliceMs: number;
  #until: number;

  constructor(signal: AbortSignal, sliceMs = SLICE_MS) {
    this.#signal = signal;
    this.#sliceMs = sliceMs;
    this.#until = performance.now() + sliceMs;
  }

  /** True once the current slice has used up its time. */
  get isOver(): boolean {
    return performance.now() >= this.#until;
  }

  /** Lets other calls run, then begins the next slice. Rejects if the work was stopped. */
  async next(): Promise<void> {
    await setImmediate();
    this.#signal.throwIfAborted();
    this.#until = performance.now() + this.#sliceMs;
  }
}
