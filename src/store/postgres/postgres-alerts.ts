import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import { parseExact } from "../../lib/exact-json.ts";
import { SerialQueue } from "../../lib/serial-queue.ts";
import type { Alert, AlertSummary, TimelineEntry } from "../../model/alert.ts";
import type { EventMark } from "../../model/finding.ts";
import type { RuleDefinition } from "../../model/rule-definition.ts";
import { alertTrends } from "../alert-index/alert-trends.ts";
import type { AlertEventsPage, AlertEventsQuery, AlertStore, UnresolvedQuery } from "../ports/alert-store.ts";
import type { Fence } from "../ports/lease-store.ts";
import type { FencedCases } from "../ports/store.ts";
import { QueryRefused, StoreUnavailable } from "../ports/store-errors.ts";
import { plainText } from "./plain-text.ts";
import { olderEvents } from "./postgres-alert-events.ts";
import { loadAlertIndex, PostgresAlertIndex } from "./postgres-alert-index.ts";
import { AlertQuestions } from "./postgres-alert-questions.ts";
import { fencedDatabase } from "./fenced-database.ts";
import { fillAlertEntities, removeResolvedAlerts, writeAlerts } from "./postgres-alert-writer.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";
import { PostgresDetection } from "./postgres-detection.ts";
import { requireEpoch } from "./postgres-leases.ts";
import type { PostgresListener } from "./postgres-listener.ts";
import { NoticedListeners } from "./postgres-notices.ts";
import { PostgresNotifications } from "./postgres-notifications.ts";

// Alerts in PostgreSQL, with what is committed together with them: notifications and the progress of detection.

/** Changes that wait for their turn; more are refused. */
const WAITING_MAX = 2000;
/** The pause between two batches of a removal, so that other changes get most of the time. */
const REMOVAL_PAUSE_MS = 20;

export interface PostgresAlertsOptions {
  readonly database: PostgresDatabase;
  readonly listener: PostgresListener;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
}

export interface PostgresAlerts {
  readonly alerts: AlertStore;
  readonly detection: PostgresDetection;
  readonly notifications: PostgresNotifications;
  /** The same for whoever works under the lease. */
  under(fence: Fence): Pick<FencedCases, "alerts" | "detection" | "notifications">;
  dueAlerts(beforeMs: number): Promise<{ readonly rows: number; readonly total: number }>;
  /** Searches refused because there were too many others. */
  refused(): Promise<number>;
  /** Stops searches and waits for changes in flight. */
  close(): Promise<void>;
}

/** Resolves once this node has all alerts in its index. */
export async function openPostgresAlerts(options: PostgresAlertsOptions): Promise<PostgresAlerts> {
  const { database, listener, registry, log, now } = options;
  const metrics = newMetrics(registry);
  const self = randomUUID();
  const changed = new NoticedListeners(listener, "tocsin_alerts", self);
  const queued = new NoticedListeners(listener, "tocsin_notifications", self);
  const index = new PostgresAlertIndex(database, await loadAlertIndex(database), () => {
    metrics.reloads.inc();
    log.warn(
      "this node missed too many changes of alerts, or the server of PostgreSQL changed: reading all alerts anew",
    );
  });
  const questions = new AlertQuestions({ database, index, repeated: metrics.repeated });
  const detection = new PostgresDetection(database);
  const notifications = new PostgresNotifications({ database, queued, lost: metrics.lost });
  /** Of two changes by this node the first comes first, and only one waits for the lock of the alerts. */
  const turns = new SerialQueue();
  const change = <Value>(work: (transaction: PostgresQueries) => Promise<Value>): Promise<Value> => {
    if (turns.waiting >= WAITING_MAX) {
      return Promise.reject(new StoreUnavailable("queue_full", "too many changes of alerts are waiting"));
    }
    return turns.take(() => database.transact(work));
  };
  const columns = async () => (await index.current()).columns;
  const removeResolved = async (ms: number, signal: AbortSignal, fence?: Fence): Promise<number> => {
    let removed = 0;
    for (let isLast = false; !isLast && !signal.aborted;) {
      const batch = await change(async (transaction) => {
        const outcome = await removeResolvedAlerts(transaction, ms);
        if (fence) await requireEpoch(transaction, fence);
        return outcome;
      });
      metrics.removed.inc(batch.removed);
      removed += batch.removed;
      isLast = batch.isLast;
      if (!isLast) await sleep(REMOVAL_PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
    return removed;
  };

  const alerts: AlertStore = {
    ...singleAlerts(database),
    commit: async (changes) => {
      const { detected, fence, notifications: added = [] } = changes;
      const { conflicts, evicted, refused } = await change(async (transaction) => {
        const conflicting = await writeAlerts(transaction, changes);
        if (conflicting.length > 0) return { conflicts: conflicting, evicted: 0, refused: 0 };
        // Nobody can acquire the lease from here to the end of the commit.
        if (fence) await requireEpoch(transaction, fence);
        const dropped = await notifications.add(transaction, added);
        const forgotten = detected ? await detection.note(transaction, detected, now()) : 0;
        if (changes.alerts.length > 0) await changed.announce(transaction);
        return { conflicts: conflicting, evicted: forgotten, refused: dropped };
      });
      metrics.evicted.inc(evicted);
      metrics.lost.inc({ reason: "queue_full" }, refused);
      if (conflicts.length > 0) {
        metrics.conflicts.inc();
        return conflicts;
      }
      if (changes.alerts.length > 0) changed.notify();
      if (added.length > 0) queued.notify();
      return conflicts;
    },
    fillEntities: (found) => change((transaction) => fillAlertEntities(transaction, found)),
    removeResolvedBefore: (ms, signal) => removeResolved(ms, signal),
    list: (filter, position, sort, descending, context = {}) =>
      questions.list(filter, position, { sort, descending }, context),
    ids: (filter, limit, context = {}) => questions.ids(filter, limit, context),
    search: (query, context = {}) => questions.search(query, context),
    work: (query) => questions.work(query),
    totals: async (range) => (await columns()).totals(range),
    trends: async (query) => alertTrends(await columns(), query),
    resolutions: async (ruleName) => (await columns()).resolutions(ruleName),
    outcomes: async (ruleNames, since) => (await columns()).outcomes(ruleNames, since),
    onChange: (heard) => changed.add(heard),
  };
  return {
    alerts,
    detection,
    notifications,
    under: (fence) => ({
      alerts: {
        ...alerts,
        commit: (changes) => alerts.commit({ ...changes, fence }),
        removeResolvedBefore: (ms, signal) => removeResolved(ms, signal, fence),
      },
      detection: {
        position: () => detection.position(),
        seen: () => detection.seen(),
        begin: (nowMs) => detection.begin(nowMs, fence),
      },
      notifications: new PostgresNotifications({
        database: fencedDatabase(database, fence),
        queued,
        lost: metrics.lost,
      }),
    }),
    dueAlerts: async (beforeMs) => {
      const [row] = await database.query<{ rows: number; total: number }>(
        "SELECT count(*) FILTER (WHERE status = 'resolved' AND resolved_at < $1) AS rows, count(*) AS total FROM alerts",
        [beforeMs],
      );
      return row!;
    },
    refused: async () => questions.refused,
    close: async () => {
      questions.close();
      await turns.settled();
    },
  };
}

function newMetrics(registry: Registry) {
  const registers = [registry];
  return {
    evicted: new Counter({
      name: "tocsin_absence_forgotten_total",
      help: "Groups of absence rules dropped because there were too many",
      registers,
    }),
    lost: new Counter({
      name: "tocsin_notifications_lost_total",
      help: "Notifications dropped because the queue was full, and old ones removed because there were too many",
      labelNames: ["reason"] as const,
      registers,
    }),
    removed: new Counter({
      name: "tocsin_alerts_removed_total",
      help: "Resolved alerts removed by retention",
      registers,
    }),
    conflicts: new Counter({
      name: "tocsin_alert_conflicts_total",
      help: "Changes of alerts refused because the alert had changed",
      registers,
    }),
    reloads: new Counter({
      name: "tocsin_alert_index_reloads_total",
      help: "How often all alerts were read anew, because too many changes were missed or the server of PostgreSQL changed",
      registers,
    }),
    repeated: new Counter({
      name: "tocsin_alert_questions_repeated_total",
      help: "Questions asked again because an alert of the answer changed meanwhile",
      registers,
    }),
  };
}

const WHOLE = "alerts JOIN alert_documents USING (seq)";

interface WholeRow {
  readonly document: string;
  readonly events: string;
}

function toAlert({ document, events }: WholeRow): Alert {
  return parseExact(`${document.slice(0, -1)},"relatedEvents":${events}}`) as Alert;
}

type SingleAlerts = Pick<
  AlertStore,
  | "get"
  | "withTimeline"
  | "events"
  | "getMany"
  | "definition"
  | "unresolved"
  | "countUnresolved"
  | "withoutEntities"
  | "changedSince"
  | "lastChange"
  | "lastId"
>;

/** Look-ups that indexes of the database answer. */
function singleAlerts(database: PostgresDatabase): SingleAlerts {
  return {
    get: async (id) => {
      const [row] = await database.query<WholeRow>(`SELECT document, events FROM ${WHOLE} WHERE id = $1`, [
        plainText(id),
      ]);
      return row && toAlert(row);
    },
    withTimeline: async (id) => {
      const [row] = await database.query<WholeRow & { timeline: string | null }>(
        `SELECT document, events, (SELECT string_agg(entry, ',' ORDER BY number) FROM alert_timeline WHERE alert = seq) AS timeline
         FROM ${WHOLE} WHERE id = $1`,
        [plainText(id)],
      );
      return row && { alert: toAlert(row), timeline: parseExact(`[${row.timeline ?? ""}]`) as TimelineEntry[] };
    },
    events: (id, query) => readEvents(database, id, query),
    getMany: async (ids) => {
      const rows = await database.query<{ id: string; document: string }>(
        `SELECT id, document FROM ${WHOLE} WHERE id = ANY($1)`,
        [ids.map(plainText)],
      );
      const documents = new Map(rows.map(({ id, document }) => [id, document]));
      return ids.map((id) => {
        const document = documents.get(plainText(id));
        return document === undefined ? null : (parseExact(document) as AlertSummary);
      });
    },
    definition: async (id) => {
      const [row] = await database.query<{ definition: string }>(
        "SELECT definition FROM alert_definitions WHERE id = $1",
        [plainText(id)],
      );
      return row && (parseExact(row.definition) as RuleDefinition);
    },
    unresolved: (queries) => readUnresolved(database, queries),
    countUnresolved: async (ruleIds, besides, countMax) => {
      const rows = await database.query<{ count: number }>(
        `SELECT (SELECT count(*) FROM (SELECT 1 FROM alerts WHERE rule_id = given.id AND NOT starts_with(fold_key, $2)
           AND status <> 'resolved' LIMIT $3) AS counted) AS count
         FROM unnest($1::text[]) WITH ORDINALITY AS given(id, number) ORDER BY number`,
        [ruleIds.map(plainText), plainText(besides), countMax],
      );
      return rows.map(({ count }) => count);
    },
    withoutEntities: async (limit) => {
      const rows = await database.query<WholeRow>(
        `SELECT document, events FROM ${WHOLE} WHERE NOT has_entities ORDER BY seq DESC LIMIT $1`,
        [limit],
      );
      return rows.map(toAlert);
    },
    changedSince: async (change, limit) => {
      const rows = await database.query<{ change: number; document: string }>(
        `SELECT change, document FROM ${WHOLE} WHERE change > $1 ORDER BY change LIMIT $2`,
        [change, limit],
      );
      return rows.map((row) => ({ change: row.change, alert: parseExact(row.document) as AlertSummary }));
    },
    lastChange: async () => {
      const [row] = await database.query<{ change: number }>("SELECT last_change AS change FROM alert_counters");
      return row!.change;
    },
    lastId: async () => {
      const [row] = await database.query<{ id: string | null }>("SELECT max(id) AS id FROM alerts");
      return row!.id;
    },
  };
}

async function readEvents(
  database: PostgresDatabase,
  id: string,
  { after, limit, descending }: AlertEventsQuery,
): Promise<AlertEventsPage | undefined> {
  const found = await database.transact(
    async (transaction) => {
      const [row] = await transaction.query<WholeRow & { seq: number }>(
        `SELECT seq, document, events FROM ${WHOLE} WHERE id = $1`,
        [plainText(id)],
      );
      return row && { row, older: await olderEvents(transaction, row.seq) };
    },
    { isolation: "REPEATABLE READ" },
  );
  if (!found) return undefined;
  const { eventCount } = parseExact(found.row.document) as AlertSummary;
  const all = [...(JSON.parse(found.row.events) as EventMark[]), ...found.older];
  if (!descending) all.reverse();
  const index = after === undefined ? -1 : all.findIndex((event) => event.id === after);
  if (after !== undefined && index < 0) throw new QueryRefused("after", "is not an event of the alert");
  const events = all.slice(index + 1, index + 1 + limit);
  const nextCursor = index + 1 + limit < all.length ? events.at(-1)!.id : null;
  return { eventCount, total: all.length, events, nextCursor };
}

async function readUnresolved(
  database: PostgresDatabase,
  queries: readonly UnresolvedQuery[],
): Promise<(Alert | null)[]> {
  if (queries.length === 0) return [];
  const given = queries.map(({ ruleId, dedupKey, endsAfterMs, beginsBeforeMs }, place) => ({
    place,
    rule_id: plainText(ruleId),
    fold_key: plainText(dedupKey),
    // JSON has no infinity.
    ends_after: Math.max(endsAfterMs, -Number.MAX_VALUE),
    begins_before: Math.min(beginsBeforeMs, Number.MAX_VALUE),
  }));
  const rows = await database.query<WholeRow & { place: number }>(
    `SELECT place, document, events
     FROM json_to_recordset($1::json)
       AS given(place int8, rule_id text, fold_key text, ends_after float8, begins_before float8)
     CROSS JOIN LATERAL (SELECT seq FROM alerts WHERE alerts.rule_id = given.rule_id AND alerts.fold_key = given.fold_key
       AND status <> 'resolved' AND last_event_at > ends_after AND first_event_at < begins_before
       ORDER BY last_event_at DESC, seq DESC LIMIT 1) AS newest
     JOIN alert_documents USING (seq)`,
    [JSON.stringify(given)],
  );
  const found = new Map(rows.map((row) => [row.place, toAlert(row)]));
  return queries.map((_, place) => found.get(place) ?? null);
}
