import { StoreUnavailable } from "../ports/store-errors.ts";

/** A query's number, by which its caller can cancel it, and its client. */
export interface NumberedContext {
  readonly number: number;
  /** Undefined for the service itself. */
  readonly client?: string | undefined;
}

/** The arguments of a query besides its context. */
export type WithoutContext<Args extends unknown[]> = Args extends [unknown, ...infer Rest] ? Rest : never;

/** Queries that run or are queued in a thread. */
export class QueriesInFlight {
  readonly #queries = new Map<number, AbortController>();
  #onEnd: (() => void)[] = [];

  async during<T>(number: number, query: (stop: AbortController) => Promise<T>): Promise<T> {
    const stop = new AbortController();
    this.#queries.set(number, stop);
    try {
      return await query(stop);
    } finally {
      this.#queries.delete(number);
      if (this.#queries.size === 0) for (const resolve of this.#onEnd.splice(0)) resolve();
    }
  }

  /** Resolves once none is left. */
  async haveEnded(): Promise<void> {
    if (this.#queries.size > 0) await new Promise<void>((resolve) => this.#onEnd.push(resolve));
  }

  /** Stops the query, or keeps it from starting: its client has gone. */
  cancel(number: number): void {
    this.#queries.get(number)?.abort(new StoreUnavailable("closed", "the query was cancelled"));
  }

  cancelAll(): void {
    const reason = new StoreUnavailable("closed", "the store is being closed");
    for (const stop of this.#queries.values()) stop.abort(reason);
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
