import type { Socket } from "node:net";
import { ClientGone } from "./body.ts";

/** Does work that is to end with the connection of whoever asked for it, also when that has gone before the work begins. */
export async function untilHangUp<Value>(
  socket: Socket,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const gone = new AbortController();
  const hangUp = () => gone.abort(new ClientGone());
  socket.once("close", hangUp);
  // A body may be read to its end, and be parsed for a while, after its sender has gone: that close is not told again.
  if (socket.destroyed) hangUp();
  try {
    return await work(gone.signal);
  } finally {
    socket.off("close", hangUp);
  }
}
