import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createKey, SCOPES } from "../src/model/key.ts";
import { openKeyStore } from "../src/store/open-store.ts";
import { COLLECTORS_OFF } from "./tocsin.ts";

// The real server in a separate process, for tests that kill it and for benchmarks.

const MAIN = join(import.meta.dirname, "..", "src", "main.mjs");
const START_MS_MAX = 120_000;

export interface ServerProcess {
  readonly port: number;
  readonly pid: number;
  readonly address: string;
  /** Milliseconds from the start of the process until it served. */
  readonly startedInMs: number;
  /** Sends the signal and returns the exit code, or null if the signal itself ended the process. */
  end(signal?: "SIGTERM" | "SIGKILL"): Promise<number | null>;
}

export interface ServerOptions {
  readonly dataDir: string;
  readonly variables?: Record<string, string>;
  /** A shell line that runs before the server in the same shell, such as a limit. */
  readonly shellBefore?: string;
}

export async function startServer({ dataDir, variables, shellBefore }: ServerOptions): Promise<ServerProcess> {
  const startedAt = performance.now();
  const logPath = `${dataDir}.log`;
  const log = openSync(logPath, "w");
  const command = [process.execPath, MAIN, "serve", "--port", "0", "--data-dir", dataDir];
  const env = { ...process.env, ...COLLECTORS_OFF, TOCSIN_RATE_LIMITS: "off", TOCSIN_CONFIG: "", ...variables };
  if (env.TOCSIN_CONFIG === "") delete (env as NodeJS.ProcessEnv).TOCSIN_CONFIG;
  const options = { env, stdio: ["ignore", log, log] as ["ignore", number, number] };
  const child = shellBefore
    ? spawn("sh", ["-c", `${shellBefore}; exec "$@"`, "sh", ...command], options)
    : spawn(command[0]!, command.slice(1), options);
  closeSync(log);
  const address = await waitUntilListening(child, logPath, startedAt);
  return {
    port: Number(new URL(address).port),
    pid: child.pid!,
    address,
    startedInMs: performance.now() - startedAt,
    end: (signal = "SIGTERM") => endProcess(child, signal),
  };
}

async function waitUntilListening(child: ChildProcess, logPath: string, startedAt: number): Promise<string> {
  while (performance.now() - startedAt < START_MS_MAX) {
    const address = /"address":"(http:[^"]+)"/.exec(readFileSync(logPath, "utf8"))?.[1];
    if (address) return address;
    if (child.exitCode !== null || child.signalCode !== null) break;
    await sleep(20);
  }
  child.kill("SIGKILL");
  throw new Error(`the server did not start:\n${readFileSync(logPath, "utf8").slice(-4000)}`);
}

async function endProcess(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exited = once(child, "exit") as Promise<[number | null]>;
  child.kill(signal);
  return (await exited)[0];
}

/** A key with every scope, created beside the server, running or not. */
export async function makeKey(dataDir: string): Promise<string> {
  await mkdir(dataDir, { recursive: true });
  const keys = await openKeyStore({ dataDir });
  const made = createKey({ name: "test", scopes: SCOPES, plan: "enterprise", expiresAt: null, now: Date.now() });
  await keys.put(made.key);
  await keys.close();
  return made.secret;
}
