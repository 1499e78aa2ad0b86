import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, openSync, closeSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { installOpenSearch, type OpenSearchInstallation } from "./opensearch-install.ts";

// Real OpenSearch nodes on loopback, each a process of its own.

const START_MS_MAX = 180_000;
const STOP_MS_MAX = 30_000;
const POLL_MS = 250;
/** Between a node's port for clients and the one for other nodes, as in OpenSearch's own defaults. */
export const TRANSPORT_PORT = 100;
const LOG_TAIL_CHARACTERS = 2000;

export interface OpenSearchOptions {
  /** For data and logs; created if missing. */
  readonly folder: string;
  /** Default 1. */
  readonly nodes?: number;
  /** Of each node; default 512. */
  readonly heapMb?: number;
  /** Compiles with every optimisation, which pays after minutes. */
  readonly isLongRunning?: boolean;
  /** Of the first node; the others have the ones that follow, and 100 more is the port between nodes. Default: any free ones. */
  readonly port?: number;
  /** Signals of the terminal, such as Ctrl-C, do not reach the nodes. */
  readonly isDetached?: boolean;
  /** A node ended, whether it was meant to or not. */
  readonly onExit?: (name: string) => void;
  /** Further settings of every node. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface OpenSearchNode {
  readonly name: string;
  readonly url: string;
  /** Undefined while it does not run. */
  readonly pid: number | undefined;
  /** Sends a signal and returns at once: SIGKILL, SIGSTOP, SIGCONT. */
  signal(name: NodeJS.Signals): void;
  /** Ends the node as a crash would; its data stay. */
  kill(): Promise<void>;
  /** Starts a node that was killed, at the same address and on the same data. Resolves once it answers. */
  restart(): Promise<void>;
}

export interface OpenSearchCluster {
  readonly nodes: readonly OpenSearchNode[];
  readonly urls: readonly string[];
  /** Ends every node as a crash would. */
  kill(): Promise<void>;
  /** Ends every node in good order; the data stay. */
  stop(): Promise<void>;
}

const LOGGING = `status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p %c{1.} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
`;

/** Resolves once every node has joined and answers. Rejects with CannotInstall where OpenSearch cannot be had. */
export async function startOpenSearch(options: OpenSearchOptions): Promise<OpenSearchCluster> {
  const installation = await installOpenSearch();
  const count = options.nodes ?? 1;
  const { port } = options;
  const free = port === undefined ? await freePorts(2 * count) : [];
  const places = Array.from({ length: count }, (_, nth): NodePlace => ({
    name: `node-${nth + 1}`,
    http: port === undefined ? free[2 * nth]! : port + nth,
    transport: port === undefined ? free[2 * nth + 1]! : port + TRANSPORT_PORT + nth,
  }));
  const nodes = places.map((place) => new NodeProcess(installation, options, place, places));
  const kill = async () => void (await Promise.all(nodes.map((node) => node.kill())));
  try {
    for (const node of nodes) node.start();
    await Promise.all(nodes.map((node) => node.isReady(count)));
  } catch (error) {
    await kill();
    throw error;
  }
  const stop = async () => void (await Promise.all(nodes.map((node) => node.stop())));
  return { nodes, urls: nodes.map(({ url }) => url), kill, stop };
}

interface NodePlace {
  readonly name: string;
  readonly http: number;
  readonly transport: number;
}

class NodeProcess implements OpenSearchNode {
  readonly name: string;
  readonly url: string;
  readonly #folder: string;
  readonly #java: string;
  readonly #args: readonly string[];
  readonly #options: OpenSearchOptions;
  #process: ChildProcess | undefined;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(
    { java, libraries, modules }: OpenSearchInstallation,
    options: OpenSearchOptions,
    { name, http, transport }: NodePlace,
    all: readonly NodePlace[],
  ) {
    const { folder, heapMb = 512, isLongRunning = false, settings = {} } = options;
    this.#options = options;
    this.name = name;
    this.url = `http://127.0.0.1:${http}`;
    this.#folder = join(folder, name);
    this.#java = java;
    const config = join(this.#folder, "config");
    for (const needed of [config, join(this.#folder, "plugins"), join(this.#folder, "tmp")])
      mkdirSync(needed, { recursive: true });
    rmSync(join(this.#folder, "modules"), { force: true });
    symlinkSync(modules, join(this.#folder, "modules"));
    writeFileSync(join(config, "opensearch.yml"), "");
    writeFileSync(join(config, "log4j2.properties"), LOGGING);
    const own = {
      "cluster.name": "tocsin",
      "node.name": name,
      "network.host": "127.0.0.1",
      "http.port": String(http),
      "transport.port": String(transport),
      "path.data": join(this.#folder, "data"),
      // Other programs fill the disk of a machine that tests.
      "cluster.routing.allocation.disk.threshold_enabled": "false",
      ...(all.length === 1
        ? { "discovery.type": "single-node" }
        : {
            "discovery.seed_hosts": all.map((other) => `127.0.0.1:${other.transport}`).join(","),
            "cluster.initial_cluster_manager_nodes": all.map((other) => other.name).join(","),
          }),
      ...settings,
    };
    this.#args = [
      `-Xms${heapMb}m`,
      `-Xmx${heapMb}m`,
      // Tests run for minutes on few cores: compiling with every optimisation costs more than it saves.
      ...(isLongRunning ? ["-XX:+UseG1GC"] : ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]),
      "-Xshare:auto",
      "--enable-native-access=ALL-UNNAMED",
      // Without its native library the server cannot see that root runs it, which it would refuse; CI does.
      "-Djna.nosys=true",
      "-Djna.noclasspath=true",
      "-Dlog4j2.disable.jmx=true",
      "-Dfile.encoding=UTF-8",
      "-Dopensearch.distribution.type=tar",
      `-Djava.io.tmpdir=${join(this.#folder, "tmp")}`,
      `-Dopensearch.path.home=${this.#folder}`,
      `-Dopensearch.path.conf=${config}`,
      "-cp",
      join(libraries, "*"),
      "org.opensearch.bootstrap.OpenSearch",
      ...Object.entries(own).map(([key, value]) => `-E${key}=${value}`),
    ];
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get #logFile(): string {
    return join(this.#folder, "log.txt");
  }

  start(): void {
    const log = openSync(this.#logFile, "a");
    const child = spawn(this.#java, this.#args, {
      stdio: ["ignore", log, log],
      cwd: this.#folder,
      detached: this.#options.isDetached ?? false,
    });
    closeSync(log);
    this.#process = child;
    const onExit = () => child.kill("SIGKILL");
    process.once("exit", onExit);
    this.#ended = once(child, "exit").then(() => {
      process.off("exit", onExit);
      this.#process = undefined;
      this.#options.onExit?.(this.name);
    });
  }

  /** Resolves once the node answers as part of a cluster of so many. */
  async isReady(nodes: number): Promise<void> {
    const deadline = Date.now() + START_MS_MAX;
    while (Date.now() < deadline) {
      if (!this.#process) break;
      const health = await fetch(`${this.url}/_cluster/health?wait_for_nodes=${nodes}&timeout=1s`).catch(() => null);
      if (health?.ok) return;
      await sleep(POLL_MS);
    }
    const log = readFileSync(this.#logFile, "utf8").slice(-LOG_TAIL_CHARACTERS);
    throw new Error(`${this.name} of OpenSearch ended, or did not start within ${START_MS_MAX / 1000} s:\n${log}`);
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.kill(name);
  }

  async kill(): Promise<void> {
    this.#process?.kill("SIGKILL");
    await this.#ended;
  }

  async stop(): Promise<void> {
    this.#process?.kill("SIGTERM");
    const late = setTimeout(() => this.#process?.kill("SIGKILL"), STOP_MS_MAX);
    await this.#ended;
    clearTimeout(late);
  }

  async restart(): Promise<void> {
    this.start();
    await this.isReady(1);
  }
}

/** Ports that nothing listens on now. All are held open together, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
