import { once } from "node:events";
import { createServer, isIPv6, type AddressInfo, type Socket } from "node:net";
import { ListenFailure, type Listener, type ListenOptions, type TakePayload } from "./listener.ts";

// IPFIX over TCP: the messages follow each other, and each says its length.

const TCP_CONNECTIONS_MAX = 256;
const MESSAGE_HEADER_BYTES = 16;
const IPFIX_VERSION = 10;
/** A sender is not listened to for so long when there is no room for what it sends. */
const PAUSE_MS = 20;

export interface TcpOptions extends ListenOptions {
  readonly take: TakePayload;
  /** Whether someone may send at all. */
  readonly allows: (address: string) => boolean;
  readonly onConnection: (address: string) => void;
  /** There are so many connections that another one was refused. */
  readonly onFull: () => void;
}

export interface TcpListener extends Listener {
  /** Who is connected. */
  peers(): string[];
}

export async function openTcp(options: TcpOptions): Promise<TcpListener> {
  const { name, address, port, take, allows, onConnection, onFull } = options;
  const sockets = new Map<Socket, string>();
  let packets = 0;
  let bytes = 0;
  const server = createServer((socket) => {
    const peer = socket.remoteAddress;
    // Its end is told by "close"; an error here says only how it ended.
    socket.on("error", () => undefined);
    const isFull = sockets.size >= TCP_CONNECTIONS_MAX;
    if (isFull) onFull();
    if (isFull || peer === undefined || !allows(peer)) {
      socket.destroy();
      return;
    }
    sockets.set(socket, peer);
    socket.on("close", () => sockets.delete(socket));
    onConnection(peer);
    readMessages(socket, (message) => {
      if (!take(peer, message)) return false;
      packets++;
      bytes += message.length;
      return true;
    });
  });
  try {
    server.listen({ host: address, port, ipv6Only: isIPv6(address), exclusive: true });
    await once(server, "listening");
  } catch (error) {
    throw new ListenFailure(options, "TCP", error as NodeJS.ErrnoException);
  }
  return {
    status: () => ({
      name,
      transport: "tcp",
      address,
      port: (server.address() as AddressInfo).port,
      packets,
      bytes,
      receiveBufferBytes: null,
      connections: sockets.size,
    }),
    peers: () => [...sockets.values()],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets.keys()) socket.destroy();
      }),
  };
}

/** Cuts the stream into messages. A sender of anything else is cut off: there is no way to find the next message. */
function readMessages(socket: Socket, take: (message: Uint8Array) => boolean): void {
  let held: Buffer = Buffer.alloc(0);
  const deliver = (): void => {
    let at = 0;
    while (held.length - at >= MESSAGE_HEADER_BYTES) {
      const length = held.readUInt16BE(at + 2);
      if (held.readUInt16BE(at) !== IPFIX_VERSION || length < MESSAGE_HEADER_BYTES) {
        // Handed on as it is, so that it is counted with its reason.
        take(held.subarray(at, at + MESSAGE_HEADER_BYTES));
        socket.destroy();
        return;
      }
      if (held.length - at < length) break;
      if (!take(held.subarray(at, at + length))) {
        held = held.subarray(at);
        socket.pause();
        setTimeout(() => {
          socket.resume();
          deliver();
        }, PAUSE_MS);
        return;
      }
      at += length;
    }
    held = Buffer.from(held.subarray(at));
  };
  socket.on("data", (chunk: Buffer) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    deliver();
  });
}
