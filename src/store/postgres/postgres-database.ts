import { setTimeout as sleep } from "node:timers/promises";
import { Client, Pool, type ClientBase, type ClientConfig, type PoolClient, type QueryResult } from "pg";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { parsePostgresUrl, shownPostgresHost, type PostgresHost } from "../../lib/postgres-url.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { EXACT_TYPES } from "./exact-types.ts";
import { readPassword, readTls, type PostgresSettings } from "./postgres-address.ts";
import {
  asUnavailable,
  ConnectFailure,
  isConnectionUnusable,
  isWaitedOut,
  retryReason,
  StandbyServer,
} from "./postgres-failure.ts";

// The connections to PostgreSQL: a bounded pool, transactions that are run again after a conflict, and the choice of the
// server that accepts writes.

/** Calls that wait for a connection; more are refused. */
const WAITING_MAX = 2000;
/** How often a transaction is tried. */
const ATTEMPTS_MAX = 8;
/** The pause before the second attempt; it doubles with each, and a random part of it is waited. */
const PAUSE_MS = 4;
const IDLE_MS = 60_000;
const KEEP_ALIVE_MS = 10_000;
/**
 * The server ends a transaction that its client leaves idle for so long. A paused process must not keep the rows that it has
 * locked, its lease among them.
 */
const IDLE_IN_TRANSACTION_MS = 4000;
/** The client waits a little longer than the server's own timeout: a server that is paused answers nothing. */
const ANSWER_MS = 2000;

/** A value of a statement's parameter. */
export type PostgresValue =
  | string
  | number
  | bigint
  | boolean
  | Uint8Array
  | null
  | readonly string[]
  | readonly number[];

export interface PostgresQueries {
  query<Row extends object>(text: string, values?: readonly PostgresValue[]): Promise<Row[]>;
  /** Returns the number of rows that were changed. */
  run(text: string, values?: readonly PostgresValue[]): Promise<number>;
}

/** What stores use of the database. */
export interface PostgresTransactions extends PostgresQueries {
  transact<Value>(work: (transaction: PostgresQueries) => Promise<Value>, options?: TransactionOptions): Promise<Value>;
}

export interface TransactionOptions {
  readonly isolation?: "READ COMMITTED" | "REPEATABLE READ" | "SERIALIZABLE";
  /** False: a power failure may lose the change, which then costs no wait for the disk. */
  readonly isDurable?: boolean;
  /** Replaces the timeout of statements. */
  readonly statementMs?: number;
}

export interface PostgresDatabaseOptions {
  readonly settings: PostgresSettings;
  readonly registry: Registry;
  readonly log: Logger;
}

/** A client that knows which of the hosts it is connected to. */
export class HostClient extends Client {
  readonly hostNumber: number;
  constructor(config: ClientConfig, hosts: readonly PostgresHost[], hostNumber: number) {
    super({ ...config, ...hosts[hostNumber]! });
    this.hostNumber = hostNumber;
  }
}

type PooledClient = PoolClient & HostClient;

export class PostgresDatabase implements PostgresTransactions {
  readonly #pool: Pool;
  readonly #config: ClientConfig;
  readonly #hosts: readonly PostgresHost[];
  readonly #statementMs: number;
  readonly #failures: Counter<"reason">;
  readonly #retries: Counter<"reason">;
  /** The host that accepted writes last. */
  #hostNumber = 0;
  #isClosing = false;
  /** A write was refused for want of room. */
  #isFull = false;

  constructor({ settings, registry, log }: PostgresDatabaseOptions) {
    const address = parsePostgresUrl(settings.url);
    if (!address) throw new Error("postgres.url is not the URL of a PostgreSQL database");
    const { hosts, user, password, database } = address;
    this.#hosts = hosts;
    this.#statementMs = settings.statementSeconds * 1000;
    this.#config = {
      user,
      // An empty password keeps the client from looking for a file of passwords in the home folder.
      password: readPassword(settings, password) ?? "",
      database,
      ssl: readTls(settings) ?? false,
      application_name: "tocsin",
      // Compiling a statement takes longer than most of them run, and a planner without statistics does it often.
      options: "-c jit=off",
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      connectionTimeoutMillis: settings.connectSeconds * 1000,
      statement_timeout: this.#statementMs,
      query_timeout: this.#statementMs + ANSWER_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      types: EXACT_TYPES,
    };
    const newClient = () => this.newClient();
    this.#pool = new Pool({
      ...this.#config,
      max: settings.poolMax,
      idleTimeoutMillis: IDLE_MS,
      // The pool constructs its clients; a constructor may return another object.
      Client: function (this: unknown) {
        return newClient();
      } as unknown as new () => ClientBase,
      onConnect: (client) => this.requirePrimary(client as HostClient),
    });
    this.#pool.on("error", (error) => {
      log.warn({ err: error }, "an idle connection to PostgreSQL was lost");
    });
    this.#failures = new Counter({
      name: "tocsin_postgres_failures_total",
      help: "Calls that PostgreSQL could not serve, by reason",
      labelNames: ["reason"],
      registers: [registry],
    });
    this.#retries = new Counter({
      name: "tocsin_postgres_retries_total",
      help: "Transactions that were run again, by reason",
      labelNames: ["reason"],
      registers: [registry],
    });
    const pool = this.#pool;
    new Gauge({
      name: "tocsin_postgres_connections",
      help: "Connections of the pool, and calls that wait for one",
      labelNames: ["state"],
      registers: [registry],
      collect() {
        this.set({ state: "idle" }, pool.idleCount);
        this.set({ state: "busy" }, pool.totalCount - pool.idleCount);
        this.set({ state: "waiting" }, pool.waitingCount);
      },
    });
  }

  /** The hosts, for messages. */
  get shownHosts(): string[] {
    return this.#hosts.map(shownPostgresHost);
  }

  /** A client for the host that accepted writes last. It is not connected yet. */
  newClient(): HostClient {
    const client = new HostClient(this.#config, this.#hosts, this.#hostNumber);
    // An error while no statement runs, such as that of a server which shuts down, makes the next statement fail. Unheard, it
    // would end the process.
    client.on("error", () => undefined);
    const connect = client.connect.bind(client) as (callback: (error?: Error) => void) => void;
    // The pool connects with a callback, everybody else with a promise.
    const connecting = (callback: (error?: Error) => void) =>
      connect((error) => {
        if (error) this.passOver(client);
        callback(error);
      });
    client.connect = ((callback?: (error?: Error) => void) => {
      if (callback) return connecting(callback);
      return new Promise<void>((resolve, reject) => {
        connecting((error) => (error ? reject(error) : resolve()));
      });
    }) as HostClient["connect"];
    return client;
  }

  /** Rejects if the client is connected to a standby, and has the next client try the next host. */
  async requirePrimary(client: HostClient): Promise<void> {
    const { rows } = await client.query<{ transaction_read_only: string }>("SHOW transaction_read_only");
    if (rows[0]?.transaction_read_only === "off") return;
    this.passOver(client);
    throw new StandbyServer();
  }

  /** Has the next client try the next host, if this one is connected to the present one. */
  passOver({ hostNumber }: HostClient): void {
    if (hostNumber === this.#hostNumber) this.#hostNumber = (hostNumber + 1) % this.#hosts.length;
  }

  /** Runs one statement, which is a transaction by itself. */
  async query<Row extends object>(text: string, values: readonly PostgresValue[] = []): Promise<Row[]> {
    return (await this.#runAlone(text, values)).rows as Row[];
  }

  async run(text: string, values: readonly PostgresValue[] = []): Promise<number> {
    return (await this.#runAlone(text, values)).rowCount ?? 0;
  }

  #runAlone(text: string, values: readonly PostgresValue[]): Promise<QueryResult> {
    return this.#retrying(() => this.#withClient((client) => client.query(text, values as unknown[])));
  }

  /**
   * Runs the work in one transaction. After a serialization failure or a deadlock the work is run again, so it changes nothing
   * outside the database. If the connection is lost during the commit, nobody knows whether it happened: the call rejects
   * with StoreUnavailable.
   */
  transact<Value>(
    work: (transaction: PostgresQueries) => Promise<Value>,
    options: TransactionOptions = {},
  ): Promise<Value> {
    return this.#retrying(() => this.#withClient((client) => this.#attempt(client, work, options)));
  }

  async #attempt<Value>(
    client: PooledClient,
    work: (transaction: PostgresQueries) => Promise<Value>,
    { isolation = "READ COMMITTED", isDurable = true, statementMs }: TransactionOptions,
  ): Promise<Value> {
    const query = async (text: string, values: readonly PostgresValue[] = []): Promise<QueryResult> => {
      const config = {
        text,
        values: values as unknown[],
        query_timeout: (statementMs ?? this.#statementMs) + ANSWER_MS,
      };
      return client.query(config);
    };
    try {
      const limits = statementMs === undefined ? "" : `; SET LOCAL statement_timeout = ${statementMs}`;
      await client.query(
        `BEGIN ISOLATION LEVEL ${isolation}${isDurable ? "" : "; SET LOCAL synchronous_commit = off"}${limits}`,
      );
    } catch (error) {
      // Nothing has happened yet.
      throw isConnectionUnusable(error) ? new StaleConnection(error) : error;
    }
    try {
      const value = await work({
        query: async <Row extends object>(text: string, values?: readonly PostgresValue[]) =>
          (await query(text, values)).rows as Row[],
        run: async (text, values) => (await query(text, values)).rowCount ?? 0,
      });
      const { command } = await query("COMMIT");
      if (command !== "COMMIT") throw new Error("a statement of the transaction had failed, so it was rolled back");
      return value;
    } catch (error) {
      if (!isConnectionUnusable(error)) await client.query("ROLLBACK").catch(() => void breakOff(client));
      throw error;
    }
  }

  async #retrying<Value>(work: () => Promise<Value>): Promise<Value> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const reason = error instanceof StaleConnection ? "connection" : retryReason(error);
        if (reason === undefined || attempt === ATTEMPTS_MAX || this.#isClosing) {
          throw this.#failed(error instanceof StaleConnection ? error.cause : error);
        }
        this.#retries.inc({ reason });
        await sleep(Math.random() * PAUSE_MS * 2 ** attempt);
      }
    }
  }

  async #withClient<Value>(work: (client: PooledClient) => Promise<Value>): Promise<Value> {
    const client = await this.#connect();
    let failure: unknown;
    try {
      return await work(client);
    } catch (error) {
      failure = error instanceof StaleConnection ? error.cause : error;
      throw error;
    } finally {
      const isUnusable = failure !== undefined && isConnectionUnusable(failure);
      if (isUnusable) {
        this.passOver(client);
        breakOff(client);
      }
      client.release(isUnusable || client.hostNumber !== this.#hostNumber);
    }
  }

  async #connect(): Promise<PooledClient> {
    if (this.#isClosing) throw new StoreUnavailable("closed", "the store is closing");
    if (this.#pool.waitingCount >= WAITING_MAX) {
      throw new StoreUnavailable("queue_full", "too many calls are waiting for PostgreSQL");
    }
    let failure: unknown;
    for (let attempts = 0; attempts < this.#hosts.length; attempts++) {
      try {
        return await this.#connectToPrimary();
      } catch (error) {
        if (isWaitedOut(error)) throw error;
        failure = error;
      }
    }
    throw new ConnectFailure(this.shownHosts, failure);
  }

  /** Idle connections to a host that was passed over are dropped: it may be paused, and would not answer. */
  async #connectToPrimary(): Promise<PooledClient> {
    for (;;) {
      const client = (await this.#pool.connect()) as PooledClient;
      if (client.hostNumber === this.#hostNumber) return client;
      breakOff(client);
      client.release(true);
    }
  }

  #failed(error: unknown): unknown {
    const failure = asUnavailable(error);
    if (failure instanceof StoreUnavailable) {
      this.#failures.inc({ reason: failure.reason });
      if (failure.reason === "disk_full") this.#isFull = true;
    }
    return failure;
  }

  /** Rejects with the reason when PostgreSQL does not answer or accepts no writes. */
  async check(): Promise<void> {
    const [row] = await this.query<{ transaction_read_only: string }>("SHOW transaction_read_only");
    if (row?.transaction_read_only !== "off") {
      const summary = "PostgreSQL accepts no writes";
      throw new StoreUnavailable("unreachable", summary, undefined, { summary });
    }
    if (!this.#isFull) return;
    // Rejects as long as there is no room for a few pages.
    await this.run(
      `CREATE TEMP TABLE room ON COMMIT DROP AS SELECT repeat(md5(n::text), 100) FROM generate_series(1, 100) n`,
    );
    this.#isFull = false;
  }

  /** Calls in flight finish first. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#pool.end();
  }
}

/** A connection that broke before a transaction had begun: another one will do. */
class StaleConnection extends Error {
  constructor(cause: unknown) {
    super("the connection was lost before the transaction began", { cause });
    this.name = "StaleConnection";
  }
}

/** Closes the connection without a farewell, which a paused server would never answer. */
export function breakOff(client: ClientBase): void {
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
}
