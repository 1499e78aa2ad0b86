import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, isIPv6, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { ListenFailure } from "../listener.ts";
import { ConnectionSlots, type ConnectionSlot } from "../connection-slots.ts";
import { systemDropsAt } from "../system-drops.ts";
import { messagesOfDatagram } from "./framing.ts";
import type { LineSender, LineSenders } from "./line-sender.ts";
import type { LineCollector, LineListenerStatus } from "./line-status.ts";
import { refuseMessage, LineStreams, type ListenerCounts } from "./line-streams.ts";
import { decodeLine } from "./line-text.ts";
import { listenAtPath } from "./unix-socket.ts";

// Listening sockets for lines. A sender's faults are counted with the sender and affect no other.

const HANDSHAKE_MS_MAX = 10_000;
const UNIX_SENDER = "unix";
const NOT_ALLOWED = "the sender is not in collectors.allowed_senders";

export interface LineSocketsOptions {
  readonly lineBytesMax: number;
  readonly connectionsMax: number;
  readonly connectionsPerSenderMax: number;
  readonly receiveBufferBytes: number;
  readonly senders: LineSenders;
  /** Announces that a sender has queued lines. */
  readonly activate: (sender: LineSender) => void;
  readonly now: () => number;
  readonly incompleteMsMax?: number;
  readonly handshakeMsMax?: number;
}

export interface LineEndpoint {
  readonly name: LineCollector;
  readonly address: string;
  readonly port: number;
}

interface LineListener {
  status(): LineListenerStatus;
  close(): Promise<void>;
}

export class LineSockets {
  readonly #options: LineSocketsOptions;
  readonly #listeners: LineListener[] = [];
  /** Slots of all open connections, those in a TLS handshake included. */
  readonly #slots: ConnectionSlots<LineSender>;
  readonly #streams: LineStreams;
  #isClosing = false;

  constructor(options: LineSocketsOptions) {
    this.#options = options;
    this.#slots = new ConnectionSlots(options);
    this.#streams = new LineStreams({ ...options, slots: this.#slots });
  }

  async listenUdp(endpoint: LineEndpoint): Promise<void> {
    const { name, address, port } = endpoint;
    const v6 = isIPv6(address);
    const { receiveBufferBytes } = this.#options;
    const socket = createSocket({ type: v6 ? "udp6" : "udp4", ipv6Only: v6, recvBufferSize: receiveBufferBytes });
    const counts = { packets: 0, bytes: 0 };
    socket.on("message", (datagram, from) => {
      counts.packets++;
      counts.bytes += datagram.length;
      this.#takeDatagram(name, from.address, datagram);
    });
    try {
      socket.bind({ address, port, exclusive: true });
      await once(socket, "listening");
    } catch (error) {
      socket.close();
      throw new ListenFailure(
        { ...endpoint, addresses: "collectors.addresses" },
        "UDP",
        error as NodeJS.ErrnoException,
      );
    }
    // ICMP errors about datagrams sent to a closed port; this socket sends none.
    socket.on("error", () => undefined);
    this.#listeners.push({
      status: () => ({ ...udpStatus(socket, address), name, transport: "udp", address, connections: null, ...counts }),
      close: () => new Promise((resolve) => socket.close(() => resolve())),
    });
  }

  async listenTcp(endpoint: LineEndpoint): Promise<void> {
    const counts = { packets: 0, bytes: 0, connections: 0 };
    const server = createServer((socket) => this.#admit(endpoint.name, "tcp", socket, counts));
    await this.#listen(server, endpoint, "tcp", counts);
  }

  async listenTls(endpoint: LineEndpoint, tls: TlsOptions): Promise<void> {
    const { name } = endpoint;
    const counts = { packets: 0, bytes: 0, connections: 0 };
    const { handshakeMsMax: handshakeTimeout = HANDSHAKE_MS_MAX } = this.#options;
    // Keyed by address and port, which a closed socket no longer knows.
    const handshakes = new Map<string, { readonly slot: ConnectionSlot<LineSender>; fault: string }>();
    const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
    const server = createTlsServer({ ...tls, minVersion: "TLSv1.2", handshakeTimeout }, (socket) => {
      const peer = peerOf(socket);
      const handshake = handshakes.get(peer);
      handshakes.delete(peer);
      // Missing if the connection was closed at the very end of its handshake.
      if (handshake) this.#streams.read(socket, handshake.slot, counts);
      else socket.destroy();
    });
    // A slot is taken before the handshake, since a handshake that never ends holds a connection too.
    server.on("connection", (socket: Socket) => {
      const slot = this.#admit(name, "tls", socket, undefined);
      if (!slot) return;
      const peer = peerOf(socket);
      handshakes.set(peer, { slot, fault: "the connection ended before it was complete" });
      socket.on("close", () => {
        const failed = handshakes.get(peer);
        handshakes.delete(peer);
        if (!failed || slot.isEvicted) return;
        slot.sender.refuse("handshake_failed", `the TLS handshake failed: ${failed.fault}`, "", this.#options.now());
      });
    });
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      const failed = handshakes.get(peerOf(socket));
      if (failed) failed.fault = error.code ?? error.message;
      socket.destroy();
    });
    await this.#listen(server, endpoint, "tls", counts);
  }

  async listenUnix(name: LineCollector, path: string): Promise<void> {
    const counts = { packets: 0, bytes: 0, connections: 0 };
    const server = createServer((socket) => this.#admit(name, "unix", socket, counts));
    await listenAtPath(server, path);
    this.#addListener(server, { name, transport: "unix", address: path }, counts);
  }

  async #listen(
    server: Server,
    endpoint: LineEndpoint,
    transport: "tcp" | "tls",
    counts: ListenerCounts,
  ): Promise<void> {
    const { name, address, port } = endpoint;
    try {
      server.listen({ host: address, port, ipv6Only: isIPv6(address), exclusive: true });
      await once(server, "listening");
    } catch (error) {
      throw new ListenFailure(
        { ...endpoint, addresses: "collectors.addresses" },
        "TCP",
        error as NodeJS.ErrnoException,
      );
    }
    this.#addListener(server, { name, transport, address }, counts);
  }

  #addListener(
    server: Server,
    endpoint: Pick<LineListenerStatus, "name" | "transport" | "address">,
    counts: ListenerCounts,
  ): void {
    this.#listeners.push({
      status: () => {
        const bound = server.address();
        const port = typeof bound === "object" && bound !== null ? (bound as AddressInfo).port : null;
        return { ...endpoint, port, receiveBufferBytes: null, systemDrops: null, ...counts };
      },
      close: () => new Promise((resolve) => server.close(() => resolve())),
    });
  }

  #takeDatagram(name: LineCollector, from: string, datagram: Buffer): void {
    const { senders, now, lineBytesMax } = this.#options;
    const sender = senders.find(name, "udp", from);
    const atMs = now();
    sender.lastSeenMs = atMs;
    if (!senders.admits(sender, from)) {
      sender.refuse("not_allowed", NOT_ALLOWED, datagram, atMs);
      return;
    }
    // Checked before the datagram is split, so that dropping it costs little; it counts as one line.
    if (!sender.mayAccept(atMs)) {
      sender.countLine(atMs);
      sender.refuse("too_fast", "the sender exceeds collectors.lines_per_second_max", datagram, atMs);
      return;
    }
    const messages = messagesOfDatagram(datagram);
    if (messages.length === 0) {
      sender.count();
      sender.nothing++;
    }
    for (const message of messages) {
      sender.count();
      const text = message.length > lineBytesMax ? undefined : decodeLine(message);
      if (text === undefined) refuseMessage(sender, message, lineBytesMax, atMs);
      else if (sender.offer({ ...text, atMs, from: senders.addressOf(sender, from) })) this.#options.activate(sender);
      else
        sender.refuse(
          "queue_full",
          "the sender's queue is full: it sends faster than lines can be stored",
          message,
          atMs,
        );
    }
  }

  /** Gives a connection a slot, or refuses it. With `counts`, starts reading it. */
  #admit(
    name: LineCollector,
    transport: "tcp" | "tls" | "unix",
    socket: Socket,
    counts: ListenerCounts | undefined,
  ): ConnectionSlot<LineSender> | undefined {
    const { senders, now } = this.#options;
    const from = transport === "unix" ? UNIX_SENDER : socket.remoteAddress;
    // The "close" event follows every error and is handled there.
    socket.on("error", () => undefined);
    if (from === undefined || this.#isClosing) {
      socket.destroy();
      return undefined;
    }
    const sender = senders.find(name, transport, from);
    sender.lastSeenMs = now();
    if (!senders.admits(sender, from)) {
      sender.refuse("not_allowed", NOT_ALLOWED, "", now());
      socket.destroy();
      return undefined;
    }
    const slot = this.#slots.take(socket, sender);
    if (typeof slot === "string") {
      sender.refuse("too_many_connections", `a connection was refused: ${slot}`, "", now());
      socket.destroy();
      return undefined;
    }
    if (counts) this.#streams.read(socket, slot, counts);
    return slot;
  }

  status(): LineListenerStatus[] {
    return this.#listeners.map((listener) => listener.status());
  }

  /** Stops receiving. Lines already read stay in their senders' queues. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const closing = this.#listeners.splice(0).map((listener) => listener.close());
    this.#streams.close();
    this.#slots.close();
    await Promise.all(closing);
  }
}

function udpStatus(socket: UdpSocket, address: string) {
  const { port } = socket.address();
  return { port, receiveBufferBytes: socket.getRecvBufferSize(), systemDrops: systemDropsAt(address, port) };
}
