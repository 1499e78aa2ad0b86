import type { Logger } from "pino";
import { clientNetwork } from "../lib/ip.ts";
import { recentlyUsed } from "../lib/recently-used.ts";
import { DAY_MS, startOfDay } from "../lib/time.ts";
import type { ApiKey, Plan } from "../model/key.ts";
import type { KeyStore, KeyUsage } from "../store/store.ts";

// How often one may ask: a minute and a UTC day for each key, a minute for each address without one.

const MINUTE_MS = 60_000;
/** Addresses whose minute is remembered; the one that was quiet longest is forgotten first. */
const ADDRESSES_MAX = 20_000;
const SAVE_MS = 1000;
/** Of a window's requests, how many are written down ahead: what a crash may count too many, and never one too few. */
const RESERVED_SHARES = { minute: 0.1, day: 0.01 };

export interface LimitSettings {
  readonly rateLimits: boolean;
  readonly anonymousPerMinute: number;
  readonly plans: Readonly<Record<Plan, { readonly perMinute: number; readonly perDay: number | null }>>;
}

/** What the rate limit headers say, and whether the request may pass. */
export interface Verdict {
  readonly allowed: boolean;
  /** The window that is described. */
  readonly window: "minute" | "day";
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds; when the window ends. */
  readonly resetAt: number;
}

/** A span of time and what was counted in it. */
interface Window {
  readonly span: Verdict["window"];
  endsAt: number;
  count: number;
  readonly max: number;
}

interface Use {
  minuteEndsAt: number;
  minuteCount: number;
  day: number;
  dayCount: number;
  /** The counts as they are written down: never less than what was let in. */
  savedMinuteCount: number;
  savedDayCount: number;
  lastUsedAt: number;
}

export interface LimitOptions {
  readonly settings: LimitSettings;
  readonly keys: KeyStore;
  readonly log: Logger;
  readonly now: () => number;
}

export class Limits {
  readonly #settings: LimitSettings;
  readonly #keys: KeyStore;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #uses = new Map<string, Use>();
  readonly #changed = new Set<string>();
  readonly #addresses = recentlyUsed<string, Window>(ADDRESSES_MAX);
  readonly #saver: NodeJS.Timeout;
  /** False from a failure on until counts can be written again: they are not tried for every request. */
  #canSave = true;

  constructor({ settings, keys, log, now }: LimitOptions) {
    this.#settings = settings;
    this.#keys = keys;
    this.#log = log;
    this.#now = now;
    for (const { keyId, ...used } of keys.usage()) {
      this.#uses.set(keyId, { ...used, savedMinuteCount: used.minuteCount, savedDayCount: used.dayCount });
    }
    this.#saver = setInterval(() => this.save(), SAVE_MS).unref();
  }

  /** Counts a request of a key, unless it is refused: that costs nothing. */
  takeForKey(key: ApiKey): Verdict {
    const now = this.#now();
    const use = this.#use(key.id, now);
    const plan = this.#settings.plans[key.plan];
    const minute: Window = { span: "minute", endsAt: use.minuteEndsAt, count: use.minuteCount, max: plan.perMinute };
    const windows = [minute];
    if (plan.perDay !== null)
      windows.push({ span: "day", endsAt: use.day + DAY_MS, count: use.dayCount, max: plan.perDay });
    const verdict = this.#judge(windows);
    if (verdict.allowed) {
      if (this.#settings.rateLimits) {
        use.minuteCount++;
        use.dayCount++;
      }
      use.lastUsedAt = now;
      this.#changed.add(key.id);
      const isSaved =
        use.minuteCount <= use.savedMinuteCount && (plan.perDay === null || use.dayCount <= use.savedDayCount);
      if (!isSaved && this.#canSave) this.#reserve(key.id, plan);
    }
    return verdict;
  }

  takeForAddress(address: string): Verdict {
    const now = this.#now();
    const name = clientNetwork(address);
    let window = this.#addresses.get(name);
    if (!window || isOver(window.endsAt, now)) {
      window = { span: "minute", endsAt: now + MINUTE_MS, count: 0, max: this.#settings.anonymousPerMinute };
      this.#addresses.set(name, window);
    }
    const verdict = this.#judge([window]);
    if (verdict.allowed && this.#settings.rateLimits) window.count++;
    return verdict;
  }

  usageOf(keyId: string): { lastUsedAt: number } | undefined {
    return this.#uses.get(keyId);
  }

  /** Of keys that are not there any more. */
  forget(keyIds: readonly string[]): void {
    for (const keyId of keyIds) {
      this.#uses.delete(keyId);
      this.#changed.delete(keyId);
    }
  }

  /** Writes down what has changed, so that counts outlive the process. What is reserved stays so. */
  save(): void {
    if (this.#changed.size === 0) return;
    const usage: KeyUsage[] = [];
    for (const keyId of this.#changed) {
      const use = this.#uses.get(keyId)!;
      const minuteCount = Math.max(use.minuteCount, use.savedMinuteCount);
      usage.push(toUsage(keyId, use, { minuteCount, dayCount: Math.max(use.dayCount, use.savedDayCount) }));
    }
    if (this.#write(usage)) this.#changed.clear();
  }

  /** Before a request is let in that is not written down yet: a process that is killed must not give it back. */
  #reserve(keyId: string, { perMinute, perDay }: LimitSettings["plans"][Plan]): void {
    const use = this.#uses.get(keyId)!;
    const minuteCount = use.minuteCount + Math.floor(perMinute * RESERVED_SHARES.minute);
    const dayCount = use.dayCount + Math.floor((perDay ?? 0) * RESERVED_SHARES.day);
    this.#write([toUsage(keyId, use, { minuteCount, dayCount })]);
  }

  #write(usage: readonly KeyUsage[]): boolean {
    try {
      this.#keys.saveUsage(usage);
      this.#canSave = true;
      for (const { keyId, minuteCount, dayCount } of usage) {
        const use = this.#uses.get(keyId)!;
        use.savedMinuteCount = minuteCount;
        use.savedDayCount = dayCount;
      }
    } catch (error) {
      this.#log.warn({ err: error }, "use of keys not saved yet");
      this.#canSave = false;
    }
    return this.#canSave;
  }

  close(): void {
    clearInterval(this.#saver);
    // What was reserved and not used is given back.
    for (const [keyId, use] of this.#uses) {
      if (use.savedDayCount > use.dayCount || use.savedMinuteCount > use.minuteCount) this.#changed.add(keyId);
      use.savedDayCount = 0;
      use.savedMinuteCount = 0;
    }
    this.save();
  }

  #use(keyId: string, now: number): Use {
    let use = this.#uses.get(keyId);
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
      this.#uses.set(keyId, use);
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

  #judge(windows: readonly Window[]): Verdict {
    const limited = this.#settings.rateLimits;
    const left = ({ max, count }: Window) => (limited ? Math.max(0, max - count) : max);
    // The one with the least remaining; of two that are used up, the one that keeps the client out longer.
    const tightest = windows.reduce((a, b) => {
      const difference = left(a) - left(b);
      return difference < 0 || (difference === 0 && a.endsAt >= b.endsAt) ? a : b;
    });
    const allowed = left(tightest) > 0;
    const remaining = left(tightest) - (allowed && limited ? 1 : 0);
    return { allowed, window: tightest.span, limit: tightest.max, remaining, resetAt: tightest.endsAt };
  }
}

function toUsage(keyId: string, use: Use, counts: Pick<KeyUsage, "minuteCount" | "dayCount">): KeyUsage {
  const { lastUsedAt, day, minuteEndsAt } = use;
  return { keyId, lastUsedAt, day, minuteEndsAt, ...counts };
}

/** A window that ends further ahead than it is long was made before the clock was set back. */
function isOver(endsAt: number, now: number): boolean {
  return now >= endsAt || endsAt - now > MINUTE_MS;
}
