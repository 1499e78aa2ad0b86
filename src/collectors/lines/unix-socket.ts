import { once } from "node:events";
import { chmodSync, lstatSync, rmSync } from "node:fs";
import { connect, type Server } from "node:net";

/** Lets members of the socket's group write to it. */
const SOCKET_MODE = 0o660;

/** Says what is wrong with the path of a socket; undefined if it is free or holds a socket. */
export function socketPathFault(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found && !found.isSocket() ? "the path exists and is not a socket" : undefined;
}

/** Replaces a stale socket from an earlier run; never removes anything else at that path. */
export async function listenAtPath(server: Server, path: string): Promise<void> {
  const fault = socketPathFault(path);
  if (fault !== undefined) throw failure(path, fault);
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found && (await answers(path))) throw failure(path, "another process listens on it");
  try {
    if (found) rmSync(path);
    server.listen({ path, exclusive: true });
    await once(server, "listening");
    chmodSync(path, SOCKET_MODE);
  } catch (error) {
    throw failure(path, (error as Error).message, error);
  }
}

/** True if a process accepts connections on the socket. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

function failure(path: string, reason: string, cause?: unknown): Error {
  const where = `The Unix socket ${path} (setting eve_socket)`;
  const remedy = "Choose another path with --eve-socket, or close it with --eve-socket off.";
  const error = new Error(`${where} cannot be opened: ${reason}.\n${remedy}`, { cause });
  error.name = "ListenFailure";
  return error;
}
