import { useSyncExternalStore } from "react";

// The key's limits, as the headers of each answer tell them. While the service asks to wait, every request waits here: none is lost,
// and the page says for how long.

export interface Limits {
  /** Requests left in the window with the least left; null before the first answer. */
  readonly remaining: number | null;
  readonly limit: number | null;
  /** Until then no request is sent. */
  readonly pausedUntilMs: number | null;
}

const RETRY_SECONDS_DEFAULT = 5;
const RETRY_SECONDS_MAX = 3600;

let current: Limits = { remaining: null, limit: null, pausedUntilMs: null };
const listeners = new Set<() => void>();

function set(next: Limits): void {
  current = next;
  for (const listener of listeners) listener();
}

function note(headers: Headers): void {
  const remaining = headers.get("X-RateLimit-Remaining");
  const limit = headers.get("X-RateLimit-Limit");
  if (remaining === null || limit === null) return;
  const next = { ...current, remaining: Number(remaining), limit: Number(limit) };
  if (next.remaining !== current.remaining || next.limit !== current.limit) set(next);
}

async function resumed(signal: AbortSignal): Promise<void> {
  while (current.pausedUntilMs !== null) {
    const waitMs = current.pausedUntilMs - Date.now();
    if (waitMs <= 0) {
      set({ ...current, pausedUntilMs: null });
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, Math.min(waitMs, 1000));
      const abort = () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      };
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    });
  }
}

/** Like `fetch`, but a refusal for too many requests waits as long as it says and asks again. */
export async function limitedFetch(request: Request): Promise<Response> {
  for (;;) {
    await resumed(request.signal);
    const response = await fetch(request.clone());
    note(response.headers);
    if (response.status !== 429) return response;
    const seconds = Number(response.headers.get("Retry-After")) || RETRY_SECONDS_DEFAULT;
    const untilMs = Date.now() + Math.min(seconds, RETRY_SECONDS_MAX) * 1000;
    set({ ...current, pausedUntilMs: Math.max(untilMs, current.pausedUntilMs ?? 0) });
  }
}

/** Below a fifth of the limit, nothing is fetched that nobody asked for. */
export function mayPrefetch(): boolean {
  const { remaining, limit, pausedUntilMs } = current;
  return pausedUntilMs === null && (remaining === null || limit === null || remaining >= limit / 5);
}

export function useLimits(): Limits {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}
