import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { Framing } from "./framing.ts";
import type { Place, Places } from "../places.ts";
import type { Sender, Senders } from "./sender.ts";
import { textOf } from "./text.ts";

// The connections that are open, read in turns: as much of each as its sender may send now, and the rest when it may send more.

/** A line that has begun must end within this time: connections are not to be held by those who never finish. */
const UNFINISHED_MS_MAX = 30_000;
/** What may be whole, and is so if nothing follows, waits for that so long. */
const SETTLE_MS = 1000;
/** How often streams that wait are looked at. */
const LOOK_MS = 50;
/** So much is read before it is looked again whether the sender may go on: in it are as many messages, if all are empty. */
const TURN_BYTES_MAX = 16 * 1024;

/** What has come by a listener. */
export interface Counted {
  packets: number;
  bytes: number;
  connections: number;
}

export interface StreamsOptions {
  readonly lineBytesMax: number;
  readonly senders: Senders;
  readonly places: Places<Sender>;
  /** This sender has lines that wait. */
  readonly wake: (sender: Sender) => void;
  readonly now: () => number;
  readonly unfinishedMsMax?: number;
}

interface Connection {
  readonly socket: Socket;
  readonly place: Place<Sender>;
  readonly framing: Framing;
  /** Why we have ended it, where it was us. */
  cutFor: string | undefined;
  /** Since when a line has begun and not ended. */
  unfinishedSinceMs: number | undefined;
}

export class Streams {
  readonly #options: StreamsOptions;
  /** Of those that wait, the one that has waited longest first. */
  readonly #connections = new Set<Connection>();
  readonly #looking: NodeJS.Timeout;

  constructor(options: StreamsOptions) {
    this.#options = options;
    this.#looking = setInterval(() => this.#look(), LOOK_MS);
  }

  read(socket: Socket, place: Place<Sender>, counted: Counted): void {
    const { now } = this.#options;
    const { sender } = place;
    const framing = this.#framingOf(socket, sender, counted, () => connection.cutFor);
    const connection: Connection = { socket, place, framing, cutFor: undefined, unfinishedSinceMs: undefined };
    this.#connections.add(connection);
    counted.connections++;
    let ended = false;
    let isFirst = true;
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      if (isFirst && isTlsHello(chunk)) {
        const message = "it speaks TLS to a port that is not for it: that has a port of its own (syslog_tls_port)";
        sender.refuse("not_text", message, chunk, now());
        socket.destroy();
        return;
      }
      isFirst = false;
      counted.bytes += this.#readTurns(connection, chunk);
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

  #framingOf(socket: Socket, sender: Sender, counted: Counted, cutFor: () => string | undefined): Framing {
    const { lineBytesMax, now, wake, senders } = this.#options;
    const from = senders.addressOf(sender, socket.remoteAddress ?? "");
    const count = () => {
      counted.packets++;
      sender.count();
    };
    return new Framing(
      { bytesMax: lineBytesMax, counted: sender.collector !== "eve" },
      {
        take: (message) => {
          count();
          const text = textOf(message);
          if (!text) refuseMessage(sender, message, lineBytesMax, now());
          else {
            sender.put({ ...text, atMs: now(), from });
            wake(sender);
          }
        },
        refuse: (reason, beginning) => {
          count();
          if (reason === "too_long") refuseTooLong(sender, beginning, lineBytesMax, now());
          else sender.refuse(reason, cutFor() ?? "the connection ended within a message", beginning, now());
        },
        pass: () => {
          count();
          sender.nothing++;
        },
      },
    );
  }

  /** As much as the sender may send now, in bytes; the rest goes back until it may send more. */
  #readTurns(connection: Connection, chunk: Buffer): number {
    const { now, places } = this.#options;
    const { socket, place, framing } = connection;
    const { sender } = place;
    const { ended: before } = framing;
    sender.lastSeenMs = now();
    let read = 0;
    // Also before the first: another of its connections may have used up what it has.
    let mustWait = sender.mustWait(now());
    while (read < chunk.length && !mustWait) {
      const turn = chunk.subarray(read, read + TURN_BYTES_MAX);
      framing.push(turn);
      read += turn.length;
      mustWait = sender.mustWait(now());
    }
    if (framing.ended > before) places.hear(place);
    // What is under way now has begun in this chunk, where anything has ended in it.
    if (!framing.isUnfinished) connection.unfinishedSinceMs = undefined;
    else if (framing.ended > before || connection.unfinishedSinceMs === undefined) connection.unfinishedSinceMs = now();
    if (mustWait) {
      place.isWaiting = true;
      socket.pause();
      if (read < chunk.length) socket.unshift(chunk.subarray(read));
      if (read > 0) this.#goLast(connection);
    }
    return read;
  }

  /** The others of its sender have their turn first when there is something to be had again. */
  #goLast(connection: Connection): void {
    this.#connections.delete(connection);
    this.#connections.add(connection);
  }

  /** Streams that had to wait are read on when they may be, and those that never finish a line are cut. */
  #look(): void {
    const { now, places, unfinishedMsMax = UNFINISHED_MS_MAX } = this.#options;
    const nowMs = now();
    for (const connection of this.#connections) {
      const { socket, place, framing, unfinishedSinceMs } = connection;
      if (place.isWaiting) {
        // It is we who do not read: that is no fault of the sender's.
        if (unfinishedSinceMs !== undefined) connection.unfinishedSinceMs = nowMs;
        if (!place.sender.mayGoOn(nowMs)) continue;
        place.isWaiting = false;
        // Nor is the time that it has waited its silence.
        if (place.heardAtMs !== undefined) places.hear(place);
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

  close(): void {
    clearInterval(this.#looking);
    for (const { socket, framing } of this.#connections) {
      // What is half here is as whole as it will ever be.
      framing.end(true);
      socket.destroy();
    }
  }
}

/** Refuses a message that is too long or else no text. */
export function refuseMessage(sender: Sender, message: Buffer, bytesMax: number, atMs: number): void {
  if (message.length > bytesMax) refuseTooLong(sender, message, bytesMax, atMs);
  else sender.refuse("not_text", "a message is not text", message, atMs);
}

function refuseTooLong(sender: Sender, beginning: Buffer, bytesMax: number, atMs: number): void {
  sender.refuse("too_long", `a message is longer than ${bytesMax} bytes`, beginning, atMs);
}

/** A record of the kind that begins a handshake, of any version. */
function isTlsHello(chunk: Buffer): boolean {
  return chunk[0] === 0x16 && chunk[1] === 0x03;
}
