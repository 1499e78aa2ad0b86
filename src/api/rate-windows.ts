import { clientNetwork } from "../lib/ip.ts";
import { createLruCache } from "../lib/lru.ts";
import { DAY_MS } from "../lib/time.ts";
import type { ApiKey, Plan } from "../model/key.ts";
import type { KeyUsage, RequestLimits } from "../store/ports/key-store.ts";

// Rate limits: per minute and per UTC day for each key, per minute for each address without a key.

export const MINUTE_MS = 60_000;
/** The maximum number of tracked addresses; the least recently used one is evicted first. */
const ADDRESSES_MAX = 20_000;

export interface RateLimitSettings {
  readonly rateLimits: boolean;
  readonly anonymousPerMinute: number;
  readonly plans: Readonly<Record<Plan, { readonly perMinute: number; readonly perDay: number | null }>>;
}

/** The outcome of a rate limit check, and the values of the rate limit headers. */
export interface RateLimitResult {
  readonly allowed: boolean;
  /** The tightest window, which the other fields describe. */
  readonly window: "minute" | "day";
  readonly limit: number;
  readonly remaining: number;
  /** The end of the window, in milliseconds. */
  readonly resetAt: number;
}

/** The use of one window of a key. */
export interface WindowUsage {
  readonly limit: number;
  readonly used: number;
  readonly resetAt: number;
}

export interface RateWindow {
  readonly span: RateLimitResult["window"];
  endsAt: number;
  count: number;
  readonly max: number;
}

/** The current windows of a key. */
export interface KeyWindows {
  readonly minute: WindowUsage;
  readonly day: WindowUsage | null;
}

export interface RateLimits {
  /** False if limits are only shown. */
  readonly areEnforced: boolean;
  /** Counts a request of a key. Refused requests do not count. */
  countForKey(key: ApiKey): Promise<RateLimitResult>;
  countForAddress(address: string): RateLimitResult;
  /** Counts nothing. */
  windowsOf(key: ApiKey): Promise<KeyWindows>;
  /** When each key was used last. */
  lastUses(): Promise<ReadonlyMap<string, number>>;
  /** Drops the counters of removed keys. */
  forget(keyIds: readonly string[]): void;
  close(): Promise<void>;
}

/** Limits of clients without a key, which each node counts by itself. */
export class AddressLimits {
  readonly #settings: RateLimitSettings;
  readonly #now: () => number;
  readonly #windows = createLruCache<string, RateWindow>(ADDRESSES_MAX);

  constructor(settings: RateLimitSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
  }

  count(address: string): RateLimitResult {
    const now = this.#now();
    const name = clientNetwork(address);
    let window = this.#windows.get(name);
    if (!window || isOver(window.endsAt, now)) {
      window = { span: "minute", endsAt: now + MINUTE_MS, count: 0, max: this.#settings.anonymousPerMinute };
      this.#windows.set(name, window);
    }
    const result = tightestWindow([window], this.#settings.rateLimits);
    if (result.allowed && this.#settings.rateLimits) window.count++;
    return result;
  }
}

export function windowsOf(
  { minuteEndsAt, minuteCount, day, dayCount }: Omit<KeyUsage, "keyId" | "lastUsedAt">,
  { perMinute, perDay }: RequestLimits,
): RateWindow[] {
  const minute: RateWindow = { span: "minute", endsAt: minuteEndsAt, count: minuteCount, max: perMinute };
  return perDay === null ? [minute] : [minute, { span: "day", endsAt: day + DAY_MS, count: dayCount, max: perDay }];
}

/** What a request gets that is not counted yet. */
export function tightestWindow(windows: readonly RateWindow[], isEnforced: boolean): RateLimitResult {
  const left = ({ max, count }: RateWindow) => (isEnforced ? Math.max(0, max - count) : max);
  // The window with the fewest requests remaining; if both are exhausted, the one that ends later.
  const tightest = windows.reduce((a, b) => {
    const difference = left(a) - left(b);
    return difference < 0 || (difference === 0 && a.endsAt >= b.endsAt) ? a : b;
  });
  const allowed = left(tightest) > 0;
  const remaining = left(tightest) - (allowed && isEnforced ? 1 : 0);
  return { allowed, window: tightest.span, limit: tightest.max, remaining, resetAt: tightest.endsAt };
}

/**
 * A window whose end is further away than its length was opened before the clock was set back. Clocks of several nodes may
 * differ by `skewMs`.
 */
export function isOver(endsAt: number, now: number, skewMs = 0): boolean {
  return now >= endsAt || endsAt - now > MINUTE_MS + skewMs;
}
