import { setImmediate, setTimeout } from "node:timers/promises";

// Work on the thread that answers requests, which may be more than it can do: it is done in slices, one at a time however many
// want one, and after each slice the thread belongs to everybody else for as long as the slice took.

/** A slice ends with the first step that ends after this. */
const SLICE_MS = 10;
/** Shorter slices need no rest. */
const REST_MS_MIN = 2;

/** Does some steps, at least one, until it is told that the slice is over. */
type Slice<Value> = (isOver: () => boolean) => Value;

export class FairShare {
  readonly #sliceMs: number;
  #last: Promise<void> = Promise.resolve();

  constructor(sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs;
  }

  /** Runs the slice when it is its turn. What it throws is its caller's. */
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

  /** Tells whether a slice that begins now is over. */
  untilOver(): () => boolean {
    const until = performance.now() + this.#sliceMs;
    return () => performance.now() >= until;
  }
}
