import { once } from "node:events";
import { createServer, isIPv6, type AddressInfo, type Socket } from "node:net";
import { canonicalAddress, sixNetwork } from "../../lib/ip.ts";
import { ListenFailure, type CollectorListener, type ListenOptions, type ReceivePayload } from "../listener.ts";
import { ConnectionSlots, type ConnectionSlot, type SlotHolder } from "../connection-slots.ts";

// IPFIX over TCP: a stream of messages, each with its length.

const CONNECTIONS_MAX = 256;
const CONNECTIONS_PER_SENDER_MAX = 32;
/** A message must be complete within this time. */
const UNFINISHED_MS_MAX = 30_000;
const STALL_CHECK_MS = 1000;
const MESSAGE_HEADER_BYTES = 16;
const IPFIX_VERSION = 10;
/** How long reading from a sender pauses when the ring is full. */
const BACK_PRESSURE_MS = 20;

export interface IpfixTcpOptions extends ListenOptions {
  readonly now: () => number;
  readonly take: ReceivePayload;
  /** Returns true if the address may send. */
  readonly allows: (address: string) => boolean;
  readonly onConnection: (address: string) => void;
  /** Called when the connection limit caused a refusal, or the closing of a silent connection. */
  readonly onFull: () => void;
}

/** The connections of one IPv4 address or one IPv6 /64. */
class IpfixPeer implements SlotHolder {
  readonly transport = "tcp";
  readonly allowance = { connections: 0 };
  readonly #onFull: () => void;

  constructor(onFull: () => void) {
    this.#onFull = onFull;
  }

  connect(change: 1 | -1): void {
    this.allowance.connections += change;
  }

  refuse(): void {
    this.#onFull();
  }
}

interface IpfixConnection {
  readonly socket: Socket;
  readonly address: string;
  readonly port: number;
  readonly slot: ConnectionSlot<IpfixPeer>;
  /** Received bytes that are not taken yet. */
  buffered: Buffer;
  /** Start of the current incomplete message. */
  unfinishedSinceMs: number | undefined;
}

export interface IpfixTcpListener extends CollectorListener {
  /** Addresses with an open connection. */
  peers(): string[];
}

export async function openIpfixTcp(options: IpfixTcpOptions): Promise<IpfixTcpListener> {
  const { name, address, port } = options;
  const connections = new IpfixConnections(options);
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

class IpfixConnections {
  readonly #options: IpfixTcpOptions;
  readonly #slots: ConnectionSlots<IpfixPeer>;
  readonly #peers = new Map<string, IpfixPeer>();
  readonly #connections = new Set<IpfixConnection>();
  readonly #stallCheck: NodeJS.Timeout;
  #packets = 0;
  #bytes = 0;

  constructor(options: IpfixTcpOptions) {
    this.#options = options;
    const limits = { connectionsMax: CONNECTIONS_MAX, connectionsPerSenderMax: CONNECTIONS_PER_SENDER_MAX };
    this.#slots = new ConnectionSlots({ ...limits, now: options.now });
    this.#stallCheck = setInterval(() => this.#cutStalled(), STALL_CHECK_MS);
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
    // "close" follows every error, and handles the end of the connection.
    socket.on("error", () => undefined);
    if (address === undefined || !allows(address)) {
      socket.destroy();
      return;
    }
    const network = sixNetwork(address) ?? canonicalAddress(address) ?? address;
    const peer = this.#peers.get(network) ?? new IpfixPeer(onFull);
    const slot = this.#slots.take(socket, peer);
    if (typeof slot === "string") {
      onFull();
      socket.destroy();
      return;
    }
    this.#peers.set(network, peer);
    const port = socket.remotePort ?? 0;
    const unread = { buffered: Buffer.alloc(0), unfinishedSinceMs: undefined };
    const connection: IpfixConnection = { socket, address, port, slot, ...unread };
    this.#connections.add(connection);
    socket.on("data", (chunk: Buffer) => {
      const { buffered } = connection;
      connection.buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
      this.#deliver(connection);
    });
    socket.on("close", () => {
      this.#connections.delete(connection);
      if (peer.allowance.connections === 0) this.#peers.delete(network);
    });
    onConnection(address);
  }

  /** Splits the stream into messages. Anything else closes the connection, since the next message cannot be found. */
  #deliver(connection: IpfixConnection): void {
    const { socket, slot, buffered } = connection;
    let at = 0;
    while (buffered.length - at >= MESSAGE_HEADER_BYTES) {
      const length = buffered.readUInt16BE(at + 2);
      if (buffered.readUInt16BE(at) !== IPFIX_VERSION || length < MESSAGE_HEADER_BYTES) {
        this.#cut(connection, buffered.subarray(at, at + MESSAGE_HEADER_BYTES));
        return;
      }
      if (buffered.length - at < length) break;
      if (!this.#take(connection, buffered.subarray(at, at + length))) {
        slot.isPaused = true;
        break;
      }
      at += length;
    }
    if (at > 0) connection.buffered = Buffer.from(buffered.subarray(at));
    if (at > 0) this.#slots.touch(slot);
    // Back-pressure does not count against the sender.
    if (connection.buffered.length === 0 || slot.isPaused) connection.unfinishedSinceMs = undefined;
    else if (at > 0 || connection.unfinishedSinceMs === undefined) connection.unfinishedSinceMs = this.#options.now();
    if (!slot.isPaused) return;
    socket.pause();
    setTimeout(() => {
      slot.isPaused = false;
      socket.resume();
      this.#deliver(connection);
    }, BACK_PRESSURE_MS);
  }

  #take({ address, port }: IpfixConnection, message: Uint8Array): boolean {
    if (!this.#options.take(address, message, port)) return false;
    this.#packets++;
    this.#bytes += message.length;
    return true;
  }

  /** Passes on unusable bytes, so that the decoder counts them with their reason, and closes the connection. */
  #cut(connection: IpfixConnection, rest: Buffer): void {
    this.#take(connection, rest);
    connection.buffered = Buffer.alloc(0);
    connection.socket.destroy();
  }

  /** Closes connections whose message is not completed in time. */
  #cutStalled(): void {
    const nowMs = this.#options.now();
    for (const connection of this.#connections) {
      const { buffered, unfinishedSinceMs = nowMs } = connection;
      if (nowMs - unfinishedSinceMs > UNFINISHED_MS_MAX) this.#cut(connection, buffered);
    }
  }

  close(): void {
    clearInterval(this.#stallCheck);
    this.#slots.close();
  }
}
