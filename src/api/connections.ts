import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { clientNetwork, isLoopback, parseAddress, parseCidr } from "../lib/ip.ts";

// Limits on HTTP connections, in total and per address. At a limit, an idle connection is evicted for a new one.

/** The minimum time between two log messages about refused connections. */
const LOG_MS = 60_000;

export interface ConnectionCaps {
  readonly max: number;
  readonly perAddressMax: number;
  readonly trustedProxies: readonly string[];
}

export interface ConnectionsOptions extends ConnectionCaps {
  /** A connection without any data for this long after opening is closed. */
  readonly firstRequestMs: number;
  /** The interval of the check for such connections. */
  readonly checkMs: number;
  readonly registry: Registry;
  readonly log: Logger;
}

type CloseReason = "per_address" | "full" | "evicted" | "silent";
const CLOSE_REASONS: readonly CloseReason[] = ["per_address", "full", "evicted", "silent"];

interface HttpConnection {
  readonly socket: Socket;
  readonly openedAt: number;
  readonly from: ConnectionClient;
  requestsInFlight: number;
}

/** An address, or an IPv6 /64. `idle` is ordered by the time at which connections became idle; the first is evicted first. */
interface ConnectionClient {
  readonly network: string;
  open: number;
  readonly idle: Set<HttpConnection>;
}

/** Counts and limits the connections of a server. */
export function limitConnections(app: FastifyInstance, options: ConnectionsOptions): void {
  const connections = new HttpConnections(options);
  connections.watch(app.server);
  app.addHook("onRequest", (request, reply, done) => {
    const end = connections.begin(request.raw.socket);
    reply.raw.once("close", end);
    done();
  });
  app.addHook("onClose", () => connections.close());
}

class HttpConnections {
  readonly #options: ConnectionsOptions;
  readonly #capOf: (address: string) => number;
  readonly #open = new Map<Socket, HttpConnection>();
  readonly #clients = new Map<string, ConnectionClient>();
  /** Connections without a request so far, oldest first. They are evicted first. */
  readonly #silent = new Set<HttpConnection>();
  /** Idle keep-alive connections. */
  readonly #keepAlive = new Set<HttpConnection>();
  readonly #closed: Counter<"reason">;
  readonly #timer: NodeJS.Timeout;
  #loggedAt = -Infinity;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#capOf = connectionCaps(options);
    const { registry, checkMs } = options;
    const open = this.#open;
    new Gauge({
      name: "tocsin_http_connections",
      help: "Open HTTP connections",
      registers: [registry],
      collect() {
        this.set(open.size);
      },
    });
    this.#closed = new Counter({
      name: "tocsin_http_connections_closed_total",
      help: "HTTP connections refused or closed, by reason: per_address, full, evicted, silent",
      labelNames: ["reason"],
      registers: [registry],
    });
    for (const reason of CLOSE_REASONS) this.#closed.inc({ reason }, 0);
    this.#timer = setInterval(() => this.#closeSilent(), checkMs).unref();
  }

  watch(server: Server): void {
    server.on("connection", (socket) => this.#admit(socket));
  }

  /** Marks a connection as busy with a request. The returned function is called when the request is answered. */
  begin(socket: Socket): () => void {
    const connection = this.#open.get(socket);
    if (!connection) return () => undefined;
    connection.requestsInFlight++;
    this.#silent.delete(connection);
    this.#keepAlive.delete(connection);
    connection.from.idle.delete(connection);
    return () => {
      if (--connection.requestsInFlight > 0 || !this.#open.has(socket)) return;
      this.#keepAlive.add(connection);
      connection.from.idle.add(connection);
    };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #admit(socket: Socket): void {
    // Closed already.
    if (socket.remoteAddress === undefined) return void socket.destroy();
    const { max } = this.#options;
    const network = clientNetwork(socket.remoteAddress);
    const from = this.#clients.get(network) ?? { network, open: 0, idle: new Set() };
    if (from.open >= this.#capOf(socket.remoteAddress)) {
      const [longestIdle] = from.idle;
      if (!longestIdle) return this.#drop(socket, "per_address");
      this.#drop(longestIdle.socket, "per_address");
    } else if (this.#open.size >= max) {
      const [longestIdle] = this.#silent.size > 0 ? this.#silent : this.#keepAlive;
      if (!longestIdle) return this.#drop(socket, "full");
      this.#drop(longestIdle.socket, "evicted");
    }
    const connection: HttpConnection = { socket, openedAt: performance.now(), from, requestsInFlight: 0 };
    from.open++;
    from.idle.add(connection);
    this.#clients.set(network, from);
    this.#open.set(socket, connection);
    this.#silent.add(connection);
    socket.once("close", () => this.#forget(connection));
  }

  #drop(socket: Socket, reason: CloseReason): void {
    const connection = this.#open.get(socket);
    // Removed now; the close event comes later.
    if (connection) this.#forget(connection);
    socket.destroy();
    this.#closed.inc({ reason });
    const now = performance.now();
    if (reason === "silent" || now - this.#loggedAt < LOG_MS) return;
    this.#loggedAt = now;
    this.#options.log.warn(
      { reason, connections: this.#open.size },
      "HTTP connection limit reached; new or idle connections are closed",
    );
  }

  #forget(connection: HttpConnection): void {
    if (!this.#open.delete(connection.socket)) return;
    const { from } = connection;
    this.#silent.delete(connection);
    this.#keepAlive.delete(connection);
    from.idle.delete(connection);
    if (--from.open === 0) this.#clients.delete(from.network);
  }

  /** Partly received headers have their own timeout, which sends a response. */
  #closeSilent(): void {
    const before = performance.now() - this.#options.firstRequestMs;
    for (const { socket, openedAt } of this.#silent) {
      if (openedAt > before) return;
      if (socket.bytesRead === 0) this.#drop(socket, "silent");
    }
  }
}

const PROXY_NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};

/**
 * The connection limit of an address. A trusted proxy represents many clients and has no own limit. Loopback may be a proxy
 * that is not configured as trusted, so it gets half of all connections.
 */
export function connectionCaps({ max, perAddressMax, trustedProxies }: ConnectionCaps): (address: string) => number {
  const ranges = trustedProxies
    .flatMap((proxy) => PROXY_NETWORKS[proxy] ?? [proxy])
    .map(parseCidr)
    .filter((range) => range !== undefined);
  const loopbackMax = Math.max(perAddressMax, Math.floor(max / 2));
  return (address) => {
    const value = parseAddress(address);
    if (value !== undefined && ranges.some(({ from, to }) => value >= from && value <= to)) return max;
    return isLoopback(address) ? loopbackMax : perAddressMax;
  };
}
