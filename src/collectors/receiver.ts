import type { Logger } from "pino";
import { canonicalAddress, parseAddress, parseCidr, type AddressRange } from "../lib/ip.ts";
import { COLLECTORS } from "./index.ts";
import { ListenFailure, type Listener, type ListenOptions, type TakePayload } from "./listener.ts";
import { RingWriter, type RingMemory } from "./ring.ts";
import type { CollectorsStatus, ListenerStatus } from "./status.ts";
import { openTcp, type TcpListener } from "./tcp.ts";
import { openUdp } from "./udp.ts";

// The sockets, and the way from them into the ring. Per datagram: one look at who sent it and one copy.

/** Senders whose right to send is remembered; those beyond are looked at each time. */
const SENDERS_MAX = 4096;
const REFUSED_SHOWN_MAX = 100;
/** An address family that the machine does not have. */
const NO_FAMILY = new Set<string | undefined>(["EAFNOSUPPORT", "EADDRNOTAVAIL", "EINVAL"]);

export interface ReceiverSettings {
  readonly ports: Readonly<Record<ListenerStatus["name"], number | null>>;
  readonly addresses: readonly string[];
  readonly receiveBufferBytes: number;
  /** Empty: everyone. */
  readonly allowedExporters: readonly string[];
}

export interface ReceiverOptions {
  readonly settings: ReceiverSettings;
  readonly ring: RingMemory;
  readonly now: () => number;
  readonly log: Logger;
  /** The ring is no longer empty, and nobody is reading it. */
  readonly wake: () => void;
  /** Someone is connected, with nothing sent yet. */
  readonly meet: (address: string) => void;
}

interface Sender {
  readonly address: string;
  readonly allowed: boolean;
  ringFull: number;
  refused: number;
  lastRefusedMs: number;
}

export class Receiver {
  readonly #options: ReceiverOptions;
  readonly #ring: RingWriter;
  readonly #ranges: readonly AddressRange[];
  readonly #senders = new Map<string, Sender>();
  readonly #listeners: Listener[] = [];
  readonly #tcp: TcpListener[] = [];
  #ringFull = 0;
  #refused = 0;
  #connectionsRefused = 0;

  private constructor(options: ReceiverOptions) {
    this.#options = options;
    this.#ring = new RingWriter(options.ring);
    this.#ranges = options.settings.allowedExporters.map((text) => parseCidr(text)!);
  }

  /** Rejects with a ListenFailure that names the port, and leaves none open then. */
  static async open(options: ReceiverOptions): Promise<Receiver> {
    const receiver = new Receiver(options);
    try {
      await receiver.#listen();
    } catch (error) {
      await receiver.close();
      throw error;
    }
    return receiver;
  }

  async #listen(): Promise<void> {
    const { ports, addresses } = this.#options.settings;
    for (const [name, { transports }] of Object.entries(COLLECTORS)) {
      const port = ports[name as ListenerStatus["name"]];
      if (port === null) continue;
      for (const address of addresses) {
        for (const transport of transports) {
          await this.#openOne({ name: name as ListenerStatus["name"], address, port }, transport);
        }
      }
    }
  }

  async #openOne(where: ListenOptions, transport: ListenerStatus["transport"]): Promise<void> {
    const { settings, log } = this.#options;
    try {
      if (transport === "udp") {
        const { receiveBufferBytes } = settings;
        const take: TakePayload = (...payload) => this.#take(...payload, true);
        this.#listeners.push(await openUdp({ ...where, receiveBufferBytes, take }));
        return;
      }
      const listener = await openTcp({
        ...where,
        now: this.#options.now,
        take: (...payload) => this.#take(...payload, false),
        allows: (address) => this.#allows(this.#sender(address)),
        onFull: () => void this.#connectionsRefused++,
        onConnection: (address) => this.#options.meet(this.#sender(address).address),
      });
      this.#listeners.push(listener);
      this.#tcp.push(listener);
    } catch (error) {
      const code = error instanceof ListenFailure ? (error.cause as NodeJS.ErrnoException).code : undefined;
      // Every interface means every one that there is: a machine without IPv6 is no reason not to start.
      if (where.address !== "::" || !NO_FAMILY.has(code) || settings.addresses.length === 1) throw error;
      log.warn({ ...where, code }, "this machine has no IPv6: flows are collected over IPv4 alone");
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
    if (this.#ring.wakes()) this.#options.wake();
    return true;
  }

  #allows(sender: Sender): boolean {
    if (sender.allowed) return true;
    sender.refused++;
    sender.lastRefusedMs = this.#options.now();
    this.#refused++;
    return false;
  }

  #sender(spelling: string): Sender {
    const known = this.#senders.get(spelling);
    if (known) return known;
    const address = canonicalAddress(spelling) ?? spelling;
    const value = parseAddress(address) ?? -1n;
    const allowed = this.#ranges.length === 0 || this.#ranges.some(({ from, to }) => value >= from && value <= to);
    const sender = { address, allowed, ringFull: 0, refused: 0, lastRefusedMs: 0 };
    if (this.#senders.size >= SENDERS_MAX) this.#senders.delete(this.#senders.keys().next().value!);
    this.#senders.set(spelling, sender);
    return sender;
  }

  /** Addresses that are connected now. */
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
