import { StoreUnavailable } from "../../store.ts";

// Whose turn it is to ask. Questions that may take long have places of their own, of which no single client gets all:
// however many of them wait, questions that are answered from a few narrow columns are not behind them.

/** Questions of a lane that run at once. */
const AT_ONCE_MAX = { quick: 3, heavy: 3 } as const;
/** Of heavy ones, those of one client. */
const AT_ONCE_PER_ASKER_MAX = 2;
/** Heavy questions of one client that run or wait. */
export const HEAVY_PER_ASKER_MAX = 16;
const WAITING_MAX = 200;
/** A question that does not get its turn by then is told to come back. */
const WAIT_MS_MAX = 10_000;
const RETRY_SECONDS = 5;

export type Lane = keyof typeof AT_ONCE_MAX;

/** Who asks; without a name, the service itself, which waits for as long as it takes. */
export interface Asker {
  readonly name?: string | undefined;
  readonly lane: Lane;
}

interface Waiting {
  readonly asker: Asker;
  readonly begin: () => void;
}

export class Lanes {
  readonly #running: Asker[] = [];
  readonly #waiting: Waiting[] = [];

  /** Questions that were refused because of too many others. */
  refused = 0;

  get running(): number {
    return this.#running.length;
  }

  /** Waits for its turn, runs the question, and lets the next one in. */
  async take<T>(asker: Asker, signal: AbortSignal, question: () => Promise<T>): Promise<T> {
    await this.#turn(asker, signal);
    try {
      return await question();
    } finally {
      this.#running.splice(this.#running.indexOf(asker), 1);
      this.#letIn();
    }
  }

  async #turn(asker: Asker, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#waiting.length >= WAITING_MAX) throw this.#refusal("too many questions are waiting");
    if (asker.lane === "heavy" && asker.name !== undefined && this.#heavyOf(asker.name) >= HEAVY_PER_ASKER_MAX) {
      throw this.#refusal(`this key has ${HEAVY_PER_ASKER_MAX} questions under way that take long`);
    }
    if (this.#mayRun(asker)) {
      this.#running.push(asker);
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = { asker, begin: resolve };
    this.#waiting.push(waiting);
    const leave = (reason: unknown) => {
      const place = this.#waiting.indexOf(waiting);
      if (place < 0) return;
      this.#waiting.splice(place, 1);
      reject(reason as Error);
    };
    const onAbort = () => leave(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const timer =
      asker.name === undefined
        ? undefined
        : setTimeout(() => leave(this.#refusal("other questions take long")), WAIT_MS_MAX);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    }
  }

  #letIn(): void {
    for (let place = 0; place < this.#waiting.length;) {
      const { asker, begin } = this.#waiting[place]!;
      if (!this.#mayRun(asker)) {
        place++;
        continue;
      }
      this.#waiting.splice(place, 1);
      this.#running.push(asker);
      begin();
    }
  }

  #mayRun({ lane, name }: Asker): boolean {
    const inLane = this.#running.filter((other) => other.lane === lane);
    if (inLane.length >= AT_ONCE_MAX[lane]) return false;
    if (lane === "quick" || name === undefined) return true;
    return inLane.filter((other) => other.name === name).length < AT_ONCE_PER_ASKER_MAX;
  }

  #heavyOf(name: string): number {
    const all = [...this.#running, ...this.#waiting.map(({ asker }) => asker)];
    return all.filter((other) => other.lane === "heavy" && other.name === name).length;
  }

  #refusal(message: string): StoreUnavailable {
    this.refused++;
    return new StoreUnavailable("queue_full", `${message}: try again later`, RETRY_SECONDS);
  }
}
