import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect as connectTcp, isIPv6, type Socket } from "node:net";
import { connect as connectTls, getCACertificates } from "node:tls";
import { lookup } from "node:dns/promises";

// Sends lines to a syslog server: UDP with a datagram each (RFC 5426), TCP (RFC 6587) and TLS (RFC 5425) with octet counting.
// Syslog has no answer: lines count as sent when the system has taken them and the server did not break the connection.

const CONNECT_MS_MAX = 15_000;
/** How long a server may take to close the connection, after which it would have complained. */
const CLOSE_MS_MAX = 2000;
/** A datagram that receivers must be able to take, and a line that those of streams usually do. */
const DATAGRAM_BYTES_MAX = 2048;
const FRAME_BYTES_MAX = 8192;

export interface SyslogServer {
  readonly host: string;
  readonly port: number;
  readonly transport: "udp" | "tcp" | "tls";
  /** Additional trusted certificate authorities, in PEM. */
  readonly certificates?: string | undefined;
}

export function lineBytesMax({ transport }: Pick<SyslogServer, "transport">): number {
  return transport === "udp" ? DATAGRAM_BYTES_MAX : FRAME_BYTES_MAX;
}

/** The lines were not sent, or not all of them. */
export class SyslogFailure extends Error {
  /** True if the server may have got some of the lines. */
  readonly mayHaveArrived: boolean;

  constructor(cause: unknown, mayHaveArrived: boolean) {
    const { message, code } = cause as NodeJS.ErrnoException;
    super(message || code || "no connection", { cause });
    this.name = "SyslogFailure";
    this.mayHaveArrived = mayHaveArrived;
  }
}

/** Rejects with a SyslogFailure. */
export async function sendSyslog(server: SyslogServer, lines: readonly string[], signal: AbortSignal): Promise<void> {
  if (server.transport === "udp") return sendDatagrams(server, lines, signal);
  const socket = await openStream(server, signal);
  const stop = () => socket.destroy(new Error("the attempt was stopped"));
  signal.addEventListener("abort", stop);
  try {
    const frames = lines.map((line) => `${Buffer.byteLength(line)} ${line}`);
    // A server that closes at once resets the connection: its error comes before `close`.
    const closed = Promise.withResolvers<void>();
    socket.once("close", () => closed.resolve());
    const failed = once(socket, "error").then(([error]) => Promise.reject(error as Error));
    // An error after the last line was taken changes nothing.
    failed.catch(() => undefined);
    const taken = new Promise<void>((resolve) => socket.end(frames.join(""), resolve));
    await Promise.race([failed, taken]);
    const timer = setTimeout(() => closed.resolve(), CLOSE_MS_MAX);
    await Promise.race([failed, closed.promise]).finally(() => clearTimeout(timer));
  } catch (error) {
    throw new SyslogFailure(error, true);
  } finally {
    signal.removeEventListener("abort", stop);
    socket.on("error", () => undefined);
    socket.destroy();
  }
}

async function openStream({ host, port, transport, certificates }: SyslogServer, signal: AbortSignal): Promise<Socket> {
  const isTls = transport === "tls";
  const socket = isTls
    ? connectTls({
        host,
        port,
        servername: /^[\d.]+$|:/.test(host) ? "" : host,
        ...(certificates !== undefined && { ca: [...getCACertificates("default"), certificates] }),
      })
    : connectTcp({ host, port });
  const timeout = setTimeout(
    () => socket.destroy(new Error(`no connection within ${CONNECT_MS_MAX / 1000} s`)),
    CONNECT_MS_MAX,
  );
  const stop = () => socket.destroy(new Error("the attempt was stopped"));
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    await once(socket, isTls ? "secureConnect" : "connect");
    // Nothing is read: what a server says is no part of syslog.
    socket.resume();
    return socket;
  } catch (error) {
    socket.on("error", () => undefined);
    socket.destroy();
    throw new SyslogFailure(error, false);
  } finally {
    clearTimeout(timeout);
    signal.removeEventListener("abort", stop);
  }
}

async function sendDatagrams({ host, port }: SyslogServer, lines: readonly string[], signal: AbortSignal) {
  let sent = 0;
  try {
    const { address } = await lookup(host);
    const socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
    try {
      for (const line of lines) {
        signal.throwIfAborted();
        await new Promise<void>((resolve, reject) =>
          socket.send(line, port, address, (error) => (error ? reject(error) : resolve())),
        );
        sent++;
      }
    } finally {
      socket.close();
    }
  } catch (error) {
    throw new SyslogFailure(error, sent > 0);
  }
}
