import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, isIPv6, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, TLSSocket, type TlsOptions } from "node:tls";
import { ListenFailure } from "../listener.ts";
import type { RefusalReason } from "../reading.ts";
import { Framing, messagesOfDatagram } from "./framing.ts";
import { Places, type Place } from "./places.ts";
import type { Sender, Senders } from "./sender.ts";
import type { LineCollector, LineListenerStatus } from "./status.ts";
import { sampleOf, textOf } from "./text.ts";
import { listenAtPath } from "./unix-socket.ts";

// The sockets that lines come in by. What a sender does wrong is counted with it and harms nobody else.

/** A line that has begun must end within this time: connections are not to be held by those who never finish. */
const UNFINISHED_MS_MAX = 30_000;
/** What may be whole, and is so if nothing follows, waits for that so long. */
const SETTLE_MS = 1000;
const HANDSHAKE_MS_MAX = 10_000;
const KEEP_ALIVE_MS = 60_000;
/** How often streams that wait are looked at. */
const LOOK_MS = 50;
const UNIX_SENDER = "unix";

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

interface Connection {
  readonly socket: Socket;
  readonly place: Place;
  readonly framing: Framing;
  /** Why we have ended it, where it was us. */
  cutFor: string | undefined;
  /** Since when a line has begun and not ended. */
  unfinishedSinceMs: number | undefined;
}

interface Counted {
  packets: number;
  bytes: number;
  connections: number;
}

interface OpenListener {
  status(): LineListenerStatus;
  close(): Promise<void>;
}

export class Sockets {
  readonly #options: SocketsOptions;
  readonly #listeners: OpenListener[] = [];
  /** Of every connection that is open, those that shake hands included. */
  readonly #places: Places;
  readonly #connections = new Set<Connection>();
  readonly #looking: NodeJS.Timeout;
  #isClosing = false;

  constructor(options: SocketsOptions) {
    this.#options = options;
    this.#places = new Places(options);
    this.#looking = setInterval(() => this.#look(), LOOK_MS);
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
      status: () => ({ ...udpStatus(socket), name, transport: "udp", address, connections: null, ...counted }),
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
    const shaking = new Map<string, { readonly place: Place; fault: string }>();
    const endOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
    const server = createTlsServer({ ...tls, minVersion: "TLSv1.2", handshakeTimeout }, (socket) => {
      const end = endOf(socket);
      const shaken = shaking.get(end);
      shaking.delete(end);
      // Without one it was closed at the very end of its handshake.
      if (shaken) this.#read(socket, shaken.place, counted);
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
        this.#refuse(place.sender, "handshake_failed", `the TLS handshake failed: ${failed.fault}`, "");
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
        return { ...place, port, receiveBufferBytes: null, ...counted };
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
      this.#refuse(sender, "not_allowed", "it is not among collectors.allowed_senders", datagram);
      return;
    }
    for (const message of messagesOfDatagram(datagram)) {
      sender.lines++;
      if (message.length > lineBytesMax) {
        this.#tooLong(sender, message);
        continue;
      }
      const text = textOf(message);
      if (!text) {
        this.#notText(sender, message);
        continue;
      }
      const outcome = sender.offer({ ...text, atMs, from: senders.addressOf(sender, from) });
      if (outcome === "taken") this.#options.wake(sender);
      else this.#refuse(sender, outcome, DROPPED[outcome], message);
    }
  }

  /** Lets a connection in, unless it may not be; it is read where `counted` is given. */
  #admit(
    name: LineCollector,
    transport: "tcp" | "tls" | "unix",
    socket: Socket,
    counted: Counted | undefined,
  ): Place | undefined {
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
      this.#refuse(sender, "not_allowed", "it is not among collectors.allowed_senders", "");
      socket.destroy();
      return undefined;
    }
    const place = this.#places.take(socket, sender);
    if (typeof place === "string") {
      this.#refuse(sender, "too_many_connections", `a connection was refused: ${place}`, "");
      socket.destroy();
      return undefined;
    }
    // One that is gone without a word is found out, and does not hold its place for ever.
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    if (counted) this.#read(socket, place, counted);
    return place;
  }

  #read(socket: Socket, place: Place, counted: Counted): void {
    const { lineBytesMax, now, wake, senders } = this.#options;
    const { sender } = place;
    const from = senders.addressOf(sender, socket.remoteAddress ?? "");
    const framing = new Framing(
      { bytesMax: lineBytesMax, counted: sender.collector !== "eve" },
      {
        take: (message) => {
          counted.packets++;
          sender.lines++;
          const text = textOf(message);
          if (!text) this.#notText(sender, message);
          else {
            sender.put({ ...text, atMs: now(), from });
            wake(sender);
          }
        },
        refuse: (reason, beginning) => {
          counted.packets++;
          sender.lines++;
          if (reason === "too_long") this.#tooLong(sender, beginning);
          else this.#refuse(sender, reason, connection.cutFor ?? "the connection ended within a message", beginning);
        },
      },
    );
    const connection: Connection = { socket, place, framing, cutFor: undefined, unfinishedSinceMs: undefined };
    this.#connections.add(connection);
    counted.connections++;
    let ended = false;
    let isFirst = true;
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      if (isFirst && isTlsHello(chunk)) {
        const message = "it speaks TLS to a port that is not for it: that has a port of its own (syslog_tls_port)";
        this.#refuse(sender, "not_text", message, chunk);
        socket.destroy();
        return;
      }
      isFirst = false;
      counted.bytes += chunk.length;
      sender.lastSeenMs = now();
      const { ended: before } = framing;
      framing.push(chunk);
      if (framing.ended > before) this.#places.hear(place);
      // What is under way now has begun in this chunk, where anything has ended in it.
      if (!framing.isUnfinished) connection.unfinishedSinceMs = undefined;
      else if (framing.ended > before || connection.unfinishedSinceMs === undefined)
        connection.unfinishedSinceMs = now();
      if (!place.isWaiting && sender.mustWait(now())) {
        place.isWaiting = true;
        socket.pause();
      }
    });
    socket.on("end", () => {
      ended = true;
      // TLS says when a stream is over, but not to us: the end that somebody made by cutting the wire looks the same.
      framing.end(!(socket instanceof TLSSocket));
      socket.end();
    });
    socket.on("close", () => {
      if (!ended) framing.end(false);
      this.#connections.delete(connection);
      counted.connections--;
    });
  }

  /** Streams that had to wait are read on when they may be, and those that never finish a line are cut. */
  #look(): void {
    const { now, unfinishedMsMax = UNFINISHED_MS_MAX } = this.#options;
    const nowMs = now();
    for (const connection of this.#connections) {
      const { socket, place, framing, unfinishedSinceMs } = connection;
      if (place.isWaiting) {
        // It is we who do not read: that is no fault of the sender's.
        if (unfinishedSinceMs !== undefined) connection.unfinishedSinceMs = nowMs;
        if (!place.sender.mayGoOn(nowMs)) continue;
        place.isWaiting = false;
        // Nor is the time that it has waited its silence.
        if (place.heardAtMs !== undefined) this.#places.hear(place);
        socket.resume();
        continue;
      }
      const unfinishedMs = unfinishedSinceMs === undefined ? 0 : nowMs - unfinishedSinceMs;
      if (unfinishedMs > SETTLE_MS) framing.settle();
      if (!framing.isUnfinished) connection.unfinishedSinceMs = undefined;
      else if (unfinishedMs > unfinishedMsMax) {
        connection.cutFor = `a line that had begun did not end within ${unfinishedMsMax / 1000} s`;
        socket.destroy();
      }
    }
  }

  #tooLong(sender: Sender, message: Buffer): void {
    this.#refuse(sender, "too_long", `a message is longer than ${this.#options.lineBytesMax} bytes`, message);
  }

  #notText(sender: Sender, message: Buffer): void {
    this.#refuse(sender, "not_text", "a message is not text", message);
  }

  #refuse(sender: Sender, reason: RefusalReason, message: string, sample: Uint8Array | string): void {
    sender.refuse(reason, message, sampleOf(sample), this.#options.now());
  }

  status(): LineListenerStatus[] {
    return this.#listeners.map((listener) => listener.status());
  }

  /** Takes nothing more. What was read stays with its senders. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#looking);
    const closing = this.#listeners.splice(0).map((listener) => listener.close());
    for (const { socket, framing } of this.#connections) {
      // What is half here is as whole as it will ever be.
      framing.end(true);
      socket.destroy();
    }
    this.#places.close();
    await Promise.all(closing);
  }
}

const DROPPED = {
  too_fast: "it sends more lines a second than collectors.lines_per_second_max",
  queue_full: "it sends faster than its lines can be stored",
} as const;

/** A record of the kind that begins a handshake, of any version. */
function isTlsHello(chunk: Buffer): boolean {
  return chunk[0] === 0x16 && chunk[1] === 0x03;
}

function udpStatus(socket: UdpSocket): { port: number; receiveBufferBytes: number } {
  return { port: socket.address().port, receiveBufferBytes: socket.getRecvBufferSize() };
}
