import { setImmediate, setTimeout } from "node:timers/promises";

// Runs long work on the thread that answers requests in slices, one at a time. After each slice the thread is free for as
// long as the slice took.

/** A slice ends with the first step that ends after this. */
const SLICE_MS = 10;
/** Shorter slices need no rest. */
const REST_MS_MIN = 2;

/** Does at least one step, until `isOver` returns true. */
type Slice<Value> = (isOver: () => boolean) => Value;

export class FairShare {
  readonly #sliceMs: number;
  #last: Promise<void> = Promise.resolve();

  constructor(sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs;
  }

  /** Runs the slice in its turn. Rejects with the slice's own error. */
  take<Value>(slice: Slice<Value>): Promise<Value> {
    let startedAt = 0;
    const done = this.#last.then(() => {
      startedAt = performance.now();
      return slice(this.untilOver());
    });
    this.#last = done
      .catch(() => undefined)
      .then(async () => {
        const tookMs = performance.now() - startedAt;
        await (tookMs < REST_MS_MIN ? setImmediate() : setTimeout(tookMs));
      });
    return done;
  }

  /** Returns a function that tells whether a slice that starts now is over. */
  untilOver(): () => boolean {
    const until = performance.now() + this.#sliceMs;
    return () => performance.now() >= until;
  }
}
