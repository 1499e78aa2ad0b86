import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv6 } from "node:net";
import { ListenFailure, type Listener, type ListenOptions, type TakePayload } from "./listener.ts";
import { systemDropsAt } from "./system-drops.ts";

export interface UdpOptions extends ListenOptions {
  /** What is asked of the system for datagrams that are not read yet; it may give less. */
  readonly receiveBufferBytes: number;
  readonly take: TakePayload;
}

/** Receives datagrams until it is closed. */
export async function openUdp(options: UdpOptions): Promise<Listener> {
  const { name, address, port, receiveBufferBytes, take } = options;
  const v6 = isIPv6(address);
  const socket = createSocket({ type: v6 ? "udp6" : "udp4", ipv6Only: v6, recvBufferSize: receiveBufferBytes });
  let packets = 0;
  let bytes = 0;
  socket.on("message", (payload, sender) => {
    packets++;
    bytes += payload.length;
    take(sender.address, payload, sender.port);
  });
  try {
    socket.bind({ address, port, exclusive: true });
    await once(socket, "listening");
  } catch (error) {
    socket.close();
    throw new ListenFailure(options, "UDP", error as NodeJS.ErrnoException);
  }
  // What the system says of a datagram that was sent to a closed port concerns senders, which we are not.
  socket.on("error", () => undefined);
  return {
    status: () => ({
      name,
      transport: "udp",
      address,
      port: socket.address().port,
      packets,
      bytes,
      receiveBufferBytes: socket.getRecvBufferSize(),
      connections: null,
      systemDrops: systemDropsAt(address, socket.address().port),
    }),
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}
