/** Rejects at the deadline with the error that `late` makes, or when the client disconnects. The caller must then end the work. */
export async function withDeadline<Value>(
  { msMax, signal, late }: { readonly msMax: number; readonly signal: AbortSignal; readonly late: () => Error },
  work: Promise<Value>,
): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(late()), msMax);
  const stop = () => reject(signal.reason as Error);
  signal.addEventListener("abort", stop);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}
