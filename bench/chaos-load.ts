import { setTimeout as sleep } from "node:timers/promises";
import { BATCH_EVENTS, chaosBatch, CHAOS_RULES, type ChaosBatch } from "./chaos-input.ts";

// Clients of a cluster: each sends batches and sends one again, at another node and with the same idempotency key, until it is
// acknowledged.

const CLIENTS = 12;
const REQUEST_MS_MAX = 30_000;
const RETRY_MS = 250;

export interface ApiAnswer {
  readonly status: number;
  readonly body: any;
}

export async function callApi(
  url: string,
  key: string,
  method: string,
  path: string,
  { body, headers }: { readonly body?: string; readonly headers?: Record<string, string> } = {},
): Promise<ApiAnswer> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { "content-type": "application/json" }), ...headers },
    signal: AbortSignal.timeout(REQUEST_MS_MAX),
    ...(body !== undefined && { body }),
  });
  return { status: answer.status, body: await answer.json() };
}

export async function createChaosRules(url: string, key: string): Promise<void> {
  for (const rule of CHAOS_RULES) {
    const { status, body } = await callApi(url, key, "POST", "/v1/rules", { body: JSON.stringify(rule) });
    if (status !== 201) throw new Error(`the rule ${rule.name} was refused: ${JSON.stringify(body)}`);
  }
}

export interface LoadOptions {
  readonly urls: readonly string[];
  readonly key: string;
  readonly seed: number;
  readonly eventsPerSecond: number;
  readonly startMs: number;
}

export interface ChaosLoad {
  /** Ids of acknowledged events, by their number in the input. */
  readonly acknowledged: ReadonlyMap<number, string>;
  /** Attempts that were not acknowledged, by their reason. */
  readonly failures: ReadonlyMap<string, number>;
  /** The longest time in which no batch was acknowledged. */
  readonly longestGapMs: number;
  /** Batches that were begun, acknowledged or not. */
  readonly batches: number;
  /** Begins no new batches, and resolves once those that were begun are acknowledged. */
  finish(): Promise<void>;
  /** Gives up batches that are not acknowledged yet. */
  abandon(): void;
}

export function startChaosLoad({ urls, key, seed, eventsPerSecond, startMs }: LoadOptions): ChaosLoad {
  const everyMs = (BATCH_EVENTS / eventsPerSecond) * 1000;
  const acknowledged = new Map<number, string>();
  const failures = new Map<string, number>();
  const startedAt = performance.now();
  let [batches, lastAt, longestGapMs] = [0, startedAt, 0];
  const finishing = new AbortController();
  const over = new AbortController();

  const send = async (batch: ChaosBatch, attempt: number): Promise<boolean> => {
    const count = (reason: string) => failures.set(reason, (failures.get(reason) ?? 0) + 1);
    try {
      const headers = { "idempotency-key": batch.token };
      const url = urls[(batch.nth + attempt) % urls.length]!;
      const { status, body } = await callApi(url, key, "POST", "/v1/events/batch", { body: batch.body, headers });
      if (status !== 200) {
        count(`${status} ${body.error?.message ?? ""}`.trim());
        return false;
      }
      const ids = body.data.ids as string[];
      if (ids.length !== BATCH_EVENTS)
        throw new Error(`a batch was acknowledged in part: ${JSON.stringify(body.data)}`);
      ids.forEach((id, at) => acknowledged.set(batch.nth * BATCH_EVENTS + at, id));
      return true;
    } catch (error) {
      const { name, message, cause } = error as Error;
      count((cause as NodeJS.ErrnoException | undefined)?.code ?? (name === "Error" ? message : name));
      return false;
    }
  };
  const client = async () => {
    while (!finishing.signal.aborted && !over.signal.aborted) {
      const nth = batches++;
      await sleep(Math.max(0, startedAt + nth * everyMs - performance.now()));
      const batch = chaosBatch(seed, nth, startMs, everyMs);
      for (let attempt = 0; !over.signal.aborted && !(await send(batch, attempt)); attempt++) await sleep(RETRY_MS);
      longestGapMs = Math.max(longestGapMs, performance.now() - lastAt);
      lastAt = performance.now();
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  return {
    acknowledged,
    failures,
    get longestGapMs() {
      return longestGapMs;
    },
    get batches() {
      return batches;
    },
    finish: async () => {
      finishing.abort();
      await clients;
    },
    abandon: () => over.abort(),
  };
}
