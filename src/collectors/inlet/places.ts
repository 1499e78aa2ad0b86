import type { Socket } from "node:net";
import type { Sender } from "./sender.ts";

// The places that there are for connections. While some are free anybody may be silent for ever; when all are taken, whoever says
// nothing makes room for the next: places are not to be held by those who do nothing with them.

/** One that has sent something may be silent for so long without losing its place. */
const MUTE_MS_MAX = 60_000;

export interface Place {
  readonly socket: Socket;
  readonly sender: Sender;
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

export class Places {
  readonly #options: PlacesOptions;
  readonly #places = new Set<Place>();
  /** Those that have never sent a message, the one that came first first. */
  readonly #mute = new Set<Place>();
  /** The others, the one that was heard longest ago first. */
  readonly #heard = new Set<Place>();

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  /** A place until the connection is closed; or why there is none. */
  take(socket: Socket, sender: Sender): Place | string {
    const { connectionsMax, connectionsPerSenderMax, now } = this.#options;
    const { connections } = sender.share;
    if (connections >= connectionsPerSenderMax)
      return `it, or the IPv6 network that it is in, has ${connections} open already`;
    if (this.#places.size >= connectionsMax && !this.#makeRoom()) return `all ${connectionsMax} connections are taken`;
    const place = { socket, sender, openedAtMs: now(), heardAtMs: undefined, isWaiting: false, isLost: false };
    this.#places.add(place);
    // What is on this machine is not sent by strangers, and an IDS may be silent for hours.
    if (sender.transport !== "unix") this.#mute.add(place);
    sender.connect(1);
    socket.on("close", () => this.#leave(place));
    return place;
  }

  /** A message has come in by it. */
  hear(place: Place): void {
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

  #longestUnheard(nowMs: number): Place | undefined {
    for (const place of this.#heard) {
      if (nowMs - place.heardAtMs! <= MUTE_MS_MAX) return undefined;
      if (!place.isWaiting) return place;
    }
    return undefined;
  }

  #leave(place: Place): void {
    if (!this.#places.delete(place)) return;
    this.#mute.delete(place);
    this.#heard.delete(place);
    place.sender.connect(-1);
  }

  close(): void {
    for (const { socket } of this.#places) socket.destroy();
  }
}
