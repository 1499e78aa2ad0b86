import { unreachable } from "../../lib/unreachable.ts";
import { canonicalAddress, parseAddress, sixNetwork, type AddressRange } from "../../lib/ip.ts";
import {
  CollectTally,
  type CollectCounts,
  type LineCollector,
  type LineTransport,
  type SenderState,
  type SenderStatus,
} from "./line-status.ts";
import type { LineText } from "./line-text.ts";

// Senders of lines. Each has its own queue and rate, so that a flood costs only the flooder's lines.

/** Senders that are tracked separately. Those past the limit share one queue. */
export const SENDERS_MAX = 4096;
/** Queued lines of one sender. */
const QUEUE_LINES_MAX = 10_000;
const QUEUE_CHARACTERS_MAX = 4 * 1024 * 1024;
/** Limit over all senders; past it each sender may still queue a small amount. */
const QUEUES_CHARACTERS_MAX = 64 * 1024 * 1024;
const CROWDED_CHARACTERS_MAX = 16 * 1024;
/** Queue size at which streams are paused; they resume at half of it. */
const PAUSE_LINES = 5000;
const PAUSE_CHARACTERS = 2 * 1024 * 1024;
const SILENT_AFTER_MS = 300_000;
/** Pause between searches for an evictable sender: a search for every datagram would stall the thread. */
const FULL_FOR_MS = 1000;
const OTHERS = "others";
const THIS_MACHINE = "127.0.0.1";

export interface ReceivedLine extends LineText {
  readonly atMs: number;
  /** Address of origin, even if the sender is `others`; the loopback address for a file. */
  readonly from: string;
}

/** Size of all queues together. */
export interface QueueMemory {
  characters: number;
}

/**
 * Connections and lines that a sender may have. An IPv4 address has its own allowance; all addresses of an IPv6 /64 network
 * share one, since a host there can use any of them.
 */
class SenderAllowance {
  connections = 0;
  /** Senders that share it. */
  senders = 0;
  readonly #perSecondMax: number;
  /** Tokens of the rate limit; below zero, streams are paused. */
  #lines: number;
  #refilledAtMs: number;

  constructor(perSecondMax: number, nowMs: number) {
    this.#perSecondMax = perSecondMax;
    this.#lines = perSecondMax;
    this.#refilledAtMs = nowMs;
  }

  linesAt(nowMs: number): number {
    const passedMs = Math.max(0, nowMs - this.#refilledAtMs);
    this.#refilledAtMs = nowMs;
    this.#lines = Math.min(this.#perSecondMax, this.#lines + (passedMs * this.#perSecondMax) / 1000);
    return this.#lines;
  }

  spend(): void {
    this.#lines--;
  }
}

export class LineSender extends CollectTally {
  readonly address: string;
  readonly collector: LineCollector;
  readonly transport: LineTransport;
  readonly isAllowed: boolean;
  readonly firstSeenMs: number;
  lastSeenMs: number;
  lastEventMs = 0;
  readonly allowance: SenderAllowance;
  readonly #queueMemory: QueueMemory;
  #lines: ReceivedLine[] = [];
  #taken = 0;
  #characters = 0;
  #connections = 0;

  constructor(
    key: SenderKey & { isAllowed: boolean },
    allowance: SenderAllowance,
    queueMemory: QueueMemory,
    nowMs: number,
  ) {
    super();
    this.address = key.address;
    this.collector = key.collector;
    this.transport = key.transport;
    this.isAllowed = key.isAllowed;
    this.allowance = allowance;
    this.#queueMemory = queueMemory;
    this.firstSeenMs = nowMs;
    this.lastSeenMs = nowMs;
  }

  get queued(): number {
    return this.#lines.length - this.#taken;
  }

  get connections(): number {
    return this.#connections;
  }

  /** Adds a connection, or removes one. */
  connect(change: 1 | -1): void {
    this.#connections += change;
    this.allowance.connections += change;
  }

  /** True if evicting the sender loses nothing but its counts. */
  get isIdle(): boolean {
    return this.connections === 0 && this.queued === 0 && this.address !== OTHERS;
  }

  /** True if the rate allows another datagram; otherwise it is dropped. */
  mayAccept(nowMs: number): boolean {
    return this.allowance.linesAt(nowMs) >= 1;
  }

  /** Counts a message against the rate; empty and refused ones cost reading too. */
  count(): void {
    this.countLine(this.lastSeenMs);
    this.allowance.spend();
  }

  /** Queues a line from a datagram; returns false if the queue is full and the line is dropped. */
  offer(line: ReceivedLine): boolean {
    const charactersMax =
      this.#queueMemory.characters > QUEUES_CHARACTERS_MAX ? CROWDED_CHARACTERS_MAX : QUEUE_CHARACTERS_MAX;
    if (this.queued >= QUEUE_LINES_MAX || this.#characters + line.text.length > charactersMax) return false;
    this.put(line);
    return true;
  }

  /** Queues a line from a stream. It is never dropped: the stream is paused instead. */
  put(line: ReceivedLine): void {
    this.#lines.push(line);
    this.#characters += line.text.length;
    this.#queueMemory.characters += line.text.length;
  }

  take(): ReceivedLine | undefined {
    const line = this.#lines[this.#taken];
    if (!line) return undefined;
    this.#taken++;
    this.#characters -= line.text.length;
    this.#queueMemory.characters -= line.text.length;
    if (this.#taken === this.#lines.length) {
      this.#lines = [];
      this.#taken = 0;
    } else if (this.#taken >= QUEUE_LINES_MAX) {
      this.#lines = this.#lines.slice(this.#taken);
      this.#taken = 0;
    }
    return line;
  }

  /** True if the sender's streams must be paused. */
  mustPause(nowMs: number): boolean {
    return this.allowance.linesAt(nowMs) < 0 || this.#queuesMoreThan(1);
  }

  /** True if paused streams may be read again. */
  mayResume(nowMs: number): boolean {
    return this.allowance.linesAt(nowMs) >= 0 && !this.#queuesMoreThan(0.5);
  }

  #queuesMoreThan(fraction: number): boolean {
    const isCrowded = this.#queueMemory.characters > QUEUES_CHARACTERS_MAX && this.#characters > CROWDED_CHARACTERS_MAX;
    return isCrowded || this.queued > fraction * PAUSE_LINES || this.#characters > fraction * PAUSE_CHARACTERS;
  }

  status(nowMs: number): SenderStatus {
    const state = this.#state(nowMs);
    return {
      address: this.address,
      collector: this.collector,
      transport: this.transport,
      state,
      summary: this.#describe(state, nowMs),
      connections: this.connections,
      waiting: this.queued,
      firstSeenMs: this.firstSeenMs,
      lastSeenMs: this.lastSeenMs,
      lastRefusal: this.lastRefusal,
      ...this.counts(),
      ...this.inputStatus(nowMs),
    };
  }

  #state(nowMs: number): SenderState {
    if (this.queued > PAUSE_LINES / 2) return "waiting";
    const hasSentNothing = this.lines === 0 && this.lastRefusal === null;
    if (hasSentNothing || nowMs - this.lastSeenMs > SILENT_AFTER_MS) return "silent";
    const refusedMs = this.lastRefusal?.atMs ?? -1;
    return refusedMs >= this.lastEventMs ? "refused" : "receiving";
  }

  #describe(state: SenderState, nowMs: number): string {
    switch (state) {
      case "waiting":
        return `${this.queued} lines are queued: the sender is faster than the store`;
      case "silent":
        if (this.lines === 0)
          return this.transport === "file"
            ? "nothing has been read yet; see eve_file for the state of the file"
            : "connected, but has sent nothing yet";
        return `nothing received for ${Math.round((nowMs - this.lastSeenMs) / 60_000)} minutes`;
      case "refused":
        return `the last input was refused: ${this.lastRefusal!.message}`;
      case "receiving":
        return this.unparsed === 0
          ? "receiving lines"
          : `receiving lines; no format understood ${this.unparsed} of ${this.lines}, see unparsed_samples`;
      default:
        return unreachable(state);
    }
  }
}

export interface SenderKey {
  readonly collector: LineCollector;
  readonly transport: LineTransport;
  readonly address: string;
}

export interface LineSendersOptions {
  /** Empty: every sender. */
  readonly allowed: readonly AddressRange[];
  readonly linesPerSecondMax: number;
  readonly now: () => number;
}

export class LineSenders {
  readonly #options: LineSendersOptions;
  readonly #senders = new Map<string, LineSender>();
  /** Senders without an event as of the last search, the oldest first. */
  readonly #unproven = new Set<string>();
  readonly #queueMemory: QueueMemory = { characters: 0 };
  /** Allowances of the IPv6 networks with senders. */
  readonly #allowances = new Map<string, SenderAllowance>();
  /** Counts of evicted senders. */
  readonly #evicted = new CollectTally();
  #fullSinceMs = -FULL_FOR_MS;

  constructor(options: LineSendersOptions) {
    this.#options = options;
  }

  find(collector: LineCollector, transport: LineTransport, spelling: string): LineSender {
    const name = `${collector} ${transport} ${spelling}`;
    const known = this.#senders.get(name);
    if (known) return known;
    const nowMs = this.#options.now();
    if (this.#senders.size >= SENDERS_MAX && spelling !== OTHERS && !this.#evict(nowMs)) {
      return this.find(collector, transport, OTHERS);
    }
    const address = canonicalAddress(spelling) ?? spelling;
    const key = { collector, transport, address, isAllowed: spelling === OTHERS || this.#allows(transport, address) };
    const sender = new LineSender(key, this.#allowanceOf(key, nowMs), this.#queueMemory, nowMs);
    this.#senders.set(name, sender);
    if (address !== OTHERS) this.#unproven.add(name);
    return sender;
  }

  #allowanceOf(key: SenderKey, nowMs: number): SenderAllowance {
    const network = networkOf(key);
    const allowance =
      this.#allowances.get(network ?? "") ?? new SenderAllowance(this.#options.linesPerSecondMax, nowMs);
    allowance.senders++;
    if (network !== undefined) this.#allowances.set(network, allowance);
    return allowance;
  }

  /** Address of a sender; the loopback address for Unix sockets and files. */
  addressOf(sender: LineSender, spelling: string): string {
    if (sender.transport === "unix" || sender.transport === "file") return THIS_MACHINE;
    return sender.address === OTHERS ? (canonicalAddress(spelling) ?? spelling) : sender.address;
  }

  /** True if the address may send. `others` stands for many addresses, so each is checked. */
  admits(sender: LineSender, spelling: string): boolean {
    return sender.address === OTHERS ? this.#allows(sender.transport, spelling) : sender.isAllowed;
  }

  /** Unix sockets and files are protected by file permissions instead. */
  #allows(transport: LineTransport, address: string): boolean {
    const { allowed } = this.#options;
    if (allowed.length === 0 || transport === "unix" || transport === "file") return true;
    const value = parseAddress(address) ?? -1n;
    return allowed.some(({ from, to }) => value >= from && value <= to);
  }

  /** Evicts the oldest idle sender without an event, or else one that has been silent for long. */
  #evict(nowMs: number): boolean {
    if (nowMs - this.#fullSinceMs < FULL_FOR_MS) return false;
    for (const name of this.#unproven) {
      const sender = this.#senders.get(name)!;
      if (sender.events > 0 || sender.flows > 0) this.#unproven.delete(name);
      else if (sender.isIdle) return this.#remove(name, sender);
    }
    for (const [name, sender] of this.#senders) {
      if (sender.isIdle && nowMs - sender.lastSeenMs > SILENT_AFTER_MS) return this.#remove(name, sender);
    }
    this.#fullSinceMs = nowMs;
    return false;
  }

  #remove(name: string, sender: LineSender): boolean {
    this.#evicted.add(sender);
    const network = networkOf(sender);
    if (--sender.allowance.senders === 0 && network !== undefined) this.#allowances.delete(network);
    this.#senders.delete(name);
    this.#unproven.delete(name);
    return true;
  }

  get queued(): number {
    let sum = 0;
    for (const sender of this.#senders.values()) sum += sender.queued;
    return sum;
  }

  status(nowMs: number): { senders: SenderStatus[]; total: CollectCounts } {
    const total = new CollectTally();
    total.add(this.#evicted);
    for (const sender of this.#senders.values()) total.add(sender);
    return { senders: [...this.#senders.values()].map((sender) => sender.status(nowMs)), total: total.counts() };
  }
}

/** Key of the allowance that an IPv6 sender shares; undefined for any other sender. */
function networkOf({ collector, transport, address }: SenderKey): string | undefined {
  const network = sixNetwork(address);
  return network && `${collector} ${transport} ${network}`;
}
