import { once } from "node:events";
import { chmodSync, lstatSync, rmSync } from "node:fs";
import { connect, type Server } from "node:net";

/** Whoever may open the folder of the socket and is of its group may write to it. */
const SOCKET_MODE = 0o660;

/** What else than a socket stands at a path; undefined where nothing does. */
export function socketPathFault(path: string): string | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found && !found.isSocket() ? "there is something else at that path" : undefined;
}

/** A socket that an earlier run left behind is replaced; anything else at that path is not ours to remove. */
export async function listenAtPath(server: Server, path: string): Promise<void> {
  const fault = socketPathFault(path);
  if (fault !== undefined) throw failure(path, fault);
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found && (await answers(path))) throw failure(path, "another process listens there");
  try {
    if (found) rmSync(path);
    server.listen({ path, exclusive: true });
    await once(server, "listening");
    chmodSync(path, SOCKET_MODE);
  } catch (error) {
    throw failure(path, (error as Error).message, error);
  }
}

/** Whether somebody listens there. */
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
