import { setTimeout as sleep } from "node:timers/promises";
import { Counter, type Registry } from "prom-client";
import { parseExact } from "../../../lib/exact-json.ts";
import { Listeners } from "../../../lib/listeners.ts";
import { endingProcess, Thread, type RemoteMethods, type ThreadResult } from "../../../lib/thread.ts";
import type { AlertSummary } from "../../../model/alert.ts";
import type { AlertStore } from "../../ports/alert-store.ts";
import type { AnalysisStore } from "../../ports/analysis-store.ts";
import type { DetectionStore } from "../../ports/detection-store.ts";
import type { NotificationStore } from "../../ports/notification-store.ts";
import type { QueryContext } from "../../ports/query-context.ts";
import type { RuleStore } from "../../ports/rule-store.ts";
import type { ViewStore } from "../../ports/view-store.ts";
import { StoreUnavailable } from "../../ports/store-errors.ts";
import { asStoreError, isStorageFailure, diskFull, ofFile } from "../../files/store-failure.ts";
import { casesFile } from "../../files/layout.ts";
import { cancellable, type NumberedContext } from "../../queries/queries-in-flight.ts";
import type { CaseParts, CaseThreadApi, CaseThreadData } from "./case-thread.ts";

// The main thread's side of the case database. The tables are in a thread of their own.

/** Calls in flight; more are refused. */
const CALLS_MAX = 2000;
/** The pause between two batches of a removal, so that other calls get most of the thread. */
const REMOVAL_PAUSE_MS = 20;

export interface CaseDatabaseOptions extends CaseThreadData {
  readonly registry: Registry;
  readonly now: () => number;
}

/** Opens the thread of the case database. */
export async function openCaseDatabase(options: CaseDatabaseOptions): Promise<SqliteCaseDatabase> {
  const cases = new SqliteCaseDatabase(options);
  await cases.open();
  return cases;
}

export class SqliteCaseDatabase {
  readonly alerts: AlertStore = {
    ...this.#remote(
      "alerts",
      "get",
      "getMany",
      "withTimeline",
      "definition",
      "events",
      "unresolved",
      "countUnresolved",
      "totals",
      "trends",
      "resolutions",
      "outcomes",
      "work",
      "changedSince",
      "lastChange",
      "lastId",
      "withoutEntities",
    ),
    fillEntities: (found) => this.#call("fillEntities", found),
    commit: async (changes) => {
      const { conflicts, evicted, refused } = await this.#call("commit", JSON.stringify(changes), this.#now());
      this.#evictedGroups.inc(evicted);
      this.#lost.inc({ reason: "queue_full" }, refused);
      if (conflicts.length > 0) return conflicts;
      if (changes.alerts.length > 0) this.#changed.notify();
      if (changes.notifications && changes.notifications.length > 0) this.#queued.notify();
      return conflicts;
    },
    list: (filter, position, sort, descending, context = {}) =>
      this.#query(context, (numbered) => this.#call("list", numbered, filter, position, sort, descending)),
    ids: (filter, limit, context = {}) =>
      this.#query(context, (numbered) => this.#call("ids", numbered, filter, limit)),
    search: async (query, context = {}) => {
      const found = await this.#query(context, (numbered) => this.#call("query", numbered, query));
      return { ...found, items: parseExact(found.items) as AlertSummary[] };
    },
    removeResolvedBefore: (ms, signal) => this.#removeResolved(ms, signal),
    onChange: (listener) => this.#changed.add(listener),
  };

  readonly notifications: NotificationStore = {
    ...this.#remote(
      "notifications",
      "get",
      "list",
      "backlog",
      "begin",
      "beginAgain",
      "recentDeliveries",
      "recover",
      "removeBefore",
      "counts",
    ),
    settle: async (...args) => {
      this.#lost.inc({ reason: "forgotten" }, await this.#call("settle", ...args));
    },
    resend: async (which, now) => {
      const count = await this.#remote("notifications", "resend").resend(which, now);
      if (count > 0) this.#queued.notify();
      return count;
    },
    onQueued: (listener) => this.#queued.add(listener),
  };

  readonly analysis: AnalysisStore = this.#remote("analysis", "tokensUsed", "reserveTokens", "addTokens");
  readonly views: ViewStore = this.#remote("views", "list", "get", "add", "put", "arrange", "remove", "removeUnshared");
  readonly rules: RuleStore = this.#remote("rules", "list", "put", "putMany", "remove", "stats");
  readonly detection: DetectionStore = this.#remote("detection", "position", "seen", "begin");

  /** Alerts that were resolved before this time, and all alerts. */
  readonly dueAlerts = this.#remote("alerts", "due").due;

  /** Searches refused because there were too many others. */
  refused = 0;
  readonly #thread: Thread<CaseThreadApi>;
  readonly #path: string;
  readonly #now: () => number;
  readonly #evictedGroups: Counter;
  readonly #lost: Counter<"reason">;
  readonly #removed: Counter;
  readonly #changed = new Listeners();
  readonly #queued = new Listeners();
  #calls = 0;
  #queries = 0;
  #closing = false;

  constructor({ dataDir, registry, now }: CaseDatabaseOptions) {
    this.#path = casesFile(dataDir);
    this.#now = now;
    this.#evictedGroups = new Counter({
      name: "tocsin_absence_forgotten_total",
      help: "Groups of absence rules dropped because there were too many",
      registers: [registry],
    });
    this.#lost = new Counter({
      name: "tocsin_notifications_lost_total",
      help: "Notifications dropped because the queue was full, and old ones removed because there were too many",
      labelNames: ["reason"],
      registers: [registry],
    });
    this.#removed = new Counter({
      name: "tocsin_alerts_removed_total",
      help: "Resolved alerts removed by retention",
      registers: [registry],
    });
    this.#thread = new Thread<CaseThreadApi>(
      new URL("./case-thread.ts", import.meta.url),
      { dataDir } satisfies CaseThreadData,
      endingProcess("the thread of the case database"),
    );
  }

  async open(): Promise<void> {
    try {
      await this.#thread.call("open");
    } catch (error) {
      await this.#thread.end();
      if (isStorageFailure(error)) throw diskFull(error);
      throw ofFile(this.#path, error);
    }
  }

  /** The file, if it was removed or replaced since it was opened. */
  goneFiles() {
    return this.#call("gone");
  }

  /** Rejects when the thread does not answer. */
  async check(): Promise<void> {
    await this.alerts.lastChange();
  }

  /** Calls in flight are answered first; searches are cancelled. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#thread.call("close");
    await this.#thread.end();
  }

  async #removeResolved(ms: number, signal: AbortSignal): Promise<number> {
    let removed = 0;
    let next: number | null = 0;
    while (next !== null && !signal.aborted) {
      const batch: { removed: number; next: number | null } = await this.#call("removeResolved", ms, next);
      this.#removed.inc(batch.removed);
      removed += batch.removed;
      next = batch.next;
      if (next !== null) await sleep(REMOVAL_PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
    return removed;
  }

  /** Runs a query that the signal cancels. */
  async #query<Value>(
    { client, signal }: QueryContext,
    ask: (context: NumberedContext) => Promise<Value>,
  ): Promise<Value> {
    const number = this.#queries++;
    try {
      return await cancellable(
        signal,
        () => this.#thread.call("cancel", number),
        () => ask({ number, client }),
      );
    } catch (error) {
      if (error instanceof StoreUnavailable && error.reason === "queue_full") this.refused++;
      throw error;
    }
  }

  /** Methods of the tables in the thread, to be called as if they were here. */
  #remote<Part extends keyof CaseParts, Method extends keyof CaseParts[Part] & string>(
    part: Part,
    ...methods: readonly Method[]
  ): RemoteMethods<CaseParts[Part], Method> {
    const call =
      (method: Method) =>
      (...args: readonly unknown[]) =>
        this.#call("call", part, method, args);
    return Object.fromEntries(methods.map((method) => [method, call(method)])) as unknown as RemoteMethods<
      CaseParts[Part],
      Method
    >;
  }

  async #call<M extends keyof CaseThreadApi>(
    method: M,
    ...args: Parameters<CaseThreadApi[M]>
  ): Promise<ThreadResult<ReturnType<CaseThreadApi[M]>>> {
    if (this.#closing) throw new StoreUnavailable("closed", "the store is closing");
    if (this.#calls >= CALLS_MAX)
      throw new StoreUnavailable("queue_full", "too many calls are waiting for the case database");
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
