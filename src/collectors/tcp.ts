import { once } from "node:events";
import { createServer, isIPv6, type AddressInfo, type Socket } from "node:net";
import { canonicalAddress, sixNetwork } from "../lib/ip.ts";
import { ListenFailure, type Listener, type ListenOptions, type TakePayload } from "./listener.ts";
import { Places, type Place, type PlaceHolder } from "./places.ts";

// IPFIX over TCP: the messages follow each other, and each says its length.

const CONNECTIONS_MAX = 256;
const CONNECTIONS_PER_SENDER_MAX = 32;
/** A message that has begun must end within this time. */
const UNFINISHED_MS_MAX = 30_000;
const LOOK_MS = 1000;
const MESSAGE_HEADER_BYTES = 16;
const IPFIX_VERSION = 10;
/** A sender is not listened to for so long when there is no room for what it sends. */
const PAUSE_MS = 20;

export interface TcpOptions extends ListenOptions {
  readonly now: () => number;
  readonly take: TakePayload;
  /** Whether someone may send at all. */
  readonly allows: (address: string) => boolean;
  readonly onConnection: (address: string) => void;
  /** There are so many connections that this one was refused, or a silent one closed for it. */
  readonly onFull: () => void;
}

/** An address, or all of an IPv6 network, with the connections that it has. */
class Peer implements PlaceHolder {
  readonly transport = "tcp";
  readonly share = { connections: 0 };
  readonly #onFull: () => void;

  constructor(onFull: () => void) {
    this.#onFull = onFull;
  }

  connect(change: 1 | -1): void {
    this.share.connections += change;
  }

  refuse(): void {
    this.#onFull();
  }
}

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  readonly port: number;
  readonly place: Place<Peer>;
  /** What has come and is not taken yet. */
  held: Buffer;
  /** Since when a message has begun and not ended. */
  unfinishedSinceMs: number | undefined;
}

export interface TcpListener extends Listener {
  /** Who is connected. */
  peers(): string[];
}

export async function openTcp(options: TcpOptions): Promise<TcpListener> {
  const { name, address, port } = options;
  const connections = new Connections(options);
  const server = createServer((socket) => connections.admit(socket));
  try {
    server.listen({ host: address, port, ipv6Only: isIPv6(address), exclusive: true });
    await once(server, "listening");
  } catch (error) {
    connections.close();
    throw new ListenFailure(options, "TCP", error as NodeJS.ErrnoException);
  }
  return {
    status: () => ({
      name,
      transport: "tcp",
      address,
      port: (server.address() as AddressInfo).port,
      ...connections.counts(),
      receiveBufferBytes: null,
      systemDrops: null,
    }),
    peers: () => connections.peers(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        connections.close();
      }),
  };
}

class Connections {
  readonly #options: TcpOptions;
  readonly #places: Places<Peer>;
  /** Those that are connected. */
  readonly #peers = new Map<string, Peer>();
  readonly #connections = new Set<Connection>();
  readonly #looking: NodeJS.Timeout;
  #packets = 0;
  #bytes = 0;

  constructor(options: TcpOptions) {
    this.#options = options;
    const limits = { connectionsMax: CONNECTIONS_MAX, connectionsPerSenderMax: CONNECTIONS_PER_SENDER_MAX };
    this.#places = new Places({ ...limits, now: options.now });
    this.#looking = setInterval(() => this.#look(), LOOK_MS);
  }

  counts(): { packets: number; bytes: number; connections: number } {
    return { packets: this.#packets, bytes: this.#bytes, connections: this.#connections.size };
  }

  peers(): string[] {
    return Array.from(this.#connections, ({ address }) => address);
  }

  admit(socket: Socket): void {
    const { allows, onConnection, onFull } = this.#options;
    const address = socket.remoteAddress;
    // Its end is told by "close"; an error here says only how it ended.
    socket.on("error", () => undefined);
    if (address === undefined || !allows(address)) {
      socket.destroy();
      return;
    }
    const who = sixNetwork(address) ?? canonicalAddress(address) ?? address;
    const peer = this.#peers.get(who) ?? new Peer(onFull);
    const place = this.#places.take(socket, peer);
    if (typeof place === "string") {
      onFull();
      socket.destroy();
      return;
    }
    this.#peers.set(who, peer);
    const port = socket.remotePort ?? 0;
    const unread = { held: Buffer.alloc(0), unfinishedSinceMs: undefined };
    const connection: Connection = { socket, address, port, place, ...unread };
    this.#connections.add(connection);
    socket.on("data", (chunk: Buffer) => {
      const { held } = connection;
      connection.held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      this.#deliver(connection);
    });
    socket.on("close", () => {
      this.#connections.delete(connection);
      if (peer.share.connections === 0) this.#peers.delete(who);
    });
    onConnection(address);
  }

  /** Cuts the stream into messages. A sender of anything else is cut off: there is no way to find the next message. */
  #deliver(connection: Connection): void {
    const { socket, place, held } = connection;
    let at = 0;
    while (held.length - at >= MESSAGE_HEADER_BYTES) {
      const length = held.readUInt16BE(at + 2);
      if (held.readUInt16BE(at) !== IPFIX_VERSION || length < MESSAGE_HEADER_BYTES) {
        this.#cut(connection, held.subarray(at, at + MESSAGE_HEADER_BYTES));
        return;
      }
      if (held.length - at < length) break;
      if (!this.#take(connection, held.subarray(at, at + length))) {
        place.isWaiting = true;
        break;
      }
      at += length;
    }
    if (at > 0) connection.held = Buffer.from(held.subarray(at));
    if (at > 0) this.#places.hear(place);
    // Where it is we who do not read, that is no fault of the sender's.
    if (connection.held.length === 0 || place.isWaiting) connection.unfinishedSinceMs = undefined;
    else if (at > 0 || connection.unfinishedSinceMs === undefined) connection.unfinishedSinceMs = this.#options.now();
    if (!place.isWaiting) return;
    socket.pause();
    setTimeout(() => {
      place.isWaiting = false;
      socket.resume();
      this.#deliver(connection);
    }, PAUSE_MS);
  }

  #take({ address, port }: Connection, message: Uint8Array): boolean {
    if (!this.#options.take(address, message, port)) return false;
    this.#packets++;
    this.#bytes += message.length;
    return true;
  }

  /** Hands on what cannot be used as it is, so that it is counted with its reason, and ends the connection. */
  #cut(connection: Connection, rest: Buffer): void {
    this.#take(connection, rest);
    connection.held = Buffer.alloc(0);
    connection.socket.destroy();
  }

  /** Those that never finish a message are cut. */
  #look(): void {
    const nowMs = this.#options.now();
    for (const connection of this.#connections) {
      const { held, unfinishedSinceMs = nowMs } = connection;
      if (nowMs - unfinishedSinceMs > UNFINISHED_MS_MAX) this.#cut(connection, held);
    }
  }

  close(): void {
    clearInterval(this.#looking);
    this.#places.close();
  }
}
