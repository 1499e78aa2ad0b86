import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { clientNetwork, isLoopback, parseAddress, parseCidr } from "../lib/ip.ts";

// How many connections there may be, in all and from one address. One without a request in flight makes room for another.

/** Between two log lines about connections that were turned away. */
const LOG_MS = 60_000;

export interface ConnectionCaps {
  readonly max: number;
  readonly perAddressMax: number;
  readonly trustedProxies: readonly string[];
}

export interface ConnectionsOptions extends ConnectionCaps {
  /** A connection on which nothing was sent in this time is closed. */
  readonly firstRequestMs: number;
  /** Between two looks for such connections. */
  readonly lookMs: number;
  readonly registry: Registry;
  readonly log: Logger;
}

type Reason = "per_address" | "full" | "evicted" | "silent";
const REASONS: readonly Reason[] = ["per_address", "full", "evicted", "silent"];

interface Connection {
  readonly socket: Socket;
  readonly openedAt: number;
  readonly from: Client;
  requestsInFlight: number;
}

/** An address, or over IPv6 a /64. Sets keep the order in which connections became idle: the first one goes first. */
interface Client {
  readonly network: string;
  open: number;
  readonly idle: Set<Connection>;
}

/** Counts and limits the connections of a server. */
export function limitConnections(app: FastifyInstance, options: ConnectionsOptions): void {
  const connections = new Connections(options);
  connections.watch(app.server);
  app.addHook("onRequest", (request, reply, done) => {
    const end = connections.begin(request.raw.socket);
    reply.raw.once("close", end);
    done();
  });
  app.addHook("onClose", () => connections.close());
}

class Connections {
  readonly #options: ConnectionsOptions;
  readonly #open = new Map<Socket, Connection>();
  readonly #clients = new Map<string, Client>();
  /** Those that have asked nothing yet, the oldest first: the first to be closed when there is no room. */
  readonly #silent = new Set<Connection>();
  /** Those that have been answered and are kept alive. */
  readonly #kept = new Set<Connection>();
  readonly #closed: Counter<"reason">;
  readonly #timer: NodeJS.Timeout;
  #loggedAt = -Infinity;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    const { registry, lookMs } = options;
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
      help: "HTTP connections that were turned away or closed to make room: per_address, full, evicted, silent",
      labelNames: ["reason"],
      registers: [registry],
    });
    for (const reason of REASONS) this.#closed.inc({ reason }, 0);
    this.#timer = setInterval(() => this.#closeSilent(), lookMs).unref();
  }

  watch(server: Server): void {
    server.on("connection", (socket) => this.#admit(socket));
  }

  /** A request has come in on a connection; what it gives back is called when it is answered. */
  begin(socket: Socket): () => void {
    const connection = this.#open.get(socket);
    if (!connection) return () => undefined;
    connection.requestsInFlight++;
    this.#silent.delete(connection);
    this.#kept.delete(connection);
    connection.from.idle.delete(connection);
    return () => {
      if (--connection.requestsInFlight > 0 || !this.#open.has(socket)) return;
      this.#kept.add(connection);
      connection.from.idle.add(connection);
    };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #admit(socket: Socket): void {
    // Gone before we could look.
    if (socket.remoteAddress === undefined) return void socket.destroy();
    const { max } = this.#options;
    const network = clientNetwork(socket.remoteAddress);
    const from = this.#clients.get(network) ?? { network, open: 0, idle: new Set() };
    if (from.open >= connectionCap(socket.remoteAddress, this.#options)) {
      const [longestIdle] = from.idle;
      if (!longestIdle) return this.#drop(socket, "per_address");
      this.#drop(longestIdle.socket, "per_address");
    } else if (this.#open.size >= max) {
      const [longestIdle] = this.#silent.size > 0 ? this.#silent : this.#kept;
      if (!longestIdle) return this.#drop(socket, "full");
      this.#drop(longestIdle.socket, "evicted");
    }
    const connection: Connection = { socket, openedAt: performance.now(), from, requestsInFlight: 0 };
    from.open++;
    from.idle.add(connection);
    this.#clients.set(network, from);
    this.#open.set(socket, connection);
    this.#silent.add(connection);
    socket.once("close", () => this.#forget(connection));
  }

  #drop(socket: Socket, reason: Reason): void {
    const connection = this.#open.get(socket);
    // Counted as closed at once: its close event comes later.
    if (connection) this.#forget(connection);
    socket.destroy();
    this.#closed.inc({ reason });
    const now = performance.now();
    if (reason === "silent" || now - this.#loggedAt < LOG_MS) return;
    this.#loggedAt = now;
    this.#options.log.warn(
      { reason, connections: this.#open.size },
      "there are too many HTTP connections: some are turned away, or closed while they are idle",
    );
  }

  #forget(connection: Connection): void {
    if (!this.#open.delete(connection.socket)) return;
    const { from } = connection;
    this.#silent.delete(connection);
    this.#kept.delete(connection);
    from.idle.delete(connection);
    if (--from.open === 0) this.#clients.delete(from.network);
  }

  /** Headers that have begun have a time limit of their own, and are answered when it is over. */
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
 * How many connections an address may have. A trusted proxy speaks for many clients, and so may whatever is on this
 * machine: a proxy that nobody has named yet is not strangled, and still leaves half for those who come directly.
 */
export function connectionCap(address: string, { max, perAddressMax, trustedProxies }: ConnectionCaps): number {
  if (isWithin(address, trustedProxies)) return max;
  return isLoopback(address) ? Math.max(perAddressMax, Math.floor(max / 2)) : perAddressMax;
}

function isWithin(address: string, proxies: readonly string[]): boolean {
  const value = parseAddress(address);
  if (value === undefined) return false;
  return proxies
    .flatMap((proxy) => PROXY_NETWORKS[proxy] ?? [proxy])
    .map(parseCidr)
    .some((range) => range !== undefined && value >= range.from && value <= range.to);
}
