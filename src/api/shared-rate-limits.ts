import type { Logger } from "pino";
import { DAY_MS, startOfDay } from "../lib/time.ts";
import type { ApiKey, Plan } from "../model/key.ts";
import { USAGE_SKEW_MS, type KeyStore, type KeyUsage, type SharedUsage } from "../store/ports/key-store.ts";
import {
  AddressLimits,
  isOver,
  MINUTE_MS,
  tightestWindow,
  windowsOf,
  type KeyWindows,
  type RateLimitResult,
  type RateLimits,
  type RateLimitSettings,
} from "./rate-windows.ts";

// Rate limits of a service with several nodes. The counts are in the store, and no node admits a request that was not counted
// there. A node counts some requests in advance, the fewer the closer the limit is, so that most requests do not wait for the
// store. What it did not use within a second it gives back: until then another node may refuse that many requests too early.

/** The share of what is left in the tighter window that is counted at once. The last ones are counted one by one. */
const ADVANCE_SHARE = 0.02;
const TICK_MS = 500;
/** A key that was refused is refused for this long without asking again: another node may give something back. */
const REFUSED_MS = 200;

interface LocalUse {
  /** As the store had it last; without this node's own advance. */
  counted: Omit<KeyUsage, "keyId" | "lastUsedAt"> | undefined;
  /** Counted, and not made yet. */
  advance: number;
  lastUsedAt: number;
  /** By the steady clock. */
  usedAt: number;
  refusedAt: number;
  isNoted: boolean;
  taking: Promise<void> | undefined;
  waiting: number;
}

export interface SharedRateLimitsOptions {
  readonly settings: RateLimitSettings;
  readonly keys: KeyStore;
  readonly usage: SharedUsage;
  readonly log: Logger;
  readonly now: () => number;
}

export class SharedRateLimits implements RateLimits {
  readonly #options: SharedRateLimitsOptions;
  readonly #addresses: AddressLimits;
  readonly #uses = new Map<string, LocalUse>();
  readonly #timer: NodeJS.Timeout;
  #saving: Promise<void> | undefined;

  constructor(options: SharedRateLimitsOptions) {
    this.#options = options;
    this.#addresses = new AddressLimits(options.settings, options.now);
    this.#timer = setInterval(() => void this.#tick(), TICK_MS).unref();
  }

  get areEnforced(): boolean {
    return this.#options.settings.rateLimits;
  }

  async countForKey(key: ApiKey): Promise<RateLimitResult> {
    const plan = this.#options.settings.plans[key.plan];
    const use = this.#useOf(key.id);
    if (!this.areEnforced) {
      this.#noteUse(use);
      const day = startOfDay(this.#now());
      const counted = { minuteEndsAt: this.#now() + MINUTE_MS, minuteCount: 0, day, dayCount: 0 };
      return this.#local(tightestWindow(windowsOf(counted, plan), false));
    }
    use.waiting++;
    try {
      for (;;) {
        if (this.#hasAdvance(use)) {
          this.#noteUse(use);
          // The advance itself is not made yet, nor is this request.
          const result = tightestWindow(windowsOf(lessBy(use.counted!, use.advance), plan), true);
          use.advance--;
          return this.#local(result);
        }
        const refusal = this.#refusal(use, plan);
        if (refusal) return this.#local(refusal);
        await (use.taking ??= this.#take(key.id, use, plan));
      }
    } finally {
      use.waiting--;
    }
  }

  countForAddress(address: string): RateLimitResult {
    return this.#addresses.count(address);
  }

  async windowsOf({ id, plan }: ApiKey): Promise<KeyWindows> {
    const { perMinute, perDay } = this.#options.settings.plans[plan];
    const now = this.#now();
    const stored = await this.#options.usage.find(id);
    const advance = this.#uses.get(id)?.advance ?? 0;
    const isMinute = stored !== undefined && !isOver(stored.minuteEndsAt, now, USAGE_SKEW_MS);
    const isToday = stored !== undefined && isDayOf(stored.day, now);
    const offset = this.#options.usage.clockOffsetMs;
    return {
      minute: {
        limit: perMinute,
        used: isMinute ? Math.max(0, stored.minuteCount - advance) : 0,
        resetAt: (isMinute ? stored.minuteEndsAt : now + MINUTE_MS) - offset,
      },
      day:
        perDay === null
          ? null
          : {
              limit: perDay,
              used: isToday ? Math.max(0, stored.dayCount - advance) : 0,
              resetAt: startOfDay(now) + DAY_MS - offset,
            },
    };
  }

  async lastUses(): Promise<ReadonlyMap<string, number>> {
    const uses = new Map((await this.#options.keys.usage()).map(({ keyId, lastUsedAt }) => [keyId, lastUsedAt]));
    // Of this node, the store has those of half a second ago.
    for (const [keyId, { lastUsedAt }] of this.#uses) uses.set(keyId, Math.max(lastUsedAt, uses.get(keyId) ?? 0));
    return uses;
  }

  forget(keyIds: readonly string[]): void {
    for (const keyId of keyIds) this.#uses.delete(keyId);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#saving;
    await this.#giveBack(() => true);
  }

  /** The time of all nodes. */
  #now(): number {
    return this.#options.now() + this.#options.usage.clockOffsetMs;
  }

  /** In the time of this node, as clients know it. */
  #local(result: RateLimitResult): RateLimitResult {
    return { ...result, resetAt: result.resetAt - this.#options.usage.clockOffsetMs };
  }

  #useOf(keyId: string): LocalUse {
    let use = this.#uses.get(keyId);
    if (!use) {
      use = {
        counted: undefined,
        advance: 0,
        lastUsedAt: 0,
        usedAt: 0,
        refusedAt: -Infinity,
        isNoted: true,
        taking: undefined,
        waiting: 0,
      };
      this.#uses.set(keyId, use);
    }
    return use;
  }

  #noteUse(use: LocalUse): void {
    use.lastUsedAt = this.#options.now();
    use.usedAt = performance.now();
    use.isNoted = false;
  }

  /** False once a window that the advance was taken from is over. */
  #hasAdvance(use: LocalUse): boolean {
    if (use.advance === 0 || !use.counted) return false;
    const now = this.#now();
    if (!isOver(use.counted.minuteEndsAt, now, USAGE_SKEW_MS) && isDayOf(use.counted.day, now)) return true;
    use.advance = 0;
    return false;
  }

  /** The refusal of a moment ago, unless its window is over. */
  #refusal(use: LocalUse, plan: RateLimitSettings["plans"][Plan]): RateLimitResult | undefined {
    if (!use.counted || performance.now() - use.refusedAt >= REFUSED_MS) return undefined;
    const now = this.#now();
    const { minuteEndsAt, minuteCount, day, dayCount } = use.counted;
    const current = {
      minuteEndsAt,
      minuteCount: isOver(minuteEndsAt, now, USAGE_SKEW_MS) ? 0 : minuteCount,
      day,
      dayCount: isDayOf(day, now) ? dayCount : 0,
    };
    const result = tightestWindow(windowsOf(current, plan), true);
    return result.allowed ? undefined : result;
  }

  async #take(keyId: string, use: LocalUse, plan: RateLimitSettings["plans"][Plan]): Promise<void> {
    try {
      const taken = await this.#options.usage.take(keyId, wantedOf(use, plan), plan, this.#now());
      use.counted = taken;
      use.advance = taken.granted;
      use.refusedAt = taken.granted === 0 ? performance.now() : -Infinity;
    } finally {
      use.taking = undefined;
    }
  }

  async #tick(): Promise<void> {
    if (this.#saving) return;
    const since = performance.now() - TICK_MS;
    this.#saving = this.#giveBack(({ usedAt, taking }) => usedAt < since && !taking);
    await this.#saving;
    this.#saving = undefined;
  }

  /** Gives the advance of these uses back, and notes the last uses of all. */
  async #giveBack(isIdle: (use: LocalUse) => boolean): Promise<void> {
    const changed = [...this.#uses].filter(([, use]) => !use.isNoted || (use.advance > 0 && isIdle(use)));
    if (changed.length === 0) return;
    const unused = changed.map(([keyId, use]) => {
      const count = use.advance > 0 && isIdle(use) ? use.advance : 0;
      use.advance -= count;
      use.isNoted = true;
      const { minuteEndsAt = 0, day = 0 } = use.counted ?? {};
      return { keyId, lastUsedAt: use.lastUsedAt, day, minuteEndsAt, count };
    });
    try {
      await this.#options.usage.giveBack(unused);
    } catch (error) {
      this.#options.log.warn({ err: error }, "key usage not saved: requests that were not made stay counted");
    }
  }
}

function wantedOf({ counted, waiting }: LocalUse, { perMinute, perDay }: RateLimitSettings["plans"][Plan]): number {
  if (!counted) return Math.max(1, waiting);
  const left = Math.min(perMinute - counted.minuteCount, (perDay ?? Infinity) - counted.dayCount);
  return Math.max(1, waiting, Math.floor(left * ADVANCE_SHARE));
}

/** Around midnight another node may count for the next day already. */
function isDayOf(day: number, now: number): boolean {
  return day === startOfDay(now) || day === startOfDay(now) + DAY_MS;
}

function lessBy<Counted extends { minuteCount: number; dayCount: number }>(counted: Counted, count: number): Counted {
  return { ...counted, minuteCount: counted.minuteCount - count, dayCount: counted.dayCount - count };
}
