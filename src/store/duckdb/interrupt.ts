import type { DuckDBConnection } from "@duckdb/node-api";

/** An interrupt between two statements stops neither of them, so it is repeated. */
const INTERRUPT_MS = 100;

/** Interrupts the connections once the signal aborts. Returns a function that ends it. */
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
