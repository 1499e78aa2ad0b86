import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { MessageFraming } from "./framing.ts";
import type { ConnectionSlot, ConnectionSlots } from "../connection-slots.ts";
import type { LineSender, LineSenders } from "./line-sender.ts";
import { decodeLine } from "./line-text.ts";

// Open connections. Each is read as far as its sender's rate and queue allow, and paused until they allow more.

/** Time within which a line that has begun must end; otherwise the connection is cut. */
const INCOMPLETE_MS_MAX = 30_000;
/** Silence after which a message of presumed length counts as complete. */
const SETTLE_MS = 1000;
/** Interval at which paused and incomplete streams are checked. */
const CHECK_MS = 50;
/** Bytes read before the sender's limits are checked again; they hold as many messages if all are empty. */
const TURN_BYTES_MAX = 16 * 1024;

/** Traffic of a listener. */
export interface ListenerCounts {
  packets: number;
  bytes: number;
  connections: number;
}

export interface LineStreamsOptions {
  readonly lineBytesMax: number;
  readonly senders: LineSenders;
  readonly slots: ConnectionSlots<LineSender>;
  /** Announces that a sender has queued lines. */
  readonly activate: (sender: LineSender) => void;
  readonly now: () => number;
  readonly incompleteMsMax?: number;
}

interface LineConnection {
  readonly socket: Socket;
  readonly slot: ConnectionSlot<LineSender>;
  readonly framing: MessageFraming;
  /** The reason, if the server cut the connection. */
  cutReason: string | undefined;
  /** Start of the current incomplete line. */
  incompleteSinceMs: number | undefined;
}

export class LineStreams {
  readonly #options: LineStreamsOptions;
  /** Paused connections are in the order of their waiting time, the longest first. */
  readonly #connections = new Set<LineConnection>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: LineStreamsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#check(), CHECK_MS);
  }

  read(socket: Socket, slot: ConnectionSlot<LineSender>, counts: ListenerCounts): void {
    const { now } = this.#options;
    const { sender } = slot;
    const framing = this.#framingOf(socket, sender, counts, () => connection.cutReason);
    const connection: LineConnection = { socket, slot, framing, cutReason: undefined, incompleteSinceMs: undefined };
    this.#connections.add(connection);
    counts.connections++;
    let ended = false;
    let isFirst = true;
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      if (isFirst && isTlsHello(chunk)) {
        const message = "the sender speaks TLS on a plain-text port: use the port of syslog_tls_port";
        sender.refuse("not_text", message, chunk, now());
        socket.destroy();
        return;
      }
      isFirst = false;
      counts.bytes += this.#readTurns(connection, chunk);
    });
    socket.on("end", () => {
      ended = true;
      // Node does not report TLS's close_notify, so an orderly end looks the same as a truncated stream.
      framing.end(!(socket instanceof TLSSocket));
      socket.end();
    });
    socket.on("close", () => {
      if (!ended) framing.end(false);
      this.#connections.delete(connection);
      counts.connections--;
    });
  }

  #framingOf(
    socket: Socket,
    sender: LineSender,
    counts: ListenerCounts,
    cutReason: () => string | undefined,
  ): MessageFraming {
    const { lineBytesMax, now, activate, senders } = this.#options;
    const from = senders.addressOf(sender, socket.remoteAddress ?? "");
    const count = () => {
      counts.packets++;
      sender.count();
    };
    return new MessageFraming(
      { bytesMax: lineBytesMax, counted: sender.collector !== "eve" },
      {
        take: (message) => {
          count();
          const text = decodeLine(message);
          if (!text) refuseMessage(sender, message, lineBytesMax, now());
          else {
            sender.put({ ...text, atMs: now(), from });
            activate(sender);
          }
        },
        refuse: (reason, head) => {
          count();
          if (reason === "too_long") refuseTooLong(sender, head, lineBytesMax, now());
          else sender.refuse(reason, cutReason() ?? "the connection ended within a message", head, now());
        },
        skipEmpty: () => {
          count();
          sender.nothing++;
        },
      },
    );
  }

  /** Reads as many bytes as the sender may send now, returns their number, and pushes the rest back into the socket. */
  #readTurns(connection: LineConnection, chunk: Buffer): number {
    const { now, slots } = this.#options;
    const { socket, slot, framing } = connection;
    const { sender } = slot;
    const { ended: before } = framing;
    sender.lastSeenMs = now();
    let read = 0;
    // Checked before the first read too: another connection of the sender may have used up its rate.
    let mustPause = sender.mustPause(now());
    while (read < chunk.length && !mustPause) {
      const turn = chunk.subarray(read, read + TURN_BYTES_MAX);
      framing.push(turn);
      read += turn.length;
      mustPause = sender.mustPause(now());
    }
    if (framing.ended > before) slots.touch(slot);
    // If a message ended in this chunk, the incomplete one began in it.
    if (!framing.isIncomplete) connection.incompleteSinceMs = undefined;
    else if (framing.ended > before || connection.incompleteSinceMs === undefined) connection.incompleteSinceMs = now();
    if (mustPause) {
      slot.isPaused = true;
      socket.pause();
      if (read < chunk.length) socket.unshift(chunk.subarray(read));
      if (read > 0) this.#moveToEnd(connection);
    }
    return read;
  }

  /** Lets the sender's other connections resume first. */
  #moveToEnd(connection: LineConnection): void {
    this.#connections.delete(connection);
    this.#connections.add(connection);
  }

  /** Resumes paused streams that may be read again, and cuts those whose line does not end. */
  #check(): void {
    const { now, slots, incompleteMsMax = INCOMPLETE_MS_MAX } = this.#options;
    const nowMs = now();
    for (const connection of this.#connections) {
      const { socket, slot, framing, incompleteSinceMs } = connection;
      if (slot.isPaused) {
        // The server paused the stream, so the delay is not the sender's fault.
        if (incompleteSinceMs !== undefined) connection.incompleteSinceMs = nowMs;
        if (!slot.sender.mayResume(nowMs)) continue;
        slot.isPaused = false;
        // Nor does the pause count as silence.
        if (slot.lastMessageAtMs !== undefined) slots.touch(slot);
        socket.resume();
        continue;
      }
      const incompleteMs = incompleteSinceMs === undefined ? 0 : nowMs - incompleteSinceMs;
      if (incompleteMs > SETTLE_MS) framing.settle();
      if (!framing.isIncomplete) connection.incompleteSinceMs = undefined;
      else if (incompleteMs > incompleteMsMax) {
        connection.cutReason = `a line did not end within ${incompleteMsMax / 1000} s of its first byte`;
        socket.destroy();
      }
    }
  }

  close(): void {
    clearInterval(this.#timer);
    for (const { socket, framing } of this.#connections) {
      // A partial line will never be completed: read it as it is.
      framing.end(true);
      socket.destroy();
    }
  }
}

/** Refuses a message that is too long or not text. */
export function refuseMessage(sender: LineSender, message: Buffer, bytesMax: number, atMs: number): void {
  if (message.length > bytesMax) refuseTooLong(sender, message, bytesMax, atMs);
  else sender.refuse("not_text", "a message is not text", message, atMs);
}

function refuseTooLong(sender: LineSender, head: Buffer, bytesMax: number, atMs: number): void {
  sender.refuse("too_long", `a message is longer than ${bytesMax} bytes`, head, atMs);
}

/** True for the first record of a TLS handshake, of any version. */
function isTlsHello(chunk: Buffer): boolean {
  return chunk[0] === 0x16 && chunk[1] === 0x03;
}
