import { createSocket } from "node:dgram";
import { once } from "node:events";
import { isIPv6 } from "node:net";
import { ListenFailure, type CollectorListener, type ListenOptions, type ReceivePayload } from "./listener.ts";
import { systemDropsAt } from "./system-drops.ts";

export interface UdpOptions extends ListenOptions {
  /** Requested size of the kernel's buffer for unread datagrams; the system may grant less. */
  readonly receiveBufferBytes: number;
  readonly take: ReceivePayload;
}

/** Receives datagrams until it is closed. */
export async function openUdp(options: UdpOptions): Promise<CollectorListener> {
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
  // ICMP errors about datagrams sent to a closed port; this socket sends none.
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
