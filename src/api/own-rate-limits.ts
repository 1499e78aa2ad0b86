import type { Logger } from "pino";
import { SerialQueue } from "../lib/serial-queue.ts";
import { DAY_MS, startOfDay } from "../lib/time.ts";
import type { ApiKey, Plan } from "../model/key.ts";
import type { KeyStore, KeyUsage } from "../store/ports/key-store.ts";
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

// Rate limits of a service that is alone: it counts in memory and saves the counts.

const SAVE_MS = 1000;
/** The share of a window that is saved in advance. After a crash the count may be too high by that much, but never too low. */
const RESERVED_SHARES = { minute: 0.1, day: 0.01 };

interface KeyCounters {
  minuteEndsAt: number;
  minuteCount: number;
  day: number;
  dayCount: number;
  /** The saved counts, never lower than the number of admitted requests. */
  savedMinuteCount: number;
  savedDayCount: number;
  lastUsedAt: number;
}

export interface RateLimitOptions {
  readonly settings: RateLimitSettings;
  readonly keys: KeyStore;
  readonly log: Logger;
  readonly now: () => number;
}

/** Continues the saved counts. */
export async function openOwnRateLimits(options: RateLimitOptions): Promise<OwnRateLimits> {
  return new OwnRateLimits(options, await options.keys.usage());
}

/** Counts in memory, for a service without other nodes. */
class OwnRateLimits implements RateLimits {
  readonly #settings: RateLimitSettings;
  readonly #keys: KeyStore;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #counters = new Map<string, KeyCounters>();
  readonly #changed = new Set<string>();
  readonly #addresses: AddressLimits;
  readonly #saver: NodeJS.Timeout;
  readonly #writes = new SerialQueue();
  /** False after a failed write until one succeeds, so that not every request attempts it. */
  #canSave = true;

  constructor({ settings, keys, log, now }: RateLimitOptions, usage: readonly KeyUsage[]) {
    this.#settings = settings;
    this.#keys = keys;
    this.#log = log;
    this.#now = now;
    this.#addresses = new AddressLimits(settings, now);
    for (const { keyId, ...used } of usage) {
      this.#counters.set(keyId, { ...used, savedMinuteCount: used.minuteCount, savedDayCount: used.dayCount });
    }
    this.#saver = setInterval(() => void this.save(), SAVE_MS).unref();
  }

  /** Counts a request of a key. Refused requests do not count. */
  async countForKey(key: ApiKey): Promise<RateLimitResult> {
    const now = this.#now();
    const use = this.#countersOf(key.id, now);
    const plan = this.#settings.plans[key.plan];
    const result = tightestWindow(windowsOf(use, plan), this.#settings.rateLimits);
    if (result.allowed) {
      if (this.#settings.rateLimits) {
        use.minuteCount++;
        use.dayCount++;
      }
      use.lastUsedAt = now;
      this.#changed.add(key.id);
      const isSaved =
        use.minuteCount <= use.savedMinuteCount && (plan.perDay === null || use.dayCount <= use.savedDayCount);
      if (!isSaved && this.#canSave) await this.#reserve(key.id, plan);
    }
    return result;
  }

  countForAddress(address: string): RateLimitResult {
    return this.#addresses.count(address);
  }

  get areEnforced(): boolean {
    return this.#settings.rateLimits;
  }

  async windowsOf({ id, plan }: ApiKey): Promise<KeyWindows> {
    const { perMinute, perDay } = this.#settings.plans[plan];
    const { minuteEndsAt, minuteCount, day, dayCount } = this.#countersOf(id, this.#now());
    return {
      minute: { limit: perMinute, used: minuteCount, resetAt: minuteEndsAt },
      day: perDay === null ? null : { limit: perDay, used: dayCount, resetAt: day + DAY_MS },
    };
  }

  async lastUses(): Promise<ReadonlyMap<string, number>> {
    return new Map(Array.from(this.#counters, ([keyId, { lastUsedAt }]) => [keyId, lastUsedAt]));
  }

  /** Drops the counters of removed keys. */
  forget(keyIds: readonly string[]): void {
    for (const keyId of keyIds) {
      this.#counters.delete(keyId);
      this.#changed.delete(keyId);
    }
  }

  /** Saves changed counts, so that they survive a restart. Reservations are kept. */
  async save(): Promise<void> {
    if (this.#changed.size === 0) return;
    const changed = [...this.#changed];
    this.#changed.clear();
    const isWritten = await this.#write(changed, ({ minuteCount, savedMinuteCount, dayCount, savedDayCount }) => ({
      minuteCount: Math.max(minuteCount, savedMinuteCount),
      dayCount: Math.max(dayCount, savedDayCount),
    }));
    if (!isWritten) for (const keyId of changed) if (this.#counters.has(keyId)) this.#changed.add(keyId);
  }

  /** Saves counts in advance, before an unsaved request is admitted, so that a killed process does not lose it. */
  async #reserve(keyId: string, { perMinute, perDay }: RateLimitSettings["plans"][Plan]): Promise<void> {
    await this.#write([keyId], ({ minuteCount, dayCount }) => ({
      minuteCount: minuteCount + Math.floor(perMinute * RESERVED_SHARES.minute),
      dayCount: dayCount + Math.floor((perDay ?? 0) * RESERVED_SHARES.day),
    }));
  }

  /** Counts are taken in the turn of the write, so that an earlier count never replaces a later one. */
  async #write(keyIds: readonly string[], countsOf: (use: KeyCounters) => SavedCounts): Promise<boolean> {
    try {
      const usage = await this.#writes.take(async () => {
        const found = keyIds.flatMap((keyId) => {
          const use = this.#counters.get(keyId);
          return use ? [toUsage(keyId, use, countsOf(use))] : [];
        });
        await this.#keys.saveUsage(found);
        return found;
      });
      this.#canSave = true;
      for (const { keyId, minuteEndsAt, minuteCount, day, dayCount } of usage) {
        const use = this.#counters.get(keyId);
        // The key may have been removed, or a window may have begun, while the counts were being written.
        if (!use || use.minuteEndsAt !== minuteEndsAt || use.day !== day) continue;
        use.savedMinuteCount = minuteCount;
        use.savedDayCount = dayCount;
      }
    } catch (error) {
      this.#log.warn({ err: error }, "key usage not saved; the next save tries again");
      this.#canSave = false;
    }
    return this.#canSave;
  }

  async close(): Promise<void> {
    clearInterval(this.#saver);
    // Unused reservations are returned.
    for (const [keyId, use] of this.#counters) {
      if (use.savedDayCount > use.dayCount || use.savedMinuteCount > use.minuteCount) this.#changed.add(keyId);
      use.savedDayCount = 0;
      use.savedMinuteCount = 0;
    }
    await this.save();
  }

  #countersOf(keyId: string, now: number): KeyCounters {
    let use = this.#counters.get(keyId);
    if (!use) {
      use = {
        minuteEndsAt: 0,
        minuteCount: 0,
        day: 0,
        dayCount: 0,
        savedMinuteCount: 0,
        savedDayCount: 0,
        lastUsedAt: now,
      };
      this.#counters.set(keyId, use);
    }
    if (isOver(use.minuteEndsAt, now)) {
      use.minuteEndsAt = now + MINUTE_MS;
      use.minuteCount = 0;
      use.savedMinuteCount = 0;
    }
    const today = startOfDay(now);
    if (use.day !== today) {
      use.day = today;
      use.dayCount = 0;
      use.savedDayCount = 0;
    }
    return use;
  }
}

type SavedCounts = Pick<KeyUsage, "minuteCount" | "dayCount">;

function toUsage(keyId: string, use: KeyCounters, counts: SavedCounts): KeyUsage {
  const { lastUsedAt, day, minuteEndsAt } = use;
  return { keyId, lastUsedAt, day, minuteEndsAt, ...counts };
}
