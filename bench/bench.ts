import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { makeKey, startServer, type ServerProcess } from "../test/server-process.ts";
import { Connection } from "./connection.ts";
import { copyDataset, type Dataset } from "./dataset.ts";
import type { Measurement } from "./figures.ts";

// Shared set-up of the benchmarks.

export interface Bench {
  readonly dataset: Dataset;
  /** A writable copy of the dataset, shared by all benches of a run. */
  readonly writable: () => Promise<string>;
}

export type Benchmark = (bench: Bench) => Promise<readonly Measurement[]>;

export function openBench(dataset: Dataset): Bench {
  let copy: Promise<string> | undefined;
  return { dataset, writable: () => (copy ??= copyDataset(dataset)) };
}

const LOOK_MS = 200;

interface Readiness {
  readonly data: { readonly detection: { readonly status: string } };
}

export interface Serving extends ServerProcess {
  readonly key: string;
  get<T>(path: string): Promise<T>;
  post<T>(path: string, body: unknown): Promise<T>;
  patch<T>(path: string, body: unknown): Promise<T>;
}

/**
 * Runs the real server on the folder during the work. The work starts after the rules' warm-up, which is long because the
 * data is recent.
 */
export async function withServer<T>(
  folder: string,
  work: (server: Serving) => Promise<T>,
  variables: Record<string, string> = {},
  shellBefore = "",
): Promise<T> {
  const key = await makeKey(folder);
  const server = await startServer({ dataDir: folder, variables, shellBefore });
  const connection = await Connection.open(server.port);
  const serving: Serving = {
    ...server,
    key,
    get: (path) => connection.request({ method: "GET", path, key }),
    post: (path, body) => connection.request({ method: "POST", path, key, body: JSON.stringify(body) }),
    patch: (path, body) => connection.request({ method: "PATCH", path, key, body: JSON.stringify(body) }),
  };
  try {
    while ((await serving.get<Readiness>("/readyz")).data.detection.status !== "running") await sleep(LOOK_MS);
    return await work(serving);
  } finally {
    connection.close();
    await server.end();
  }
}

export async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const startedAt = performance.now();
  const value = await work();
  return { ms: performance.now() - startedAt, value };
}

export interface Memory {
  /** Resident memory, including pages of mapped files. */
  readonly total: number;
  /** Anonymous memory only: the system can reclaim pages of files. */
  readonly own: number;
}

export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) * 1024;
  return { total: bytes("VmRSS"), own: bytes("RssAnon") };
}

/** Samples the memory ten times a second until stopped, and returns the peak. */
export function watchMemory(pid: number): { stop(): Memory } {
  let most = memoryOf(pid);
  const timer = setInterval(() => {
    const now = memoryOf(pid);
    most = { total: Math.max(most.total, now.total), own: Math.max(most.own, now.own) };
  }, 100);
  return {
    stop: () => {
      clearInterval(timer);
      return most;
    },
  };
}
