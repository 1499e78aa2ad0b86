import type { Socket } from "node:net";
import { ClientDisconnected } from "./body.ts";

/** Runs work that is aborted when the client disconnects, or has already disconnected before the work starts. */
export async function abortOnDisconnect<Value>(
  socket: Socket,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const disconnected = new AbortController();
  const abort = () => disconnected.abort(new ClientDisconnected());
  socket.once("close", abort);
  // The client may disconnect while its body is still being parsed; that close event is not repeated.
  if (socket.destroyed) abort();
  try {
    return await work(disconnected.signal);
  } finally {
    socket.off("close", abort);
  }
}
