import { QueryRefused, StoreUnavailable } from "../store/ports/store-errors.ts";

// Parts of a response that are asked for at the same time: one that is late or refused is left out, and the others are sent.

export interface UnavailablePart<Name> {
  readonly part: Name;
  readonly reason: "missing_scope" | "deadline" | "refused";
  readonly message: string;
}

export interface PartOptions<Name> {
  readonly part: Name;
  /** Of the client: if it aborts, the whole response is in vain. */
  readonly signal: AbortSignal;
  readonly msMax: number;
  /** Receives the reason why the part is null. */
  readonly onUnavailable: (unavailable: UnavailablePart<Name>) => void;
}

/** The value of a part, or null if the store refuses it or it takes too long. */
export async function availablePart<Name extends string, Value>(
  { part, signal, msMax, onUnavailable }: PartOptions<Name>,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value | null> {
  const deadline = AbortSignal.timeout(msMax);
  // Work that ignores its signal must not hold up the other parts.
  const { promise: late, reject } = Promise.withResolvers<never>();
  const onLate = () => reject(deadline.reason as Error);
  deadline.addEventListener("abort", onLate, { once: true });
  try {
    return await Promise.race([work(AbortSignal.any([signal, deadline])), late]);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (deadline.aborted) {
      onUnavailable({ part, reason: "deadline", message: `took longer than ${msMax / 1000} s` });
      return null;
    }
    if (!(error instanceof QueryRefused || error instanceof StoreUnavailable)) throw error;
    onUnavailable({ part, reason: "refused", message: error.message });
    return null;
  } finally {
    deadline.removeEventListener("abort", onLate);
  }
}
