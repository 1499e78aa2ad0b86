import type { DuckDBConnection } from "@duckdb/node-api";
import { StoreUnavailable } from "../ports/store.ts";

/** A question on its way to an answer. Whoever asks numbers it, and may cancel it. */
export interface NumberedAsking {
  readonly number: number;
  /** The client on whose behalf it is asked; undefined for the service itself. */
  readonly asker?: string | undefined;
}

/** The arguments of a question besides who asks it. */
export type WithoutAsking<Args extends unknown[]> = Args extends [unknown, ...infer Rest] ? Rest : never;

/** Questions that run or wait for their turn in a thread. */
export class QueriesInFlight {
  readonly #questions = new Map<number, AbortController>();
  #onEnd: (() => void)[] = [];

  async during<T>(number: number, question: (stop: AbortController) => Promise<T>): Promise<T> {
    const stop = new AbortController();
    this.#questions.set(number, stop);
    try {
      return await question(stop);
    } finally {
      this.#questions.delete(number);
      if (this.#questions.size === 0) for (const resolve of this.#onEnd.splice(0)) resolve();
    }
  }

  /** Resolves once none is left. */
  async haveEnded(): Promise<void> {
    if (this.#questions.size > 0) await new Promise<void>((resolve) => this.#onEnd.push(resolve));
  }

  /** Whoever asked has gone: the question stops, or does not begin. */
  cancel(number: number): void {
    this.#questions.get(number)?.abort(new StoreUnavailable("closed", "the question was cancelled"));
  }

  cancelAll(): void {
    const reason = new StoreUnavailable("closed", "the store is being closed");
    for (const stop of this.#questions.values()) stop.abort(reason);
  }
}

/** Runs a call that `cancel` stops. Once the signal aborts, the call rejects with the signal's reason. */
export async function cancellable<T>(
  signal: AbortSignal | undefined,
  cancel: () => Promise<unknown>,
  call: () => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  // A thread that has ended has nothing left to cancel.
  const onAbort = () => void cancel().catch(() => undefined);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    return await call();
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Again and again until it is left: an interrupt that comes between two statements stops neither of them. */
const INTERRUPT_MS = 100;

/** Stops what the connection does when the signal says so. Returns what ends that. */
export function interruptOn(signal: AbortSignal, ...connections: readonly DuckDBConnection[]): () => void {
  let timer: NodeJS.Timeout | undefined;
  const interrupt = () => {
    for (const connection of connections) connection.interrupt();
  };
  const stop = () => {
    interrupt();
    timer = setInterval(interrupt, INTERRUPT_MS);
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  return () => {
    clearInterval(timer);
    signal.removeEventListener("abort", stop);
  };
}
