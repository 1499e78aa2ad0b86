import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { makeKey, startServer, type ServerProcess } from "../test/server-process.ts";
import { Connection } from "./connection.ts";
import { copyDataset, type Dataset } from "./dataset.ts";
import type { Answer } from "./figures.ts";

// What every question is given.

export interface Bench {
  readonly dataset: Dataset;
  /** A copy of the data that may be written to; the same for all questions of a run. */
  readonly writable: () => Promise<string>;
}

export type Question = (bench: Bench) => Promise<readonly Answer[]>;

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
 * Runs the real server on the folder for as long as the work takes. It begins when the rules have read again what they
 * had seen: the data came a moment ago, so that it is much.
 */
export async function withServer<T>(
  folder: string,
  work: (server: Serving) => Promise<T>,
  variables: Record<string, string> = {},
): Promise<T> {
  const key = await makeKey(folder);
  const server = await startServer({ dataDir: folder, variables });
  const connection = await Connection.open(server.port);
  const serving: Serving = {
    ...server,
    key,
    get: (path) => connection.ask({ method: "GET", path, key }),
    post: (path, body) => connection.ask({ method: "POST", path, key, body: JSON.stringify(body) }),
    patch: (path, body) => connection.ask({ method: "PATCH", path, key, body: JSON.stringify(body) }),
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
  /** All that is resident, pages of mapped files included. */
  readonly total: number;
  /** Without pages of files, which the system takes back when it needs them. */
  readonly own: number;
}

export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) * 1024;
  return { total: bytes("VmRSS"), own: bytes("RssAnon") };
}

/** Looks at the memory ten times a second until told to stop, and gives the most there was. */
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
