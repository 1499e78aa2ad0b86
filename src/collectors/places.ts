import type { Socket } from "node:net";

// The places that there are for connections. While some are free anybody may be silent for ever; when all are taken, whoever says
// nothing makes room for the next: places are not to be held by those who do nothing with them.

/** One that has sent something may be silent for so long without losing its place. */
const MUTE_MS_MAX = 60_000;
const KEEP_ALIVE_MS = 60_000;

/** Whoever has places. */
export interface PlaceHolder {
  readonly transport: string;
  /** Of it and of those that it shares its limit with. */
  readonly share: { readonly connections: number };
  /** One connection more, or with -1 one less. */
  connect(change: 1 | -1): void;
  refuse(reason: "too_many_connections", message: string, sample: string, atMs: number): void;
}

export interface Place<Holder extends PlaceHolder> {
  readonly socket: Socket;
  readonly sender: Holder;
  readonly openedAtMs: number;
  /** When a message last ended. */
  heardAtMs: number | undefined;
  /** It is we who do not read on. */
  isWaiting: boolean;
  /** It was taken from it. */
  isLost: boolean;
}

export interface PlacesOptions {
  readonly connectionsMax: number;
  readonly connectionsPerSenderMax: number;
  readonly now: () => number;
}

export class Places<Holder extends PlaceHolder> {
  readonly #options: PlacesOptions;
  readonly #places = new Set<Place<Holder>>();
  /** Those that have never sent a message, the one that came first first. */
  readonly #mute = new Set<Place<Holder>>();
  /** The others, the one that was heard longest ago first. */
  readonly #heard = new Set<Place<Holder>>();

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  /** A place until the connection is closed; or why there is none. */
  take(socket: Socket, sender: Holder): Place<Holder> | string {
    const { connectionsMax, connectionsPerSenderMax, now } = this.#options;
    const { connections } = sender.share;
    if (connections >= connectionsPerSenderMax)
      return `it, or the IPv6 network that it is in, has ${connections} open already`;
    if (this.#places.size >= connectionsMax && !this.#makeRoom()) return `all ${connectionsMax} connections are taken`;
    const state = { openedAtMs: now(), heardAtMs: undefined, isWaiting: false, isLost: false };
    const place: Place<Holder> = { socket, sender, ...state };
    this.#places.add(place);
    // What is on this machine is not sent by strangers, and an IDS may be silent for hours.
    if (sender.transport !== "unix") this.#mute.add(place);
    sender.connect(1);
    // One that is gone without a word is found out, and does not hold its place for ever.
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on("close", () => this.#leave(place));
    return place;
  }

  /** A message has come in by it. */
  hear(place: Place<Holder>): void {
    place.heardAtMs = this.#options.now();
    if (!this.#mute.delete(place) && !this.#heard.delete(place)) return;
    this.#heard.add(place);
  }

  #makeRoom(): boolean {
    const nowMs = this.#options.now();
    const mute = this.#mute.values().find(({ isWaiting }) => !isWaiting) ?? this.#longestUnheard(nowMs);
    if (!mute) return false;
    const { sender, socket, openedAtMs, heardAtMs } = mute;
    const since =
      heardAtMs === undefined
        ? `nothing had come by it in ${Math.round((nowMs - openedAtMs) / 1000)} s`
        : `nothing had come by it for ${Math.round((nowMs - heardAtMs) / 1000)} s`;
    const message = `a connection was closed to make room, since all ${this.#options.connectionsMax} are taken: ${since}`;
    mute.isLost = true;
    this.#leave(mute);
    sender.refuse("too_many_connections", message, "", nowMs);
    socket.destroy();
    return true;
  }

  #longestUnheard(nowMs: number): Place<Holder> | undefined {
    for (const place of this.#heard) {
      if (nowMs - place.heardAtMs! <= MUTE_MS_MAX) return undefined;
      if (!place.isWaiting) return place;
    }
    return undefined;
  }

  #leave(place: Place<Holder>): void {
    if (!this.#places.delete(place)) return;
    this.#mute.delete(place);
    this.#heard.delete(place);
    place.sender.connect(-1);
  }

  close(): void {
    for (const { socket } of this.#places) socket.destroy();
  }
}
