import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { startPostgres, type PostgresServer } from "../test/cluster/postgres.ts";
import { CannotStart } from "./process-files.ts";

// A primary of PostgreSQL with a synchronous standby, which takes over when the primary is gone. Whoever fails over must be sure of two
// things: that the standby has every acknowledged commit, and that the old primary acknowledges none from then on.

const NAMES = ["postgres-1", "postgres-2"] as const;
const DATABASE = "tocsin";
const LOOK_MS = 500;
const ANSWER_MS = 1500;
/** A primary that has not answered for so long is replaced. */
const SILENT_MS_MAX = 5000;
const START_RETRY_MS = 1000;

export type PostgresName = (typeof NAMES)[number];

export interface PostgresPairOptions {
  readonly folder: string;
  /** Of the two servers. */
  readonly ports: readonly [number, number];
  /** How long a server that ended stays away. */
  readonly restartMs: number;
  readonly tell: (message: string) => void;
  /** The process of a server, undefined once it ended. */
  readonly onProcess: (name: PostgresName, pid: number | undefined) => void;
}

export class PostgresPair {
  readonly #options: PostgresPairOptions;
  readonly #stop = new AbortController();
  #primary: PostgresName = NAMES[0];
  readonly #servers = new Map<PostgresName, PostgresServer>();
  /** The standby has every commit that the primary has acknowledged, and goes on to have them. */
  #isSynchronous = false;
  /** When each server was asked first without an answer. */
  readonly #silentSince = new Map<PostgresName, number>();
  #supervising: Promise<void> = Promise.resolve();
  #failovers = 0;

  private constructor(options: PostgresPairOptions) {
    this.#options = options;
  }

  static async start(options: PostgresPairOptions): Promise<PostgresPair> {
    const pair = new PostgresPair(options);
    mkdirSync(options.folder, { recursive: true });
    if (existsSync(pair.#noteFile)) pair.#primary = readFileSync(pair.#noteFile, "utf8").trim() as PostgresName;
    try {
      await pair.#startPrimary();
      await pair.#createDatabase();
      await pair.#startStandby();
    } catch (error) {
      await pair.#end();
      if (!/Permission denied/.test((error as Error).message)) throw error;
      throw new CannotStart(
        `PostgreSQL may not use ${options.folder}. It refuses root, so root starts it as the user postgres, who must reach ` +
          "the folder: choose another one, such as --data-dir /var/tmp/tocsin-cluster.",
      );
    }
    pair.#supervising = pair.#supervise();
    return pair;
  }

  /** Both servers: the service finds the one that accepts writes. */
  get url(): string {
    const hosts = this.#options.ports.map((port) => `127.0.0.1:${port}`);
    return `postgres://tocsin@${hosts.join(",")}/${DATABASE}`;
  }

  get primaryName(): PostgresName {
    return this.#primary;
  }

  get primary(): PostgresServer | undefined {
    return this.#servers.get(this.#primary);
  }

  get standby(): PostgresServer | undefined {
    return this.#servers.get(this.#standbyName);
  }

  /** Whether the primary may be lost without losing a commit. */
  get isSynchronous(): boolean {
    return this.#isSynchronous;
  }

  get failovers(): number {
    return this.#failovers;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#supervising;
    await this.#end();
  }

  get #standbyName(): PostgresName {
    return this.#primary === NAMES[0] ? NAMES[1] : NAMES[0];
  }

  get #noteFile(): string {
    return join(this.#options.folder, "postgres-primary");
  }

  /** The primary first: it hands what it has to the standby. */
  async #end(): Promise<void> {
    for (const name of [this.#primary, this.#standbyName]) {
      const server = this.#servers.get(name);
      server?.resume();
      await server?.stop();
    }
  }

  async #start(name: PostgresName, standbyOf?: PostgresServer): Promise<PostgresServer> {
    const { folder, ports, onProcess } = this.#options;
    const log = join(folder, `${name}.log`);
    const server = await startPostgres({
      base: join(folder, name),
      port: ports[NAMES.indexOf(name)]!,
      isDurable: true,
      isDetached: true,
      settings: { wal_level: "replica", wal_keep_size: "64MB", max_connections: "100" },
      onLine: (line) => writeFileSync(log, `${line}\n`, { flag: "a" }),
      onExit: () => {
        if (this.#servers.get(name) === server) this.#servers.delete(name);
        onProcess(name, undefined);
      },
      ...(standbyOf && { standbyOf }),
    });
    this.#servers.set(name, server);
    onProcess(name, server.pid);
    return server;
  }

  async #startPrimary(): Promise<void> {
    const server = await this.#start(this.#primary);
    // The launcher ended in the middle of a failover.
    if (existsSync(join(server.folder, "standby.signal"))) await server.promote();
    writeFileSync(this.#noteFile, `${this.#primary}\n`);
    await this.#requireStandby(false);
  }

  async #createDatabase(): Promise<void> {
    await this.#ask(async (client) => {
      const { rowCount } = await client.query("SELECT 1 FROM pg_database WHERE datname = $1", [DATABASE]);
      if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
    });
  }

  async #startStandby(): Promise<void> {
    await this.#start(this.#standbyName, this.primary);
    await this.#requireStandby(true);
  }

  /** Whether commits wait for the standby. Without one, they would wait for ever. */
  async #requireStandby(isRequired: boolean): Promise<void> {
    if (!isRequired) this.#isSynchronous = false;
    await this.#ask(async (client) => {
      await client.query(`ALTER SYSTEM SET synchronous_standby_names = '${isRequired ? "*" : ""}'`);
      await client.query("SELECT pg_reload_conf()");
    });
    if (!isRequired) return;
    while (!this.#stop.signal.aborted && this.standby && this.primary) {
      const states = await this.#ask(
        async (client) =>
          (await client.query<{ state: string }>("SELECT sync_state AS state FROM pg_stat_replication")).rows,
      );
      if (states.some(({ state }) => state === "sync")) {
        this.#isSynchronous = true;
        return;
      }
      await sleep(LOOK_MS / 5);
    }
  }

  async #ask<Value>(work: (client: Client) => Promise<Value>, server = this.primary): Promise<Value> {
    if (!server) throw new Error("there is no primary");
    const client = new Client({
      connectionString: server.url("postgres"),
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
    });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await work(client);
    } finally {
      // A paused server would never answer the farewell.
      void client.end().catch(() => undefined);
    }
  }

  async #supervise(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await this.#look();
      } catch (error) {
        this.#options.tell(`PostgreSQL: ${(error as Error).message.trim()}`);
        await sleep(START_RETRY_MS, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
      await sleep(LOOK_MS, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    if (!this.primary) {
      await (this.standby && this.#isSynchronous ? this.#failOver() : this.#restartPrimary());
      return;
    }
    if (!(await this.#isAnswering(this.#primary))) return;
    if (this.standby) {
      if ((await this.#isAnswering(this.#standbyName)) && !this.#isSynchronous) await this.#requireStandby(true);
      return;
    }
    if (this.#isSynchronous) {
      await this.#requireStandby(false);
      this.#options.tell(`${this.#standbyName} ended; commits no longer wait for it`);
    }
    await sleep(this.#options.restartMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    if (this.#stop.signal.aborted || !this.primary) return;
    await this.#startStandby();
    this.#options.tell(`${this.#standbyName} is a synchronous standby again, copied from ${this.#primary}`);
  }

  /**
   * A server that stays silent is killed. A primary that went on later might acknowledge commits that nobody sees; commits wait for a
   * standby that is paused. A primary without a standby to replace it is left alone.
   */
  async #isAnswering(name: PostgresName): Promise<boolean> {
    const server = this.#servers.get(name);
    if (!server) return false;
    try {
      await this.#ask((client) => client.query("SELECT 1"), server);
      this.#silentSince.delete(name);
      return true;
    } catch {
      // Whatever the reason is: a server that gives no answer serves nobody.
      const since = this.#silentSince.get(name) ?? performance.now();
      this.#silentSince.set(name, since);
      const isReplaceable = name !== this.#primary || (this.#isSynchronous && this.standby !== undefined);
      if (performance.now() - since < SILENT_MS_MAX || !isReplaceable) return false;
      this.#options.tell(`${name} has not answered for ${SILENT_MS_MAX / 1000} s, so it is killed`);
      await server.kill();
      this.#silentSince.delete(name);
      return false;
    }
  }

  async #failOver(): Promise<void> {
    const standby = this.standby!;
    this.#isSynchronous = false;
    this.#primary = this.#standbyName;
    writeFileSync(this.#noteFile, `${this.#primary}\n`);
    await standby.promote();
    await this.#requireStandby(false);
    this.#failovers++;
    this.#options.tell(`${this.#standbyName} ended; ${this.#primary} is now the primary of PostgreSQL`);
  }

  async #restartPrimary(): Promise<void> {
    await sleep(this.#options.restartMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    if (this.#stop.signal.aborted) return;
    await this.#startPrimary();
    this.#options.tell(`${this.#primary} is back`);
  }
}
