import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import type { Settings } from "./config/settings.ts";
import { timeOfId } from "./lib/id.ts";
import { DAY_MS, formatTime, startOfDay } from "./lib/time.ts";
import { SerialQueue } from "./lib/serial-queue.ts";
import type { RetentionStatus } from "./model/retention-status.ts";
import type { RetentionKind } from "./store/ports/retention-store.ts";
import type { Store } from "./store/ports/store.ts";

// Removes expired data at the start and every hour. Removal is final, so it needs a confirmation by a person if the clock
// has jumped or a large share would go at once.

const EVERY_MS = 3_600_000;
/** Retention of settled notifications. */
const NOTIFICATIONS_KEPT_MS = 30 * DAY_MS;
/** Tolerated drift of the clock against the monotonic one between two runs. */
const JUMP_MS_MAX = DAY_MS;
/** A longer stop cannot be distinguished from a wrong clock. */
const STOP_MS_MAX = 7 * DAY_MS;
/** A confirmation is valid while the clock is within this distance of the confirmed time. */
const CONFIRMED_MS_MAX = 2 * DAY_MS;
/** Interval of the check for a confirmation while paused. */
const LOOK_MS = 5000;

const PAUSED =
  "retention is paused: nothing is removed until somebody confirms it with `tocsin storage confirm-removal`, or the reason is gone";

export interface Retention {
  readonly status: RetentionStatus;
  /** True if data that the clock says is expired may be removed. */
  isClockTrusted(): Promise<boolean>;
  close(): Promise<void>;
}

export interface RetentionOptions {
  readonly store: Pick<Store, "events" | "flows" | "notifications" | "alerts" | "retention">;
  readonly settings: Settings["retention"];
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
  /** Intervals, for tests. */
  readonly everyMs?: number;
  readonly lookMs?: number;
}

/** Resolves once the expired days are removed. Alerts are removed one by one in the background. */
export async function startRetention(options: RetentionOptions): Promise<Retention> {
  const { everyMs = EVERY_MS, lookMs = LOOK_MS } = options;
  const runs = new RetentionRuns(options);
  await runs.run({ isStart: true });
  const queue = new SerialQueue();
  void queue.take(() => runs.removeAlerts());
  const timer = setInterval(() => void queue.take(() => runs.run({ isStart: false })), everyMs);
  const looker = setInterval(() => {
    if (runs.status.isPaused && queue.waiting === 0) void queue.take(() => runs.runIfConfirmed());
  }, lookMs).unref();
  return {
    get status() {
      return runs.status;
    },
    isClockTrusted: async () => (await runs.clockFault()) === undefined,
    close: async () => {
      clearInterval(timer);
      clearInterval(looker);
      runs.stop.abort();
      await queue.settled();
    },
  };
}

interface HeldRows {
  readonly kind: RetentionKind;
  readonly rows: number;
  readonly why: string;
}

class RetentionRuns {
  readonly #options: RetentionOptions;
  readonly stop = new AbortController();
  /** The last run whose clock was trusted, in this process. */
  #last: { readonly wallMs: number; readonly monotonicMs: number } | undefined;
  #held: readonly HeldRows[] = [];
  #clockFault: string | undefined;
  #alertsBefore: number | undefined;
  #lastWarning = "";

  constructor(options: RetentionOptions) {
    this.#options = options;
    const rowsHeld = (kind: RetentionKind) => this.#held.find((held) => held.kind === kind)?.rows ?? 0;
    const isPaused = () => (this.status.isPaused ? 1 : 0);
    new Gauge({
      name: "tocsin_retention_paused",
      help: "1 while retention waits for a confirmation, because the clock has jumped or too much would be removed at once",
      registers: [options.registry],
      collect() {
        this.set(isPaused());
      },
    });
    new Gauge({
      name: "tocsin_retention_held_rows",
      help: "Rows that retention removes only after a confirmation, by kind",
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

  /** Why the clock is not trusted; undefined if it is. */
  async clockFault(): Promise<string | undefined> {
    const { now, store } = this.#options;
    if (await this.isConfirmed()) return undefined;
    if (this.#last) {
      const jumpMs = now() - this.#last.wallMs - (performance.now() - this.#last.monotonicMs);
      if (Math.abs(jumpMs) <= JUMP_MS_MAX) return undefined;
      return `the clock has jumped by ${daysOf(jumpMs)} days since ${formatTime(this.#last.wallMs)}`;
    }
    return clockFaultAfterStop(store, now());
  }

  async isConfirmed(): Promise<boolean> {
    const { confirmedAt } = await this.#options.store.retention.notes();
    return confirmedAt !== null && Math.abs(this.#options.now() - confirmedAt) <= CONFIRMED_MS_MAX;
  }

  /** A failed look is repeated at the next one. */
  async runIfConfirmed(): Promise<void> {
    const isConfirmed = await this.isConfirmed().catch((error: unknown) => {
      this.#options.log.error({ err: error }, "confirmation of retention not read; the next look retries");
      return false;
    });
    if (isConfirmed) await this.run({ isStart: false });
  }

  async run({ isStart }: { isStart: boolean }): Promise<void> {
    const { store, settings, log, now } = this.#options;
    const wasConfirmed = await this.isConfirmed();
    this.#clockFault = await this.clockFault();
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
    await this.#note(wasConfirmed);
  }

  /** Removes the alerts that the last run cleared for removal. */
  async removeAlerts(): Promise<void> {
    const { store, log } = this.#options;
    const beforeMs = this.#alertsBefore;
    if (beforeMs === undefined) return;
    await this.#attempt("alerts", async () => {
      const alerts = await store.alerts.removeResolvedBefore(beforeMs, this.stop.signal);
      if (alerts > 0) log.info({ alerts }, "old alerts removed");
    });
  }

  /** True if data before this time may be removed. The limit normally advances with the clock; only jumps are checked. */
  async #mayRemove(kind: RetentionKind, beforeMs: number): Promise<boolean> {
    const { store, settings, now } = this.#options;
    const { rows, total } = await store.retention.due(kind, beforeMs);
    const { ranAt, before } = await store.retention.notes();
    const lastBefore = before[kind];
    const isSteady =
      ranAt !== null && lastBefore !== null && beforeMs - lastBefore <= Math.max(0, now() - ranAt) + DAY_MS;
    const share = settings.shareMax;
    const isLarge = !isSteady && rows * 100 > total * share && !(await this.isConfirmed());
    const why =
      this.#clockFault ??
      (isLarge
        ? `they are ${Math.ceil((rows / total) * 100)} % of all, more than retention.share_max (${share} %)`
        : undefined);
    if (rows > 0 && why !== undefined) {
      this.#held = [...this.#held, { kind, rows, why }];
      return false;
    }
    if (this.#clockFault === undefined) await store.retention.save({ before: { ...before, [kind]: beforeMs } });
    return true;
  }

  /** A failure for one kind must not affect the others. */
  async #attempt(what: string, remove: () => Promise<void>): Promise<void> {
    try {
      await remove();
    } catch (error) {
      this.#options.log.error({ err: error }, `old ${what} not removed; the next run retries`);
    }
  }

  async #note(wasConfirmed: boolean): Promise<void> {
    const { store, log, now } = this.#options;
    const { isPaused, messages } = this.status;
    try {
      if (this.#clockFault === undefined) {
        this.#last = { wallMs: now(), monotonicMs: performance.now() };
        await store.retention.save({ ranAt: now() });
      }
      if (wasConfirmed && !isPaused) await store.retention.save({ confirmedAt: null });
      await store.retention.save({ heldAt: isPaused ? now() : null });
    } catch (error) {
      log.error({ err: error }, "retention run not recorded; the next run retries");
    }
    const warning = messages.join("\n");
    if (isPaused && warning !== this.#lastWarning) log.warn({ reasons: messages }, PAUSED);
    this.#lastWarning = warning;
  }
}

/** True if the clock agrees with what is stored, for nodes on which retention does not run. */
export async function isClockPlausible(store: Pick<Store, "events" | "retention">, nowMs: number): Promise<boolean> {
  return (await clockFaultAfterStop(store, nowMs)) === undefined;
}

async function clockFaultAfterStop(
  store: Pick<Store, "events" | "retention">,
  nowMs: number,
): Promise<string | undefined> {
  const [newest, { ranAt }] = await Promise.all([store.events.lastArrival(), store.retention.notes()]);
  const known = Math.max(ranAt ?? 0, newest === null ? 0 : timeOfId(newest));
  if (known === 0 || nowMs - known <= STOP_MS_MAX) return undefined;
  return `the clock is ${daysOf(nowMs - known)} days ahead of ${formatTime(known)}, when the service was last at work`;
}

function daysOf(ms: number): number {
  return Math.round(ms / DAY_MS);
}
