import { setTimeout as sleep } from "node:timers/promises";
import type { Serving } from "./bench.ts";

// Building blocks of every soak load: work that repeats until it is stopped, and counts of the outcomes.

const EXPORT_LOOK_MS = 250;
const LAG_MS_MAX = 5000;
const FORMATS = ["csv", "json", "ndjson", "parquet"];

export interface SoakLoad {
  /** Responses by kind of work and status. */
  readonly responses: ReadonlyMap<string, number>;
  /** Those that are neither a success nor a refusal that a client has to expect. */
  readonly failures: ReadonlyMap<string, number>;
  /** Never resolves; rejects with the first failure that is not a response, such as a broken connection. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

export interface SoakWork {
  readonly signal: AbortSignal;
  /** `isRefusal` overrides the decision by status. */
  count(kind: string, status: number | string, isRefusal?: boolean): void;
  /** Runs the work at this interval. It catches up after slow turns, up to LAG_MS_MAX; past that, the rate drops. */
  repeat(everyMs: number, work: (turn: number) => Promise<void>): Promise<void>;
}

/** `refusals`: statuses for "not now" or "too much", which are no failure of the server. */
export function startLoad(refusals: readonly number[], start: (work: SoakWork) => readonly Promise<void>[]): SoakLoad {
  const responses = new Map<string, number>();
  const failures = new Map<string, number>();
  const ending = new AbortController();
  const { signal } = ending;
  const count = (kind: string, status: number | string, isRefusal = refusals.includes(Number(status))) => {
    const isFine = isRefusal || (typeof status === "number" && status >= 200 && status < 300);
    const key = `${kind} ${status}`;
    for (const counts of isFine ? [responses] : [responses, failures]) counts.set(key, (counts.get(key) ?? 0) + 1);
  };
  const repeat = async (everyMs: number, work: (turn: number) => Promise<void>) => {
    let dueAt = performance.now();
    for (let turn = 0; !signal.aborted; turn++) {
      await work(turn);
      dueAt = Math.max(dueAt + everyMs, performance.now() - LAG_MS_MAX);
      await pause(dueAt - performance.now(), signal);
    }
  };
  const all = Promise.all(start({ signal, count, repeat }));
  const failed = Promise.withResolvers<never>();
  all.catch((error: Error) => failed.reject(new Error("the load broke off", { cause: error })));
  failed.promise.catch(() => ending.abort());
  return {
    responses,
    failures,
    failed: failed.promise,
    stop: async () => {
      ending.abort();
      await all;
    },
  };
}

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(Math.max(0, ms), undefined, { signal }).catch(() => undefined);
}

interface ExportAnswer {
  readonly data: { id: string; status: string; download_url: string; error: string | null };
}

/** Exports the events of the last `lastMs`, in the next format each turn, downloads the file and deletes it. */
export async function runExport(
  { address, key }: Serving,
  { turn, lastMs }: { readonly turn: number; readonly lastMs: number },
  count: SoakWork["count"],
): Promise<void> {
  const format = FORMATS[turn % FORMATS.length]!;
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const time_range = { from: new Date(Date.now() - lastMs).toISOString(), to: new Date().toISOString() };
  const body = JSON.stringify({ format, time_range });
  const response = await fetch(`${address}/v1/events/export`, { method: "POST", headers, body });
  let { data: job } = (await response.json()) as ExportAnswer;
  if (!response.ok) return count("export", response.status);
  const path = `${address}/v1/events/exports/${job.id}`;
  while (job.status !== "completed" && job.status !== "failed") {
    await sleep(EXPORT_LOOK_MS);
    ({ data: job } = (await (await fetch(path, { headers })).json()) as ExportAnswer);
  }
  if (job.status === "failed") count(`export as ${format} failed:`, job.error ?? "no reason given");
  else {
    const download = await fetch(address + job.download_url, { headers });
    for await (const _ of download.body!);
    count(`export as ${format}`, download.status);
  }
  await fetch(path, { method: "DELETE", headers });
}
