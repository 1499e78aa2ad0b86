import type { Logger } from "pino";
import { canonicalAddress, parseAddress, parseCidr, type AddressRange } from "../../lib/ip.ts";
import { COLLECTORS } from "./flow-collectors.ts";
import { ListenFailure, type CollectorListener, type ListenOptions, type ReceivePayload } from "../listener.ts";
import { RingWriter, type RingMemory } from "./packet-ring.ts";
import type { CollectorsStatus, ListenerStatus } from "./flow-status.ts";
import { openIpfixTcp, type IpfixTcpListener } from "./ipfix-tcp.ts";
import { openUdp } from "../udp.ts";

// The sockets of the flow collectors, which feed the ring. Each datagram costs one sender lookup and one copy.

/** Senders whose permission is cached; the oldest entry goes first. */
const SENDERS_MAX = 4096;
const REFUSED_SHOWN_MAX = 100;
/** Error codes of an address family that the machine does not have. */
const FAMILY_UNAVAILABLE = new Set<string | undefined>(["EAFNOSUPPORT", "EADDRNOTAVAIL", "EINVAL"]);

export interface FlowReceiverSettings {
  readonly ports: Readonly<Record<ListenerStatus["name"], number | null>>;
  readonly addresses: readonly string[];
  readonly receiveBufferBytes: number;
  /** Empty allows all. */
  readonly allowedExporters: readonly string[];
}

export interface FlowReceiverOptions {
  readonly settings: FlowReceiverSettings;
  readonly ring: RingMemory;
  readonly now: () => number;
  readonly log: Logger;
  /** Called when the ring is no longer empty and its reader sleeps. */
  readonly wake: () => void;
  /** Called for a new connection, before it has sent anything. */
  readonly onConnection: (address: string) => void;
}

interface FlowSender {
  readonly address: string;
  readonly allowed: boolean;
  ringFull: number;
  refused: number;
  lastRefusedMs: number;
}

export type FlowReceiver = Pick<SocketReceiver, "connected" | "status" | "close">;

/** Rejects with a ListenFailure that names the port; no socket stays open then. */
export async function openFlowReceiver(options: FlowReceiverOptions): Promise<FlowReceiver> {
  const receiver = new SocketReceiver(options);
  try {
    await receiver.listen();
  } catch (error) {
    await receiver.close();
    throw error;
  }
  return receiver;
}

class SocketReceiver {
  readonly #options: FlowReceiverOptions;
  readonly #ring: RingWriter;
  readonly #ranges: readonly AddressRange[];
  readonly #senders = new Map<string, FlowSender>();
  readonly #listeners: CollectorListener[] = [];
  readonly #tcp: IpfixTcpListener[] = [];
  #ringFull = 0;
  #refused = 0;
  #connectionsRefused = 0;

  constructor(options: FlowReceiverOptions) {
    this.#options = options;
    this.#ring = new RingWriter(options.ring);
    this.#ranges = options.settings.allowedExporters.map((text) => parseCidr(text)!);
  }

  async listen(): Promise<void> {
    const { ports, addresses } = this.#options.settings;
    for (const [name, { transports }] of Object.entries(COLLECTORS)) {
      const port = ports[name as ListenerStatus["name"]];
      if (port === null) continue;
      for (const address of addresses) {
        for (const transport of transports) {
          await this.#openListener({ name: name as ListenerStatus["name"], address, port }, transport);
        }
      }
    }
  }

  async #openListener(endpoint: ListenOptions, transport: ListenerStatus["transport"]): Promise<void> {
    const { settings, log } = this.#options;
    try {
      if (transport === "udp") {
        const { receiveBufferBytes } = settings;
        const take: ReceivePayload = (...payload) => this.#take(...payload, true);
        this.#listeners.push(await openUdp({ ...endpoint, receiveBufferBytes, take }));
        return;
      }
      const listener = await openIpfixTcp({
        ...endpoint,
        now: this.#options.now,
        take: (...payload) => this.#take(...payload, false),
        allows: (address) => this.#allows(this.#sender(address)),
        onFull: () => void this.#connectionsRefused++,
        onConnection: (address) => this.#options.onConnection(this.#sender(address).address),
      });
      this.#listeners.push(listener);
      this.#tcp.push(listener);
    } catch (error) {
      const code = error instanceof ListenFailure ? (error.cause as NodeJS.ErrnoException).code : undefined;
      // "::" among other addresses means all interfaces: a machine without IPv6 still starts.
      if (endpoint.address !== "::" || !FAMILY_UNAVAILABLE.has(code) || settings.addresses.length === 1) throw error;
      log.warn({ ...endpoint, code }, "IPv6 is not available; collecting flows over IPv4 only");
    }
  }

  #take(address: string, payload: Uint8Array, port: number, mayDrop: boolean): boolean {
    const sender = this.#sender(address);
    if (!this.#allows(sender)) return true;
    if (!this.#ring.push(sender.address, this.#options.now(), payload, port)) {
      if (mayDrop) {
        sender.ringFull++;
        this.#ringFull++;
      }
      return false;
    }
    if (this.#ring.claimWakeUp()) this.#options.wake();
    return true;
  }

  #allows(sender: FlowSender): boolean {
    if (sender.allowed) return true;
    sender.refused++;
    sender.lastRefusedMs = this.#options.now();
    this.#refused++;
    return false;
  }

  #sender(rawAddress: string): FlowSender {
    const known = this.#senders.get(rawAddress);
    if (known) return known;
    const address = canonicalAddress(rawAddress) ?? rawAddress;
    const value = parseAddress(address) ?? -1n;
    const allowed = this.#ranges.length === 0 || this.#ranges.some(({ from, to }) => value >= from && value <= to);
    const sender = { address, allowed, ringFull: 0, refused: 0, lastRefusedMs: 0 };
    if (this.#senders.size >= SENDERS_MAX) this.#senders.delete(this.#senders.keys().next().value!);
    this.#senders.set(rawAddress, sender);
    return sender;
  }

  /** Addresses with an open TCP connection. */
  connected(): string[] {
    return this.#tcp.flatMap((listener) => listener.peers()).map((peer) => this.#sender(peer).address);
  }

  status(): Pick<CollectorsStatus, "listeners" | "refused" | "ring"> & {
    ringFull: ReadonlyMap<string, number>;
    drops: { ring_full: number; not_allowed: number; too_many_connections: number };
  } {
    const senders = [...this.#senders.values()];
    return {
      listeners: this.#listeners.map((listener) => listener.status()),
      ring: { bytes: this.#ring.size, usedBytes: this.#ring.used },
      refused: senders
        .filter(({ refused }) => refused > 0)
        .sort((left, right) => right.lastRefusedMs - left.lastRefusedMs)
        .slice(0, REFUSED_SHOWN_MAX)
        .map(({ address, refused, lastRefusedMs }) => ({ address, packets: refused, lastSeenMs: lastRefusedMs })),
      ringFull: new Map(senders.map(({ address, ringFull }) => [address, ringFull])),
      drops: {
        ring_full: this.#ringFull,
        not_allowed: this.#refused,
        too_many_connections: this.#connectionsRefused,
      },
    };
  }

  async close(): Promise<void> {
    for (const listener of this.#listeners.splice(0)) await listener.close();
  }
}
