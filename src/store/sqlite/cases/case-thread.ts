import type { DatabaseSync } from "node:sqlite";
import { workerData } from "node:worker_threads";
import { parseExact } from "../../../lib/exact-json.ts";
import { serveThread, type JsonText } from "../../../lib/thread.ts";
import type {
  AlertChanges,
  AlertFilter,
  AlertIds,
  AlertPage,
  AlertQuery,
  NewTimelineEntry,
} from "../../ports/alert-store.ts";
import type { Settlement } from "../../ports/notification-store.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { SqliteIdentity, type GoneFile } from "../../files/file-identity.ts";
import { casesFile } from "../../files/layout.ts";
import { QueriesInFlight, type NumberedContext } from "../../queries/queries-in-flight.ts";
import { QueryLanes, type Lane } from "../../queries/query-lanes.ts";
import { TimeSlices } from "../../queries/time-slices.ts";
import { openShared } from "../sqlite.ts";
import type { AlertReader, AlertSearchText } from "./alert-reader.ts";
import { openAlertTables, type AlertTables } from "./alert-tables.ts";
import type { AlertWriter } from "./alert-writer.ts";
import { CASES_MIGRATIONS } from "./case-migrations.ts";
import { NotificationTables } from "./notification-tables.ts";
import { RuleTables } from "./rule-tables.ts";
import { ViewTables } from "./view-tables.ts";

// The one thread that owns alerts, rules, notifications, saved views and the progress of detection. Changes that belong together are
// committed together, and the thread that answers requests never waits for the disk.

export interface CaseThreadData {
  readonly dataDir: string;
}

const PAGE_CACHE_KILOBYTES = 32 * 1024;
/** The log is truncated to this size after a burst. */
const LOG_BYTES_KEPT = 16 * 1024 * 1024;

/** A search for words that runs longer is stopped. */
const SEARCH_MS_MAX = 30_000;

const inFlight = new QueriesInFlight();
const lanes = new QueryLanes();

interface OpenCases {
  readonly db: DatabaseSync;
  readonly identity: SqliteIdentity;
  readonly alerts: AlertTables;
  readonly rules: RuleTables;
  readonly notifications: NotificationTables;
  readonly parts: CaseParts;
}
let opened: OpenCases;

/** The objects whose methods the main thread calls by name. */
export type CaseParts = ReturnType<typeof partsOf>;

function partsOf(alerts: AlertReader, rules: RuleTables, notifications: NotificationTables, views: ViewTables) {
  return {
    alerts,
    rules: inTransactions(rules, "put", "putMany", "remove"),
    detection: inTransactions(rules, "begin"),
    notifications: inTransactions(notifications, "begin", "beginAgain", "recover", "resend", "removeBefore"),
    analysis: inTransactions(notifications, "reserveTokens", "addTokens"),
    views: inTransactions(views, "add", "put", "arrange", "remove", "removeUnshared"),
  };
}

function open(): void {
  const { dataDir } = workerData as CaseThreadData;
  const pragmas = `PRAGMA cache_size = -${PAGE_CACHE_KILOBYTES}; PRAGMA journal_size_limit = ${LOG_BYTES_KEPT};`;
  const db = openShared(casesFile(dataDir), CASES_MIGRATIONS, pragmas);
  const [alerts, rules, notifications] = [openAlertTables(db), new RuleTables(db), new NotificationTables(db)];
  const identity = new SqliteIdentity(casesFile(dataDir));
  opened = {
    db,
    identity,
    alerts,
    rules,
    notifications,
    parts: partsOf(alerts.reader, rules, notifications, new ViewTables(db)),
  };
}

/** All or nothing. `work` returns false to roll back. */
function transact(work: () => boolean): void {
  const { db, identity } = opened;
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

/** Runs the work in a transaction that is always committed. */
function keep<Value>(work: () => Value): Value {
  let value: Value | undefined;
  transact(() => {
    value = work();
    return true;
  });
  return value as Value;
}

/** The same tables. Each of these methods runs in a transaction of its own. */
function inTransactions<Tables extends object>(tables: Tables, ...writes: readonly (keyof Tables)[]): Tables {
  return new Proxy(tables, {
    get(target, name) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      const call = (...args: unknown[]) => method.apply(target, args);
      return writes.includes(name as keyof Tables) ? (...args: unknown[]) => keep(() => call(...args)) : call;
    },
  });
}

/** Searches for words take long if many alerts contain them: only some run at a time, and each in slices. */
function list(
  { number, client }: NumberedContext,
  ...[filter, position, sort, descending]: Parameters<AlertReader["list"]>
): JsonText<AlertPage> | Promise<JsonText<AlertPage>> {
  const { alerts } = opened;
  const { search } = filter;
  if (search === undefined) return alerts.reader.list(filter, position, sort, descending);
  return inLane({ number, client }, "heavy", "search", (slices) =>
    alerts.reader.search(search, filter, position, { sort, descending }, slices),
  );
}

function ids(context: NumberedContext, filter: AlertFilter, limit: number): AlertIds | Promise<AlertIds> {
  const { alerts } = opened;
  const { search } = filter;
  if (search === undefined) return alerts.reader.ids(filter, limit);
  return inLane(context, "heavy", "search", (slices) => alerts.reader.searchIds(search, filter, limit, slices));
}

/** Searches that read columns alone are quick. */
function query(context: NumberedContext, asked: AlertQuery): Promise<AlertSearchText> {
  const { alerts } = opened;
  const lane = alerts.reader.isHeavy(asked) ? "heavy" : "quick";
  return inLane(context, lane, "query", (slices) => alerts.reader.query(asked, slices));
}

/** `field` is the one that is refused if the search takes too long. */
function inLane<Value>(
  { number, client }: NumberedContext,
  lane: Lane,
  field: string,
  work: (slices: TimeSlices) => Promise<Value>,
): Promise<Value> {
  return inFlight.during(number, (stop) =>
    lanes.take({ name: client, lane }, stop.signal, async () => {
      const refusal = new QueryRefused(field, `took longer than ${SEARCH_MS_MAX / 1000} s: narrow the other filters`);
      const timer = setTimeout(() => stop.abort(refusal), SEARCH_MS_MAX);
      try {
        return await work(new TimeSlices(stop.signal));
      } finally {
        clearTimeout(timer);
      }
    }),
  );
}

const api = {
  /** Resolves once the alert columns are in memory. */
  open,
  call(part: keyof CaseParts, method: string, args: readonly unknown[]): unknown {
    const methods = opened.parts[part] as unknown as { [name: string]: (...args: readonly unknown[]) => unknown };
    return methods[method]!(...args);
  },
  /** The changes are JSON text, which crosses threads in half the time of hundreds of objects. */
  commit(text: string, nowMs: number): { conflicts: string[]; evicted: number; refused: number } {
    const changes = parseExact(text) as AlertChanges;
    const { alerts, rules, notifications } = opened;
    let written: ReturnType<AlertWriter["write"]> | undefined;
    let evicted = 0;
    let refused = 0;
    transact(() => {
      written = alerts.writer.write(changes);
      if (written.conflicts.length > 0) return false;
      if (changes.notifications) refused = notifications.add(changes.notifications);
      if (changes.detected) evicted = rules.note(changes.detected, nowMs);
      return true;
    });
    const { conflicts, done } = written!;
    if (conflicts.length === 0) done();
    return { conflicts, evicted, refused };
  },
  fillEntities(found: Parameters<AlertWriter["fillEntities"]>[0]): void {
    keep(() => opened.alerts.writer.fillEntities(found))();
  },
  /** Removes one batch. */
  removeResolved(ms: number, fromSlot: number): { removed: number; next: number | null } {
    const { alerts, notifications } = opened;
    const { removed, next, done } = keep(() =>
      alerts.writer.removeResolved(ms, fromSlot, (alertId) => notifications.removeOf(alertId)),
    );
    done();
    return { removed, next };
  },
  settle: (deliveryId: string, outcome: Settlement, nowMs: number, timeline: readonly NewTimelineEntry[]) =>
    keep(() => {
      opened.alerts.writer.addEntries(timeline);
      return opened.notifications.settle(deliveryId, outcome, nowMs);
    }),
  list,
  ids,
  query,
  cancel: (number: number) => inFlight.cancel(number),
  gone: (): GoneFile[] => opened.identity.faults,
  async close(): Promise<void> {
    inFlight.cancelAll();
    await inFlight.haveEnded();
    opened.db.close();
  },
};

export type CaseThreadApi = typeof api;

serveThread(api);
