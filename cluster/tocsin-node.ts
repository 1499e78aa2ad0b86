import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

// A node of the service as a process of its own.

const MAIN = fileURLToPath(new URL("../src/main.mjs", import.meta.url));
const START_MS_MAX = 120_000;
const STOP_MS_MAX = 20_000;
const POLL_MS = 200;

export interface TocsinNodeOptions {
  readonly name: string;
  readonly port: number;
  /** For its data folder and its log. */
  readonly folder: string;
  /** Settings as TOCSIN_ variables. */
  readonly variables: Readonly<Record<string, string>>;
  readonly onExit?: (code: number | null) => void;
}

export class TocsinNode {
  readonly name: string;
  readonly url: string;
  readonly logFile: string;
  readonly dataDir: string;
  readonly #options: TocsinNodeOptions;
  #process: ChildProcess | undefined;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(options: TocsinNodeOptions) {
    this.#options = options;
    this.name = options.name;
    this.url = `http://127.0.0.1:${options.port}`;
    this.logFile = join(options.folder, `${options.name}.log`);
    this.dataDir = join(options.folder, options.name);
    mkdirSync(options.folder, { recursive: true });
  }

  /** Undefined while it does not run. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Resolves once it answers requests. Rejects if it ends before. */
  async start(): Promise<void> {
    const log = openSync(this.logFile, "a");
    const child = spawn(process.execPath, [MAIN, "serve"], {
      cwd: this.#options.folder,
      env: {
        ...serviceEnvironment(this.#options.variables),
        TOCSIN_HOST: "127.0.0.1",
        TOCSIN_PORT: String(this.#options.port),
        TOCSIN_DATA_DIR: this.dataDir,
      },
      stdio: ["ignore", log, log],
      // Ctrl-C reaches only the launcher, which stops the parts in order.
      detached: true,
    });
    closeSync(log);
    this.#process = child;
    const onExit = () => child.kill("SIGKILL");
    process.once("exit", onExit);
    this.#ended = once(child, "exit").then(([code]) => {
      process.off("exit", onExit);
      this.#process = undefined;
      this.#options.onExit?.(code as number | null);
    });
    const deadline = Date.now() + START_MS_MAX;
    while (Date.now() < deadline && this.#process === child) {
      if (await this.isAlive()) return;
      await sleep(POLL_MS);
    }
    throw new Error(`${this.name} did not start; its log is ${this.logFile}`);
  }

  /** Whether it answers; it may still lack a store. */
  async isAlive(): Promise<boolean> {
    const answer = await fetch(`${this.url}/healthz`, { signal: AbortSignal.timeout(2000) }).catch(() => undefined);
    return answer?.ok ?? false;
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.kill(name);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.#ended;
  }

  async stop(): Promise<void> {
    this.signal("SIGTERM");
    const late = setTimeout(() => this.signal("SIGKILL"), STOP_MS_MAX);
    await this.#ended;
    clearTimeout(late);
  }
}

/** Variables of the person who starts the cluster must not reach its nodes. */
export function serviceEnvironment(variables: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TOCSIN_"));
  return { ...Object.fromEntries(inherited), ...variables };
}

/** Runs a command of `tocsin` and returns what it prints. Rejects if it fails. */
export async function runTocsin(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  return (await promisify(execFile)(process.execPath, [MAIN, ...args], { env })).stdout;
}
