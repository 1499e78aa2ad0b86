import type { DatabaseSync } from "node:sqlite";
import { workerData } from "node:worker_threads";
import { parseExact } from "../../../lib/exact-json.ts";
import { serveThread } from "../../../lib/thread.ts";
import type { Rule } from "../../../model/rule.ts";
import type { AlertChanges, NewTimelineEntry } from "../../ports/alert-store.ts";
import type { Settlement } from "../../ports/notification-store.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { QueryLanes } from "../../queries/query-lanes.ts";
import { SqliteIdentity, type GoneFile } from "../../files/file-identity.ts";
import { casesFile } from "../../files/layout.ts";
import { TimeSlices } from "../../queries/time-slices.ts";
import { openSmall } from "../sqlite.ts";
import { QueriesInFlight, type NumberedContext } from "../../queries/queries-in-flight.ts";
import { AlertTables, type DocumentPage } from "./alert-tables.ts";
import { CASES_MIGRATIONS } from "./case-migrations.ts";
import { NotificationTables } from "./notification-tables.ts";
import { RuleTables } from "./rule-tables.ts";

// The one thread that has the alerts, the rules and the progress of detection: what belongs together is committed
// together, and nobody who answers requests waits for the disk.

export interface CaseThreadData {
  readonly dataDir: string;
}

const PAGE_CACHE_KILOBYTES = 32 * 1024;
/** What a burst has made of the log is cut back to this. */
const LOG_BYTES_KEPT = 16 * 1024 * 1024;

/** A search for words that runs longer is stopped. */
const SEARCH_MS_MAX = 30_000;

const underWay = new QueriesInFlight();
const lanes = new QueryLanes();

interface OpenCases {
  readonly db: DatabaseSync;
  readonly alerts: AlertTables;
  readonly rules: RuleTables;
  readonly notifications: NotificationTables;
  readonly identity: SqliteIdentity;
}
let opened: OpenCases | undefined;

function open(): void {
  const { dataDir } = workerData as CaseThreadData;
  const pragmas = `PRAGMA cache_size = -${PAGE_CACHE_KILOBYTES}; PRAGMA journal_size_limit = ${LOG_BYTES_KEPT};`;
  const db = openSmall(casesFile(dataDir), CASES_MIGRATIONS, pragmas);
  const [alerts, rules, notifications] = [new AlertTables(db), new RuleTables(db), new NotificationTables(db)];
  opened = { db, alerts, rules, notifications, identity: new SqliteIdentity(casesFile(dataDir)) };
}

/** All or nothing. `work` says whether it wants to keep what it did. */
function transact(work: () => boolean): void {
  const { db, identity } = opened!;
  identity.during(() => {
    db.exec("BEGIN IMMEDIATE");
    try {
      db.exec(work() ? "COMMIT" : "ROLLBACK");
    } catch (error) {
      // A full disk may have rolled back already; either way the connection must be out of the transaction.
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  });
}

/** The same for work that is always kept. */
function keep<Value>(work: () => Value): Value {
  let value: Value | undefined;
  transact(() => {
    value = work();
    return true;
  });
  return value as Value;
}

/** Lists that ask for words take long where many alerts have them: only some run at a time, and each in parts. */
function list(
  { number, client }: NumberedContext,
  ...[filter, position, sort, descending]: Parameters<AlertTables["list"]>
): DocumentPage | Promise<DocumentPage> {
  const { search } = filter;
  if (search === undefined) return opened!.alerts.list(filter, position, sort, descending);
  return underWay.during(number, (stop) =>
    lanes.take({ name: client, lane: "heavy" }, stop.signal, async () => {
      const timer = setTimeout(() => stop.abort(tookTooLong()), SEARCH_MS_MAX);
      try {
        return await opened!.alerts.search(search, filter, position, { sort, descending }, new TimeSlices(stop.signal));
      } finally {
        clearTimeout(timer);
      }
    }),
  );
}

function tookTooLong(): QueryRefused {
  return new QueryRefused("search", `took longer than ${SEARCH_MS_MAX / 1000} s: narrow the other filters`);
}

const api = {
  /** Answers once what is asked most is in memory. */
  open,
  /** The changes as JSON: that crosses between threads in half the time that hundreds of objects take. */
  commit(text: string, nowMs: number): { conflicts: string[]; forgotten: number; refused: number } {
    const changes = parseExact(text) as AlertChanges;
    const { alerts, rules, notifications } = opened!;
    let written: ReturnType<AlertTables["write"]> | undefined;
    let forgotten = 0;
    let refused = 0;
    transact(() => {
      written = alerts.write(changes);
      if (written.conflicts.length > 0) return false;
      if (changes.notifications) refused = notifications.add(changes.notifications);
      if (changes.detected) forgotten = rules.note(changes.detected, nowMs);
      return true;
    });
    const { conflicts, done } = written!;
    if (conflicts.length === 0) done();
    return { conflicts, forgotten, refused };
  },
  /** One turn of many. */
  removeResolved(ms: number, fromSlot: number): { removed: number; next: number | null } {
    const { alerts, notifications } = opened!;
    const { removed, next, done } = keep(() =>
      alerts.removeResolved(ms, fromSlot, (alertId) => notifications.removeOf(alertId)),
    );
    done();
    return { removed, next };
  },
  whole: (id: string) => opened!.alerts.whole(id),
  summaries: (ids: readonly string[]) => opened!.alerts.summaries(ids),
  withTimeline: (id: string) => ({ alert: opened!.alerts.whole(id), timeline: opened!.alerts.timeline(id) }),
  unresolved: (...args: Parameters<AlertTables["unresolved"]>) => opened!.alerts.unresolved(...args),
  countUnresolved: (...args: Parameters<AlertTables["countUnresolved"]>) => opened!.alerts.countUnresolved(...args),
  list,
  cancel: (number: number) => underWay.cancel(number),
  totals: (...args: Parameters<AlertTables["totals"]>) => opened!.alerts.totals(...args),
  resolutions: (ruleName: string) => opened!.alerts.resolutions(ruleName),
  changedSince: (change: number, limit: number) => opened!.alerts.changedSince(change, limit),
  lastChange: () => opened!.alerts.lastChange,
  lastAlertId: () => opened!.alerts.lastId,

  notification: (id: string) => opened!.notifications.get(id),
  notifications: (...args: Parameters<NotificationTables["list"]>) => opened!.notifications.list(...args),
  backlog: (...args: Parameters<NotificationTables["backlog"]>) => opened!.notifications.backlog(...args),
  begin: (...args: Parameters<NotificationTables["begin"]>) => keep(() => opened!.notifications.begin(...args)),
  beginAgain: (deliveryId: string) => keep(() => opened!.notifications.beginAgain(deliveryId)),
  settle: (deliveryId: string, outcome: Settlement, nowMs: number, timeline: readonly NewTimelineEntry[]) =>
    keep(() => {
      opened!.alerts.addEntries(timeline);
      return opened!.notifications.settle(deliveryId, outcome, nowMs);
    }),
  recover: (nowMs: number) => keep(() => opened!.notifications.recover(nowMs)),
  resend: (...args: Parameters<NotificationTables["resend"]>) => keep(() => opened!.notifications.resend(...args)),
  removeNotifications: (ms: number) => keep(() => opened!.notifications.removeBefore(ms)),
  notificationCounts: () => opened!.notifications.counts(),
  tokensUsed: (month: string) => opened!.notifications.tokensUsed(month),
  reserveTokens: (...args: Parameters<NotificationTables["reserveTokens"]>) =>
    keep(() => opened!.notifications.reserveTokens(...args)),
  addTokens: (month: string, tokens: number) => keep(() => opened!.notifications.addTokens(month, tokens)),

  rules: () => opened!.rules.rules(),
  putRules: (list: readonly Rule[]) =>
    transact(() => {
      for (const rule of list) opened!.rules.put(rule);
      return true;
    }),
  removeRule: (id: string) =>
    transact(() => {
      opened!.rules.remove(id);
      return true;
    }),
  stats: (ids: readonly string[], nowMs: number) => opened!.rules.stats(ids, nowMs),
  position: () => opened!.rules.position(),
  seen: () => opened!.rules.seen(),
  beginDetection: (nowMs: number) => keep(() => opened!.rules.begin(nowMs)),
  due: (beforeMs: number) => opened!.alerts.due(beforeMs),
  gone: (): GoneFile[] => opened!.identity.faults,
  async close(): Promise<void> {
    underWay.cancelAll();
    await underWay.haveEnded();
    opened?.db.close();
  },
};

export type CaseThreadApi = typeof api;

serveThread(api);
