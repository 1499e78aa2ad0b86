import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import type { Settings } from "./config/config.ts";
import { timeOfId } from "./lib/id.ts";
import { DAY_MS, formatTime, startOfDay } from "./lib/time.ts";
import { Turns } from "./lib/turns.ts";
import type { RetentionKind, Store } from "./store/store.ts";

// Removes what is older than it may be: at the start, and every hour. What it removes is gone for good, so it does not
// trust a clock that has jumped, nor removes a large share at once, until a person has confirmed it.

const EVERY_MS = 3_600_000;
/** How long it can be seen what has become of a notification. */
const NOTIFICATIONS_KEPT_MS = 30 * DAY_MS;
/** How far the clock may move against the monotonic one between two runs. */
const JUMP_MS_MAX = DAY_MS;
/** How long the service may have been stopped; after more than that, nobody can tell a long stop from a wrong clock. */
const STOP_MS_MAX = 7 * DAY_MS;
/** A confirmation holds for a clock that is as far as this from the one that was confirmed. */
const CONFIRMED_MS_MAX = 2 * DAY_MS;
/** While it is paused: how often it looks whether somebody has confirmed. */
const LOOK_MS = 5000;

const PAUSED =
  "retention is paused: nothing is removed until somebody confirms it with `tocsin storage confirm-removal`, or the reason is gone";

export interface RetentionStatus {
  readonly isPaused: boolean;
  /** Why, in words; empty while it runs. */
  readonly messages: readonly string[];
}

export interface Retention {
  readonly status: RetentionStatus;
  /** Whether what expires by the clock may be destroyed. */
  isClockTrusted(): boolean;
  close(): Promise<void>;
}

export interface RetentionOptions {
  readonly store: Pick<Store, "events" | "flows" | "notifications" | "alerts" | "retention">;
  readonly settings: Settings["retention"];
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
  /** For tests that cannot wait. */
  readonly everyMs?: number;
  readonly lookMs?: number;
}

/** Resolves once the old days are gone; alerts go one by one, and the service does not wait for that. */
export async function startRetention(options: RetentionOptions): Promise<Retention> {
  const { everyMs = EVERY_MS, lookMs = LOOK_MS } = options;
  const runs = new Runs(options);
  await runs.run({ isStart: true });
  const turns = new Turns();
  void turns.take(() => runs.removeAlerts());
  const timer = setInterval(() => void turns.take(() => runs.run({ isStart: false })), everyMs);
  const looker = setInterval(() => {
    if (runs.status.isPaused && runs.isConfirmed() && turns.waiting === 0)
      void turns.take(() => runs.run({ isStart: false }));
  }, lookMs).unref();
  return {
    get status() {
      return runs.status;
    },
    isClockTrusted: () => runs.clockFault() === undefined,
    close: async () => {
      clearInterval(timer);
      clearInterval(looker);
      runs.stop.abort();
      await turns.settled();
    },
  };
}

interface Held {
  readonly kind: RetentionKind;
  readonly rows: number;
  readonly why: string;
}

class Runs {
  readonly #options: RetentionOptions;
  readonly stop = new AbortController();
  /** The last run whose clock was trusted, in this process. */
  #last: { readonly wallMs: number; readonly monotonicMs: number } | undefined;
  #held: readonly Held[] = [];
  #clockFault: string | undefined;
  #alertsBefore: number | undefined;
  #told = "";

  constructor(options: RetentionOptions) {
    this.#options = options;
    const rowsHeld = (kind: RetentionKind) => this.#held.find((held) => held.kind === kind)?.rows ?? 0;
    const isPaused = () => (this.status.isPaused ? 1 : 0);
    new Gauge({
      name: "tocsin_retention_paused",
      help: "1 while retention waits for a confirmation, since the clock has jumped or too much would go at once",
      registers: [options.registry],
      collect() {
        this.set(isPaused());
      },
    });
    new Gauge({
      name: "tocsin_retention_held_rows",
      help: "What retention would remove and does not until it is confirmed, by what it is",
      labelNames: ["kind"],
      registers: [options.registry],
      collect() {
        for (const kind of ["events", "flows", "alerts"] as const) this.set({ kind }, rowsHeld(kind));
      },
    });
  }

  get status(): RetentionStatus {
    const held = this.#held.map(({ kind, rows, why }) => `${rows} ${kind} are due and not removed: ${why}`);
    const messages = held.length === 0 && this.#clockFault !== undefined ? [this.#clockFault] : held;
    return { isPaused: messages.length > 0, messages };
  }

  /** Why the clock is not to be trusted; undefined where it is. */
  clockFault(): string | undefined {
    const { now, store } = this.#options;
    if (this.isConfirmed()) return undefined;
    if (this.#last) {
      const jumpMs = now() - this.#last.wallMs - (performance.now() - this.#last.monotonicMs);
      if (Math.abs(jumpMs) <= JUMP_MS_MAX) return undefined;
      return `the clock has jumped by ${daysOf(jumpMs)} days since ${formatTime(this.#last.wallMs)}`;
    }
    const newest = store.events.lastArrival();
    const known = Math.max(store.retention.notes.ranAt ?? 0, newest === null ? 0 : timeOfId(newest));
    if (known === 0 || now() - known <= STOP_MS_MAX) return undefined;
    return `the clock is ${daysOf(now() - known)} days ahead of ${formatTime(known)}, when the service was last at work`;
  }

  isConfirmed(): boolean {
    const { confirmedAt } = this.#options.store.retention.notes;
    return confirmedAt !== null && Math.abs(this.#options.now() - confirmedAt) <= CONFIRMED_MS_MAX;
  }

  async run({ isStart }: { isStart: boolean }): Promise<void> {
    const { store, settings, log, now } = this.#options;
    const wasConfirmed = this.isConfirmed();
    this.#clockFault = this.clockFault();
    this.#held = [];
    const today = startOfDay(now());
    for (const [kind, days] of [
      ["events", settings.eventsDays],
      ["flows", settings.flowsDays],
    ] as const) {
      const beforeMs = today - days * DAY_MS;
      await this.#attempt(`days of ${kind}`, async () => {
        if (!(await this.#mayRemove(kind, beforeMs))) return;
        const removed = await store[kind].removeBefore(beforeMs);
        if (removed.days > 0) log.info(removed, `old days of ${kind} removed`);
      });
    }
    if (this.#clockFault === undefined) {
      await this.#attempt("notifications", async () => {
        const notifications = await store.notifications.removeBefore(now() - NOTIFICATIONS_KEPT_MS);
        if (notifications > 0) log.info({ notifications }, "old notifications removed");
      });
    }
    this.#alertsBefore = undefined;
    await this.#attempt("alerts", async () => {
      const beforeMs = now() - settings.alertsDays * DAY_MS;
      if (await this.#mayRemove("alerts", beforeMs)) this.#alertsBefore = beforeMs;
    });
    if (!isStart) await this.removeAlerts();
    this.#note(wasConfirmed);
  }

  /** Those that the last run allowed to go. */
  async removeAlerts(): Promise<void> {
    const { store, log } = this.#options;
    const beforeMs = this.#alertsBefore;
    if (beforeMs === undefined) return;
    await this.#attempt("alerts", async () => {
      const alerts = await store.alerts.removeResolvedBefore(beforeMs, this.stop.signal);
      if (alerts > 0) log.info({ alerts }, "old alerts removed");
    });
  }

  /** Whether what lies before this time may go. The limit steadily moves on with the clock: only leaps of it are looked at. */
  async #mayRemove(kind: RetentionKind, beforeMs: number): Promise<boolean> {
    const { store, settings, now } = this.#options;
    const { rows, total } = await store.retention.due(kind, beforeMs);
    const { ranAt, before } = store.retention.notes;
    const lastBefore = before[kind];
    const isSteady =
      ranAt !== null && lastBefore !== null && beforeMs - lastBefore <= Math.max(0, now() - ranAt) + DAY_MS;
    const share = settings.shareMax;
    const isLarge = !isSteady && rows * 100 > total * share && !this.isConfirmed();
    const why =
      this.#clockFault ??
      (isLarge
        ? `they are ${Math.ceil((rows / total) * 100)} % of all, more than retention.share_max (${share} %)`
        : undefined);
    if (rows > 0 && why !== undefined) {
      this.#held = [...this.#held, { kind, rows, why }];
      return false;
    }
    if (this.#clockFault === undefined)
      store.retention.save({ before: { ...store.retention.notes.before, [kind]: beforeMs } });
    return true;
  }

  /** What fails for one kind must not keep the others. */
  async #attempt(what: string, remove: () => Promise<void>): Promise<void> {
    try {
      await remove();
    } catch (error) {
      this.#options.log.error({ err: error }, `old ${what} not removed; the next hour tries again`);
    }
  }

  #note(wasConfirmed: boolean): void {
    const { store, log, now } = this.#options;
    const { isPaused, messages } = this.status;
    try {
      if (this.#clockFault === undefined) {
        this.#last = { wallMs: now(), monotonicMs: performance.now() };
        store.retention.save({ ranAt: now() });
      }
      if (wasConfirmed && !isPaused) store.retention.save({ confirmedAt: null });
      store.retention.save({ heldAt: isPaused ? now() : null });
    } catch (error) {
      log.error({ err: error }, "the run of retention could not be recorded; the next hour tries again");
    }
    const told = messages.join("\n");
    if (isPaused && told !== this.#told) log.warn({ reasons: messages }, PAUSED);
    this.#told = told;
  }
}

function daysOf(ms: number): number {
  return Math.round(ms / DAY_MS);
}
