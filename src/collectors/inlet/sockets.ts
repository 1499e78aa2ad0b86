import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, isIPv6, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { ListenFailure } from "../listener.ts";
import { Places, type Place } from "../places.ts";
import { systemDropsAt } from "../system-drops.ts";
import { messagesOfDatagram } from "./framing.ts";
import type { Sender, Senders } from "./sender.ts";
import type { LineCollector, LineListenerStatus } from "./status.ts";
import { refuseMessage, Streams, type Counted } from "./streams.ts";
import { textOf } from "./text.ts";
import { listenAtPath } from "./unix-socket.ts";

// The sockets that lines come in by. What a sender does wrong is counted with it and harms nobody else.

const HANDSHAKE_MS_MAX = 10_000;
const UNIX_SENDER = "unix";
const NOT_ALLOWED = "it is not among collectors.allowed_senders";

export interface SocketsOptions {
  readonly lineBytesMax: number;
  readonly connectionsMax: number;
  readonly connectionsPerSenderMax: number;
  readonly receiveBufferBytes: number;
  readonly senders: Senders;
  /** This sender has lines that wait. */
  readonly wake: (sender: Sender) => void;
  readonly now: () => number;
  readonly unfinishedMsMax?: number;
  readonly handshakeMsMax?: number;
}

export interface ListenPlace {
  readonly name: LineCollector;
  readonly address: string;
  readonly port: number;
}

interface OpenListener {
  status(): LineListenerStatus;
  close(): Promise<void>;
}

export class Sockets {
  readonly #options: SocketsOptions;
  readonly #listeners: OpenListener[] = [];
  /** Of every connection that is open, those that shake hands included. */
  readonly #places: Places<Sender>;
  readonly #streams: Streams;
  #isClosing = false;

  constructor(options: SocketsOptions) {
    this.#options = options;
    this.#places = new Places(options);
    this.#streams = new Streams({ ...options, places: this.#places });
  }

  async listenUdp(place: ListenPlace): Promise<void> {
    const { name, address, port } = place;
    const v6 = isIPv6(address);
    const { receiveBufferBytes } = this.#options;
    const socket = createSocket({ type: v6 ? "udp6" : "udp4", ipv6Only: v6, recvBufferSize: receiveBufferBytes });
    const counted = { packets: 0, bytes: 0 };
    socket.on("message", (datagram, from) => {
      counted.packets++;
      counted.bytes += datagram.length;
      this.#takeDatagram(name, from.address, datagram);
    });
    try {
      socket.bind({ address, port, exclusive: true });
      await once(socket, "listening");
    } catch (error) {
      socket.close();
      throw new ListenFailure({ ...place, addresses: "collectors.addresses" }, "UDP", error as NodeJS.ErrnoException);
    }
    // What the system says of a datagram that was sent to a closed port concerns senders, which we are not.
    socket.on("error", () => undefined);
    this.#listeners.push({
      status: () => ({ ...udpStatus(socket, address), name, transport: "udp", address, connections: null, ...counted }),
      close: () => new Promise((resolve) => socket.close(() => resolve())),
    });
  }

  async listenTcp(place: ListenPlace): Promise<void> {
    const counted = { packets: 0, bytes: 0, connections: 0 };
    const server = createServer((socket) => this.#admit(place.name, "tcp", socket, counted));
    await this.#listen(server, place, "tcp", counted);
  }

  async listenTls(place: ListenPlace, tls: TlsOptions): Promise<void> {
    const { name } = place;
    const counted = { packets: 0, bytes: 0, connections: 0 };
    const { handshakeMsMax: handshakeTimeout = HANDSHAKE_MS_MAX } = this.#options;
    // By address and port, which a socket that is closed no longer knows.
    const shaking = new Map<string, { readonly place: Place<Sender>; fault: string }>();
    const endOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
    const server = createTlsServer({ ...tls, minVersion: "TLSv1.2", handshakeTimeout }, (socket) => {
      const end = endOf(socket);
      const shaken = shaking.get(end);
      shaking.delete(end);
      // Without one it was closed at the very end of its handshake.
      if (shaken) this.#streams.read(socket, shaken.place, counted);
      else socket.destroy();
    });
    // Counted from its first byte on: a handshake that never ends holds a connection too.
    server.on("connection", (socket: Socket) => {
      const place = this.#admit(name, "tls", socket, undefined);
      if (!place) return;
      const end = endOf(socket);
      shaking.set(end, { place, fault: "the connection ended within it" });
      socket.on("close", () => {
        const failed = shaking.get(end);
        shaking.delete(end);
        if (!failed || place.isLost) return;
        place.sender.refuse("handshake_failed", `the TLS handshake failed: ${failed.fault}`, "", this.#options.now());
      });
    });
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      const failed = shaking.get(endOf(socket));
      if (failed) failed.fault = error.code ?? error.message;
      socket.destroy();
    });
    await this.#listen(server, place, "tls", counted);
  }

  async listenUnix(name: LineCollector, path: string): Promise<void> {
    const counted = { packets: 0, bytes: 0, connections: 0 };
    const server = createServer((socket) => this.#admit(name, "unix", socket, counted));
    await listenAtPath(server, path);
    this.#keep(server, { name, transport: "unix", address: path }, counted);
  }

  async #listen(server: Server, place: ListenPlace, transport: "tcp" | "tls", counted: Counted): Promise<void> {
    const { name, address, port } = place;
    try {
      server.listen({ host: address, port, ipv6Only: isIPv6(address), exclusive: true });
      await once(server, "listening");
    } catch (error) {
      throw new ListenFailure({ ...place, addresses: "collectors.addresses" }, "TCP", error as NodeJS.ErrnoException);
    }
    this.#keep(server, { name, transport, address }, counted);
  }

  #keep(server: Server, place: Pick<LineListenerStatus, "name" | "transport" | "address">, counted: Counted): void {
    this.#listeners.push({
      status: () => {
        const bound = server.address();
        const port = typeof bound === "object" && bound !== null ? (bound as AddressInfo).port : null;
        return { ...place, port, receiveBufferBytes: null, systemDrops: null, ...counted };
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
    // Before it is looked into: what is lost anyhow is to cost next to nothing, so it counts as one line whatever is in it.
    if (!sender.mayCome(atMs)) {
      sender.lines++;
      sender.refuse("too_fast", "it sends more lines a second than collectors.lines_per_second_max", datagram, atMs);
      return;
    }
    const messages = messagesOfDatagram(datagram);
    if (messages.length === 0) {
      sender.count();
      sender.nothing++;
    }
    for (const message of messages) {
      sender.count();
      const text = message.length > lineBytesMax ? undefined : textOf(message);
      if (text === undefined) refuseMessage(sender, message, lineBytesMax, atMs);
      else if (sender.offer({ ...text, atMs, from: senders.addressOf(sender, from) })) this.#options.wake(sender);
      else sender.refuse("queue_full", "it sends faster than its lines can be stored", message, atMs);
    }
  }

  /** Lets a connection in, unless it may not be; it is read where `counted` is given. */
  #admit(
    name: LineCollector,
    transport: "tcp" | "tls" | "unix",
    socket: Socket,
    counted: Counted | undefined,
  ): Place<Sender> | undefined {
    const { senders, now } = this.#options;
    const from = transport === "unix" ? UNIX_SENDER : socket.remoteAddress;
    // Its end is told by "close"; an error here says only how it ended.
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
    const place = this.#places.take(socket, sender);
    if (typeof place === "string") {
      sender.refuse("too_many_connections", `a connection was refused: ${place}`, "", now());
      socket.destroy();
      return undefined;
    }
    if (counted) this.#streams.read(socket, place, counted);
    return place;
  }

  status(): LineListenerStatus[] {
    return this.#listeners.map((listener) => listener.status());
  }

  /** Takes nothing more. What was read stays with its senders. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const closing = this.#listeners.splice(0).map((listener) => listener.close());
    this.#streams.close();
    this.#places.close();
    await Promise.all(closing);
  }
}

function udpStatus(socket: UdpSocket, address: string) {
  const { port } = socket.address();
  return { port, receiveBufferBytes: socket.getRecvBufferSize(), systemDrops: systemDropsAt(address, port) };
}
