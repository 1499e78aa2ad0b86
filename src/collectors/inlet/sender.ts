import { canonicalAddress, parseAddress, sixNetwork, type AddressRange } from "../../lib/ip.ts";
import {
  Tally,
  type CollectCounts,
  type LineCollector,
  type LineTransport,
  type SenderState,
  type SenderStatus,
} from "./status.ts";
import type { LineText } from "./text.ts";

// Those who send. Each has a queue and a rate of its own, so that one who sends too much has nobody to harm but itself.

/** Senders that are told apart. Those beyond share one queue. */
export const SENDERS_MAX = 4096;
/** Lines of one sender that are here and not read yet. */
const QUEUE_LINES_MAX = 10_000;
const QUEUE_CHARACTERS_MAX = 4 * 1024 * 1024;
/** Of all senders together; beyond it each still has room for a little. */
const QUEUES_CHARACTERS_MAX = 64 * 1024 * 1024;
const LITTLE_CHARACTERS_MAX = 16 * 1024;
/** With so much waiting a stream is not read on, until half of it is gone. */
const PAUSE_LINES = 5000;
const PAUSE_CHARACTERS = 2 * 1024 * 1024;
const SILENT_AFTER_MS = 300_000;
/** How long to believe that nobody can be forgotten: looking at all of them for every datagram would be a way to stall us. */
const FULL_FOR_MS = 1000;
const OTHERS = "others";
const THIS_MACHINE = "127.0.0.1";

export interface Line extends LineText {
  readonly atMs: number;
  /** The address that it came from, also where its sender is one of many that share a place; this machine's for a file. */
  readonly from: string;
}

/** What all queues hold together. */
export interface Room {
  characters: number;
}

/**
 * How many connections and lines somebody may have. One address has one of its own; all addresses of an IPv6 network share one,
 * since whoever has one of them has as many as he likes.
 */
class Share {
  connections = 0;
  /** Senders that have it. */
  senders = 0;
  readonly #perSecondMax: number;
  /** Lines that may still come now; below zero, a stream has to wait. */
  #lines: number;
  #earnedAtMs: number;

  constructor(perSecondMax: number, nowMs: number) {
    this.#perSecondMax = perSecondMax;
    this.#lines = perSecondMax;
    this.#earnedAtMs = nowMs;
  }

  linesAt(nowMs: number): number {
    const passedMs = Math.max(0, nowMs - this.#earnedAtMs);
    this.#earnedAtMs = nowMs;
    this.#lines = Math.min(this.#perSecondMax, this.#lines + (passedMs * this.#perSecondMax) / 1000);
    return this.#lines;
  }

  spend(): void {
    this.#lines--;
  }
}

export class Sender extends Tally {
  readonly address: string;
  readonly collector: LineCollector;
  readonly transport: LineTransport;
  readonly isAllowed: boolean;
  readonly firstSeenMs: number;
  lastSeenMs: number;
  lastEventMs = 0;
  readonly share: Share;
  readonly #room: Room;
  #lines: Line[] = [];
  #taken = 0;
  #characters = 0;
  #connections = 0;

  constructor(who: SenderKey & { isAllowed: boolean }, share: Share, room: Room, nowMs: number) {
    super();
    this.address = who.address;
    this.collector = who.collector;
    this.transport = who.transport;
    this.isAllowed = who.isAllowed;
    this.share = share;
    this.#room = room;
    this.firstSeenMs = nowMs;
    this.lastSeenMs = nowMs;
  }

  get waiting(): number {
    return this.#lines.length - this.#taken;
  }

  get connections(): number {
    return this.#connections;
  }

  /** One connection more, or with -1 one less. */
  connect(change: 1 | -1): void {
    this.#connections += change;
    this.share.connections += change;
  }

  /** Whether nothing would be lost with it but its counts. */
  get isIdle(): boolean {
    return this.connections === 0 && this.waiting === 0 && this.address !== OTHERS;
  }

  /** Whether a datagram may come in: beyond the rate they are lost. */
  mayCome(nowMs: number): boolean {
    return this.share.linesAt(nowMs) >= 1;
  }

  /** A message has come, whatever becomes of it: one that is empty or refused had to be read as well. */
  count(): void {
    this.lines++;
    this.share.spend();
  }

  /** One more line, of a datagram; false where there is no room, and it is lost. */
  offer(line: Line): boolean {
    const share = this.#room.characters > QUEUES_CHARACTERS_MAX ? LITTLE_CHARACTERS_MAX : QUEUE_CHARACTERS_MAX;
    if (this.waiting >= QUEUE_LINES_MAX || this.#characters + line.text.length > share) return false;
    this.put(line);
    return true;
  }

  /** One more line, of a stream: it has been read and is kept, and the stream waits instead. */
  put(line: Line): void {
    this.#lines.push(line);
    this.#characters += line.text.length;
    this.#room.characters += line.text.length;
  }

  take(): Line | undefined {
    const line = this.#lines[this.#taken];
    if (!line) return undefined;
    this.#taken++;
    this.#characters -= line.text.length;
    this.#room.characters -= line.text.length;
    if (this.#taken === this.#lines.length) {
      this.#lines = [];
      this.#taken = 0;
    } else if (this.#taken >= QUEUE_LINES_MAX) {
      this.#lines = this.#lines.slice(this.#taken);
      this.#taken = 0;
    }
    return line;
  }

  /** Whether its streams are to be left alone for now. */
  mustWait(nowMs: number): boolean {
    return this.share.linesAt(nowMs) < 0 || this.#holdsMoreThan(1);
  }

  /** Whether they may be read again. */
  mayGoOn(nowMs: number): boolean {
    return this.share.linesAt(nowMs) >= 0 && !this.#holdsMoreThan(0.5);
  }

  #holdsMoreThan(share: number): boolean {
    const isCrowded = this.#room.characters > QUEUES_CHARACTERS_MAX && this.#characters > LITTLE_CHARACTERS_MAX;
    return isCrowded || this.waiting > share * PAUSE_LINES || this.#characters > share * PAUSE_CHARACTERS;
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
      waiting: this.waiting,
      firstSeenMs: this.firstSeenMs,
      lastSeenMs: this.lastSeenMs,
      lastRefusal: this.lastRefusal,
      ...this.counts(),
    };
  }

  #state(nowMs: number): SenderState {
    if (this.waiting > PAUSE_LINES / 2) return "waiting";
    const isMute = this.lines === 0 && this.lastRefusal === null;
    if (isMute || nowMs - this.lastSeenMs > SILENT_AFTER_MS) return "silent";
    const refusedMs = this.lastRefusal?.atMs ?? -1;
    return refusedMs >= this.lastEventMs ? "refused" : "receiving";
  }

  #describe(state: SenderState, nowMs: number): string {
    switch (state) {
      case "waiting":
        return `${this.waiting} lines wait to be stored: it sends faster than they can be`;
      case "silent":
        if (this.lines === 0)
          return this.transport === "file"
            ? "nothing has been read yet; eve_file says how the file does"
            : "connected, and nothing has been sent yet";
        return `nothing has come for ${Math.round((nowMs - this.lastSeenMs) / 60_000)} minutes`;
      case "refused":
        return `what came last could not be used: ${this.lastRefusal!.message}`;
      case "receiving":
        return "lines are coming in";
    }
  }
}

export interface SenderKey {
  readonly collector: LineCollector;
  readonly transport: LineTransport;
  readonly address: string;
}

export interface SendersOptions {
  /** Empty: everyone. */
  readonly allowed: readonly AddressRange[];
  readonly linesPerSecondMax: number;
  readonly now: () => number;
}

export class Senders {
  readonly #options: SendersOptions;
  readonly #senders = new Map<string, Sender>();
  /** Those that no event has come from, as far as anyone has looked; the one known longest first. */
  readonly #unproven = new Set<string>();
  readonly #room: Room = { characters: 0 };
  /** Of IPv6 networks that somebody sends from. */
  readonly #shares = new Map<string, Share>();
  /** What those did who are forgotten. */
  readonly #forgotten = new Tally();
  #fullSinceMs = -FULL_FOR_MS;

  constructor(options: SendersOptions) {
    this.#options = options;
  }

  find(collector: LineCollector, transport: LineTransport, spelling: string): Sender {
    const name = `${collector} ${transport} ${spelling}`;
    const known = this.#senders.get(name);
    if (known) return known;
    const nowMs = this.#options.now();
    if (this.#senders.size >= SENDERS_MAX && spelling !== OTHERS && !this.#makeRoom(nowMs)) {
      return this.find(collector, transport, OTHERS);
    }
    const address = canonicalAddress(spelling) ?? spelling;
    const who = { collector, transport, address, isAllowed: spelling === OTHERS || this.#allows(transport, address) };
    const sender = new Sender(who, this.#shareOf(who, nowMs), this.#room, nowMs);
    this.#senders.set(name, sender);
    if (address !== OTHERS) this.#unproven.add(name);
    return sender;
  }

  #shareOf(who: SenderKey, nowMs: number): Share {
    const network = networkOf(who);
    const share = this.#shares.get(network ?? "") ?? new Share(this.#options.linesPerSecondMax, nowMs);
    share.senders++;
    if (network !== undefined) this.#shares.set(network, share);
    return share;
  }

  /** The address behind a sender; what is on this machine has its own. */
  addressOf(sender: Sender, spelling: string): string {
    if (sender.transport === "unix" || sender.transport === "file") return THIS_MACHINE;
    return sender.address === OTHERS ? (canonicalAddress(spelling) ?? spelling) : sender.address;
  }

  /** Whether someone may send: `others` are many, each is looked at. */
  admits(sender: Sender, spelling: string): boolean {
    return sender.address === OTHERS ? this.#allows(sender.transport, spelling) : sender.isAllowed;
  }

  /** Sockets and files of this machine are opened by name: whoever can, may. */
  #allows(transport: LineTransport, address: string): boolean {
    const { allowed } = this.#options;
    if (allowed.length === 0 || transport === "unix" || transport === "file") return true;
    const value = parseAddress(address) ?? -1n;
    return allowed.some(({ from, to }) => value >= from && value <= to);
  }

  /** The first that never sent an event and has nothing here, or else one that has been silent for long. */
  #makeRoom(nowMs: number): boolean {
    if (nowMs - this.#fullSinceMs < FULL_FOR_MS) return false;
    for (const name of this.#unproven) {
      const sender = this.#senders.get(name)!;
      if (sender.events > 0 || sender.flows > 0) this.#unproven.delete(name);
      else if (sender.isIdle) return this.#forget(name, sender);
    }
    for (const [name, sender] of this.#senders) {
      if (sender.isIdle && nowMs - sender.lastSeenMs > SILENT_AFTER_MS) return this.#forget(name, sender);
    }
    this.#fullSinceMs = nowMs;
    return false;
  }

  #forget(name: string, sender: Sender): boolean {
    this.#forgotten.add(sender);
    const network = networkOf(sender);
    if (--sender.share.senders === 0 && network !== undefined) this.#shares.delete(network);
    this.#senders.delete(name);
    this.#unproven.delete(name);
    return true;
  }

  get waiting(): number {
    let sum = 0;
    for (const sender of this.#senders.values()) sum += sender.waiting;
    return sum;
  }

  status(nowMs: number): { senders: SenderStatus[]; total: CollectCounts } {
    const total = new Tally();
    total.add(this.#forgotten);
    for (const sender of this.#senders.values()) total.add(sender);
    return { senders: [...this.#senders.values()].map((sender) => sender.status(nowMs)), total: total.counts() };
  }
}

/** By what IPv6 senders are told apart for limits; undefined for any other. */
function networkOf({ collector, transport, address }: SenderKey): string | undefined {
  const network = sixNetwork(address);
  return network && `${collector} ${transport} ${network}`;
}
