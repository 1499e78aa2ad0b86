import type { Socket } from "node:net";

// Slots for connections. While slots are free, a connection may stay silent for ever. When all are taken, a silent connection
// is evicted for the next one, so that idle senders cannot keep others out.

/** Silence after which a connection that has sent messages may be evicted. */
const SILENT_MS_MAX = 60_000;
const KEEP_ALIVE_MS = 60_000;

/** A sender whose connections hold slots. */
export interface SlotHolder {
  readonly transport: string;
  /** Connections of this sender and of those that share its limit. */
  readonly allowance: { readonly connections: number };
  /** Adds a connection, or removes one. */
  connect(change: 1 | -1): void;
  refuse(reason: "too_many_connections", message: string, sample: string, atMs: number): void;
}

export interface ConnectionSlot<Holder extends SlotHolder> {
  readonly socket: Socket;
  readonly sender: Holder;
  readonly openedAtMs: number;
  /** Time at which a message last ended. */
  lastMessageAtMs: number | undefined;
  /** True while the server itself does not read from the connection. */
  isPaused: boolean;
  isEvicted: boolean;
}

export interface ConnectionSlotsOptions {
  readonly connectionsMax: number;
  readonly connectionsPerSenderMax: number;
  readonly now: () => number;
}

export class ConnectionSlots<Holder extends SlotHolder> {
  readonly #options: ConnectionSlotsOptions;
  readonly #slots = new Set<ConnectionSlot<Holder>>();
  /** Slots whose connection never sent a message, the oldest first. */
  readonly #unused = new Set<ConnectionSlot<Holder>>();
  /** The other slots, the least recently used first. */
  readonly #used = new Set<ConnectionSlot<Holder>>();

  constructor(options: ConnectionSlotsOptions) {
    this.#options = options;
  }

  /** Returns a slot, held until the connection closes, or the reason why there is none. */
  take(socket: Socket, sender: Holder): ConnectionSlot<Holder> | string {
    const { connectionsMax, connectionsPerSenderMax, now } = this.#options;
    const { connections } = sender.allowance;
    if (connections >= connectionsPerSenderMax)
      return `the sender, or its IPv6 network, already has ${connections} open connections`;
    if (this.#slots.size >= connectionsMax && !this.#evict()) return `all ${connectionsMax} connections are taken`;
    const state = { openedAtMs: now(), lastMessageAtMs: undefined, isPaused: false, isEvicted: false };
    const slot: ConnectionSlot<Holder> = { socket, sender, ...state };
    this.#slots.add(slot);
    // Unix sockets are never evicted: no stranger sends by them, and an IDS may be silent for hours.
    if (sender.transport !== "unix") this.#unused.add(slot);
    sender.connect(1);
    // Detects a peer that disappeared, which would otherwise hold its slot for ever.
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on("close", () => this.#release(slot));
    return slot;
  }

  /** Records that a message arrived on the connection. */
  touch(slot: ConnectionSlot<Holder>): void {
    slot.lastMessageAtMs = this.#options.now();
    if (!this.#unused.delete(slot) && !this.#used.delete(slot)) return;
    this.#used.add(slot);
  }

  #evict(): boolean {
    const nowMs = this.#options.now();
    const slot = this.#unused.values().find(({ isPaused }) => !isPaused) ?? this.#longestSilent(nowMs);
    if (!slot) return false;
    const { sender, socket, openedAtMs, lastMessageAtMs } = slot;
    const silentS = Math.round((nowMs - (lastMessageAtMs ?? openedAtMs)) / 1000);
    const since = lastMessageAtMs === undefined ? `it sent nothing in ${silentS} s` : `it was silent for ${silentS} s`;
    const message = `a connection was closed to free a slot, since all ${this.#options.connectionsMax} were taken: ${since}`;
    slot.isEvicted = true;
    this.#release(slot);
    sender.refuse("too_many_connections", message, "", nowMs);
    socket.destroy();
    return true;
  }

  #longestSilent(nowMs: number): ConnectionSlot<Holder> | undefined {
    for (const slot of this.#used) {
      if (nowMs - slot.lastMessageAtMs! <= SILENT_MS_MAX) return undefined;
      if (!slot.isPaused) return slot;
    }
    return undefined;
  }

  #release(slot: ConnectionSlot<Holder>): void {
    if (!this.#slots.delete(slot)) return;
    this.#unused.delete(slot);
    this.#used.delete(slot);
    slot.sender.connect(-1);
  }

  close(): void {
    for (const { socket } of this.#slots) socket.destroy();
  }
}
