import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

// Starts real PostgreSQL servers on loopback, in temporary folders unless one is named. Tests that only need a database use
// test-database.ts, which shares one server.

const DEBIAN = "/usr/lib/postgresql";
const STARTS_MAX = 3;
const STOP_MS_MAX = 20_000;
const USER = "tocsin";

/** The folder of the server's programs, undefined where PostgreSQL is not installed. */
export function postgresPrograms(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => join(DEBIAN, version, "bin")),
    ...(process.env["PATH"] ?? "").split(delimiter),
  ];
  return folders.find((folder) => ["initdb", "postgres"].every((name) => existsSync(join(folder, name))));
}

export interface PostgresOptions {
  /** For the data; those that it has are used. Default: a temporary one, which goes when the server ends. */
  readonly base?: string;
  /** Default: any free one. */
  readonly port?: number;
  /** Gets every line of the server's log. */
  readonly onLine?: (line: string) => void;
  /** The server ended, whether it was meant to or not. */
  readonly onExit?: () => void;
  /** Signals of the terminal, such as Ctrl-C, do not reach the server. */
  readonly isDetached?: boolean;
  /** Commits survive a crash of the machine. Off by default: most tests only need the answers. */
  readonly isDurable?: boolean;
  /** Lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines of pg_hba.conf instead of trust for loopback. */
  readonly access?: readonly string[];
  /** Writes files such as certificates into the data folder before the start, and gives them to the server's user. */
  readonly prepare?: (folder: string) => void;
  /** Follows this server as a hot standby. Data that the folder has are replaced. */
  readonly standbyOf?: Pick<PostgresServer, "port">;
}

export interface PostgresServer {
  readonly port: number;
  /** The data folder. */
  readonly folder: string;
  /** Of the first process, undefined while it does not run. */
  readonly pid: number | undefined;
  url(database: string): string;
  /** Ends it as a crash would, without a checkpoint. */
  kill(): Promise<void>;
  /** Stops and continues its processes. */
  pause(): void;
  resume(): void;
  /** Starts it again after `kill`, on the same port. */
  start(): Promise<void>;
  /** Turns a standby into a primary. */
  promote(): Promise<void>;
  /** Stops it with a checkpoint; its data stay. */
  stop(): Promise<void>;
  /** Stops it and removes its data. */
  end(): Promise<void>;
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const programs = postgresPrograms();
  if (programs === undefined) throw new Error("PostgreSQL is not installed");
  const owner = serverUser();
  const run = async (name: string, ...args: string[]) =>
    void (await promisify(execFile)(join(programs, name), args, { ...owner, env: environment() }));
  const base = options.base ?? mkdtempSync(join(tmpdir(), "tocsin-postgres-"));
  mkdirSync(base, { recursive: true });
  if (owner) chownSync(base, owner.uid, owner.gid);
  const folder = join(base, "data");
  try {
    if (options.standbyOf) {
      const from = String(options.standbyOf.port);
      rmSync(folder, { recursive: true, force: true });
      await run(
        "pg_basebackup",
        "-h",
        "127.0.0.1",
        "-p",
        from,
        "-U",
        USER,
        "-D",
        folder,
        "-R",
        "-X",
        "stream",
        "-c",
        "fast",
        "--no-sync",
      );
    } else if (!existsSync(join(folder, "PG_VERSION"))) {
      await run("initdb", "-D", folder, "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync");
      configure(folder, options);
    }
    options.prepare?.(folder);
    if (owner) execFileSync("chown", ["-R", `${owner.uid}:${owner.gid}`, folder]);
  } catch (error) {
    rmSync(base, { recursive: true, force: true });
    throw error;
  }

  let port = options.port ?? 0;
  let server: ChildProcess | undefined;
  // A process that ends early must not leave a server behind.
  const onExit = () => void server?.kill("SIGQUIT");
  const start = async () => {
    for (let attempt = 1; server === undefined; attempt++) {
      const wanted = port || (await freePort());
      // No socket in a folder, whose path may be longer than sockets allow.
      const args = ["-D", folder, "-p", String(wanted), "-c", "unix_socket_directories="];
      const started = await launch(join(programs, "postgres"), args, owner, options);
      if ("process" in started) {
        server = started.process;
        port = wanted;
        process.once("exit", onExit);
        server.once("exit", () => {
          process.off("exit", onExit);
          server = undefined;
          options.onExit?.();
        });
      } else if (attempt === STARTS_MAX) throw new Error(`PostgreSQL does not start:\n${started.output}`);
    }
  };
  const signal = async (name: NodeJS.Signals) => {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    server.kill(name);
    const late = setTimeout(() => server?.kill("SIGKILL"), STOP_MS_MAX);
    await ended;
    clearTimeout(late);
  };
  const processes = () => (server?.pid === undefined ? [] : [server.pid, ...childrenOf(server.pid)]);
  const send = (name: NodeJS.Signals) => {
    for (const pid of processes()) {
      try {
        process.kill(pid, name);
      } catch (error) {
        // A process of a connection that has just ended.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
  };
  await start();
  return {
    get port() {
      return port;
    },
    folder,
    get pid() {
      return server?.pid;
    },
    url: (database) => `postgres://${USER}@127.0.0.1:${port}/${database}`,
    kill: async () => {
      const ended = server && once(server, "exit");
      send("SIGKILL");
      await ended;
      rmSync(join(folder, "postmaster.pid"), { force: true });
    },
    pause: () => send("SIGSTOP"),
    resume: () => send("SIGCONT"),
    start,
    promote: () => run("pg_ctl", "-D", folder, "-w", "promote"),
    stop: () => signal("SIGINT"),
    end: async () => {
      await signal("SIGINT");
      rmSync(base, { recursive: true, force: true });
    },
  };
}

function configure(folder: string, { isDurable = false, settings = {}, access }: PostgresOptions): void {
  const lines = {
    listen_addresses: "127.0.0.1",
    max_connections: "100",
    shared_buffers: "32MB",
    max_wal_size: "256MB",
    ...(isDurable ? {} : { fsync: "off", full_page_writes: "off" }),
    ...settings,
  };
  const text = Object.entries(lines).map(([name, value]) => `${name} = '${value}'\n`);
  appendFileSync(join(folder, "postgresql.conf"), text.join(""));
  if (access) {
    rmSync(join(folder, "pg_hba.conf"));
    appendFileSync(join(folder, "pg_hba.conf"), access.map((line) => `${line}\n`).join(""));
  }
}

/** The server refuses root, so root runs it as the user that Debian made for it. */
function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}

/** Messages in English: one of them says that the server is ready. */
const environment = () => ({ ...process.env, LC_ALL: "C" });

type Launched = { readonly process: ChildProcess } | { readonly output: string };

async function launch(
  program: string,
  args: readonly string[],
  owner: ReturnType<typeof serverUser>,
  { onLine, isDetached = false }: PostgresOptions,
): Promise<Launched> {
  const server = spawn(program, args, {
    ...owner,
    stdio: ["ignore", "ignore", "pipe"],
    env: environment(),
    detached: isDetached,
  });
  const output: string[] = [];
  const { promise: ready, resolve } = Promise.withResolvers<boolean>();
  createInterface(server.stderr!).on("line", (line) => {
    if (output.length < 100) output.push(line);
    onLine?.(line);
    if (/ready to accept (read-only )?connections/.test(line)) resolve(true);
  });
  server.once("error", (error) => {
    output.push(error.message);
    resolve(false);
  });
  server.once("exit", () => resolve(false));
  return (await ready) ? { process: server } : { output: output.join("\n") };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}

function childrenOf(pid: number): number[] {
  try {
    const text = execFileSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
    return text.split("\n").filter(Boolean).map(Number);
  } catch {
    // ps fails if there are none.
    return [];
  }
}
