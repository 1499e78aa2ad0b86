import { setTimeout as sleep } from "node:timers/promises";
import { Counter, type Registry } from "prom-client";
import { parseExact } from "../../../lib/exact-json.ts";
import { endingProcess, Thread } from "../../../lib/thread.ts";
import type { Alert, AlertSummary, TimelineEntry } from "../../../model/alert.ts";
import type { Rule } from "../../../model/rule.ts";
import type { AlertStore } from "../../ports/alert-store.ts";
import type { AnalysisStore } from "../../ports/analysis-store.ts";
import type { DetectionStore } from "../../ports/detection-store.ts";
import type { NotificationStore } from "../../ports/notification-store.ts";
import type { QueryContext } from "../../ports/query-context.ts";
import type { RuleStore } from "../../ports/rule-store.ts";
import { StoreUnavailable } from "../../ports/store-errors.ts";
import { asStoreError, isStorageFailure, noRoom, ofFile } from "../../files/store-failure.ts";
import { casesFile } from "../../files/layout.ts";
import { cancellable, type WithoutContext } from "../../queries/queries-in-flight.ts";
import type { CaseThreadApi, CaseThreadData } from "./case-thread.ts";

// Alerts, notifications, rules and the progress of detection, as the rest of the service sees them.

/** Calls that wait for the thread; more are refused. */
const CALLS_MAX = 2000;
/** Between two turns of removing: whoever else asks for the thread has most of it. */
const REMOVING_REST_MS = 20;

export interface CaseDatabaseOptions extends CaseThreadData {
  readonly registry: Registry;
  readonly now: () => number;
}

export class CaseDatabase {
  readonly alerts: AlertStore = {
    get: async (id) => toAlert<Alert>(await this.#ask("whole", id)),
    getMany: async (ids) => (await this.#ask("summaries", ids)).map(toAlert<AlertSummary>),
    withTimeline: async (id) => {
      const { alert, timeline } = await this.#ask("withTimeline", id);
      if (alert === undefined) return undefined;
      return {
        alert: parseExact(alert) as Alert,
        timeline: timeline.map((text) => parseExact(text) as TimelineEntry),
      };
    },
    unresolved: async (keys) => (await this.#ask("unresolved", keys)).map(toAlert<Alert>),
    countUnresolved: (...question) => this.#ask("countUnresolved", ...question),
    commit: async (changes) => {
      const { conflicts, forgotten, refused } = await this.#ask("commit", JSON.stringify(changes), this.#now());
      this.#forgotten.inc(forgotten);
      this.#lost.inc({ reason: "queue_full" }, refused);
      if (conflicts.length > 0) return conflicts;
      if (changes.alerts.length > 0) this.#changed.tell();
      if (changes.notifications && changes.notifications.length > 0) this.#queued.tell();
      return conflicts;
    },
    list: async (filter, position, sort, descending, context) => {
      const { total, documents, nextCursor } = await this.#list(context ?? {}, filter, position, sort, descending);
      return { total, items: documents.map((text) => parseExact(text) as AlertSummary), nextCursor };
    },
    totals: (range) => this.#ask("totals", range),
    resolutions: (ruleName) => this.#ask("resolutions", ruleName),
    changedSince: async (change, limit) =>
      (await this.#ask("changedSince", change, limit)).map((row) => ({
        change: row.change,
        alert: parseExact(row.document) as AlertSummary,
      })),
    lastChange: () => this.#ask("lastChange"),
    lastId: () => this.#ask("lastAlertId"),
    removeResolvedBefore: (ms, signal) => this.#removeResolved(ms, signal),
    onChange: (listener) => this.#changed.add(listener),
  };

  readonly notifications: NotificationStore = {
    get: (id) => this.#ask("notification", id),
    list: (...question) => this.#ask("notifications", ...question),
    backlog: (...question) => this.#ask("backlog", ...question),
    begin: (...args) => this.#ask("begin", ...args),
    beginAgain: (deliveryId) => this.#ask("beginAgain", deliveryId),
    settle: async (...args) => {
      this.#lost.inc({ reason: "forgotten" }, await this.#ask("settle", ...args));
    },
    recover: (now) => this.#ask("recover", now),
    resend: async (...args) => {
      const count = await this.#ask("resend", ...args);
      if (count > 0) this.#queued.tell();
      return count;
    },
    removeBefore: (ms) => this.#ask("removeNotifications", ms),
    counts: () => this.#ask("notificationCounts"),
    onQueued: (listener) => this.#queued.add(listener),
  };

  readonly analysis: AnalysisStore = {
    tokensUsed: (month) => this.#ask("tokensUsed", month),
    reserveTokens: (...args) => this.#ask("reserveTokens", ...args),
    addTokens: (month, tokens) => this.#ask("addTokens", month, tokens),
  };

  readonly rules: RuleStore = {
    list: async () => (await this.#ask("rules")).map((text) => parseExact(text) as Rule),
    put: (rule) => this.#ask("putRules", [rule]),
    putMany: (rules) => this.#ask("putRules", rules),
    remove: (id) => this.#ask("removeRule", id),
    stats: (ids, nowMs) => this.#ask("stats", ids, nowMs),
  };

  readonly detection: DetectionStore = {
    position: () => this.#ask("position"),
    seen: () => this.#ask("seen"),
    begin: (nowMs) => this.#ask("beginDetection", nowMs),
  };

  /** Questions that were refused because of too many others. */
  refused = 0;
  readonly #thread: Thread<CaseThreadApi>;
  readonly #path: string;
  readonly #now: () => number;
  readonly #forgotten: Counter;
  readonly #lost: Counter<"reason">;
  readonly #removed: Counter;
  readonly #changed = new Listeners();
  readonly #queued = new Listeners();
  #calls = 0;
  #lists = 0;
  #closing = false;

  private constructor({ dataDir, registry, now }: CaseDatabaseOptions) {
    this.#path = casesFile(dataDir);
    this.#now = now;
    this.#forgotten = new Counter({
      name: "tocsin_absence_forgotten_total",
      help: "Groups of absence rules that were forgotten because there were too many",
      registers: [registry],
    });
    this.#lost = new Counter({
      name: "tocsin_notifications_lost_total",
      help: "Notifications that found no room in line, and old ones that were forgotten because there were too many",
      labelNames: ["reason"],
      registers: [registry],
    });
    this.#removed = new Counter({
      name: "tocsin_alerts_removed_total",
      help: "Resolved alerts that were removed because they were too old",
      registers: [registry],
    });
    this.#thread = new Thread<CaseThreadApi>(
      new URL("./case-thread.ts", import.meta.url),
      { dataDir } satisfies CaseThreadData,
      endingProcess("the thread of the alerts"),
    );
  }

  static async open(options: CaseDatabaseOptions): Promise<CaseDatabase> {
    const cases = new CaseDatabase(options);
    try {
      await cases.#thread.call("open");
      return cases;
    } catch (error) {
      await cases.#thread.end();
      if (isStorageFailure(error)) throw noRoom(error);
      throw ofFile(casesFile(options.dataDir), error);
    }
  }

  /** Alerts that were resolved before this time, and all there are. */
  dueAlerts(beforeMs: number) {
    return this.#ask("due", beforeMs);
  }

  /** The file, where it was removed or replaced since it was opened. */
  goneFiles() {
    return this.#ask("gone");
  }

  /** Rejects when the thread does not answer. */
  async check(): Promise<void> {
    await this.#ask("lastChange");
  }

  /** Calls that are under way are answered before; searches are cancelled. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#thread.call("close");
    await this.#thread.end();
  }

  async #removeResolved(ms: number, signal: AbortSignal): Promise<number> {
    let removed = 0;
    let next: number | null = 0;
    while (next !== null && !signal.aborted) {
      const turn: { removed: number; next: number | null } = await this.#ask("removeResolved", ms, next);
      this.#removed.inc(turn.removed);
      removed += turn.removed;
      next = turn.next;
      if (next !== null) await sleep(REMOVING_REST_MS, undefined, { signal }).catch(() => undefined);
    }
    return removed;
  }

  async #list({ client, signal }: QueryContext, ...question: WithoutContext<Parameters<CaseThreadApi["list"]>>) {
    const number = this.#lists++;
    try {
      return await cancellable(
        signal,
        () => this.#thread.call("cancel", number),
        () => this.#ask("list", { number, client }, ...question),
      );
    } catch (error) {
      if (error instanceof StoreUnavailable && error.reason === "queue_full") this.refused++;
      throw error;
    }
  }

  async #ask<M extends keyof CaseThreadApi>(
    method: M,
    ...args: Parameters<CaseThreadApi[M]>
  ): Promise<Awaited<ReturnType<CaseThreadApi[M]>>> {
    if (this.#closing) throw new StoreUnavailable("closed", "the store is closing");
    if (this.#calls >= CALLS_MAX) throw new StoreUnavailable("queue_full", "too many calls are waiting for the alerts");
    this.#calls++;
    try {
      return await this.#thread.call(method, ...args);
    } catch (error) {
      throw asStoreError(error, this.#path);
    } finally {
      this.#calls--;
    }
  }
}

class Listeners {
  readonly #all = new Set<() => void>();

  /** Gives the way to stop it. */
  add(listener: () => void): () => void {
    // A function of its own for each call: the same listener may be given twice.
    const entry = () => listener();
    this.#all.add(entry);
    return () => void this.#all.delete(entry);
  }

  tell(): void {
    for (const listener of this.#all) listener();
  }
}

function toAlert<Kind>(text: string | undefined): Kind | undefined {
  return text === undefined ? undefined : (parseExact(text) as Kind);
}
