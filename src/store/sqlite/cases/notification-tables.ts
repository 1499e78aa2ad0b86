import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { NewNotification, Notification, NotificationStatus } from "../../../model/notification.ts";
import type { Channel } from "../../../model/rule.ts";
import type { Position } from "../../../model/page.ts";
import {
  NOTIFICATION_LIMITS,
  RECENT_NOTIFICATIONS_MAX,
  type Backlog,
  type NotificationFilter,
  type Settlement,
} from "../../ports/notification-store.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { Statements } from "./prepared-statements.ts";

// Notifications, in the same file as their alerts.

// Queries of the queue name their index: the planner's own choice would scan every notification ever sent.
const SCHEMA = `
CREATE TABLE IF NOT EXISTS notifications(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, alert_id TEXT NOT NULL, channel TEXT NOT NULL,
  reason TEXT NOT NULL, status TEXT NOT NULL, delivery TEXT, is_repeat INTEGER NOT NULL, attempts INTEGER NOT NULL,
  created_at INTEGER NOT NULL, queued_at INTEGER NOT NULL, due_at INTEGER, settled_at INTEGER, error TEXT, untold TEXT) STRICT;
CREATE INDEX IF NOT EXISTS notifications_fresh ON notifications(channel, queued_at, seq) WHERE status = 'waiting' AND delivery IS NULL;
CREATE INDEX IF NOT EXISTS notifications_retry ON notifications(channel, due_at) WHERE status = 'waiting' AND delivery IS NOT NULL;
CREATE INDEX IF NOT EXISTS notifications_sending ON notifications(seq) WHERE status = 'sending';
CREATE INDEX IF NOT EXISTS notifications_delivery ON notifications(delivery);
CREATE INDEX IF NOT EXISTS notifications_queued ON notifications(channel, queued_at);
CREATE INDEX IF NOT EXISTS notifications_status ON notifications(status, channel, seq);
CREATE INDEX IF NOT EXISTS notifications_alert ON notifications(alert_id, seq);
CREATE TABLE IF NOT EXISTS tokens(month TEXT PRIMARY KEY, used INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;

/** For a new file, or for one without a schema version. */
export function makeNotificationTables(db: DatabaseSync): void {
  db.exec(SCHEMA);
  // Older files do not store the recipients who have not received a message that others have.
  const isOld =
    db.prepare("SELECT 1 FROM pragma_table_info('notifications') WHERE name = 'untold'").get() === undefined;
  if (isOld) db.exec("ALTER TABLE notifications ADD COLUMN untold TEXT");
}

/** Eviction runs once in this many settlements, because counting reads many rows. */
const SETTLEMENTS_PER_EVICTION = 200;

interface NotificationRow {
  readonly seq: number;
  readonly id: string;
  readonly alert_id: string;
  readonly channel: string;
  readonly reason: string;
  readonly status: string;
  readonly delivery: string | null;
  readonly is_repeat: number;
  readonly attempts: number;
  readonly created_at: number;
  readonly queued_at: number;
  readonly due_at: number | null;
  readonly settled_at: number | null;
  readonly error: string | null;
  /** JSON. */
  readonly untold: string | null;
}

export class NotificationTables {
  readonly #sql: Statements;
  readonly #limits: typeof NOTIFICATION_LIMITS;
  #settledSinceEviction = SETTLEMENTS_PER_EVICTION;

  constructor(db: DatabaseSync, limits = NOTIFICATION_LIMITS) {
    this.#sql = new Statements(db);
    this.#limits = limits;
  }

  /** Must run in a transaction. Returns how many were refused because their queue was full. */
  add(notifications: readonly NewNotification[]): number {
    let refused = 0;
    const { waitingMax } = this.#limits;
    const fullReason = `more than ${waitingMax.toLocaleString("en-US")} were waiting for the channel`;
    const leftByChannel = new Map<Channel, number>();
    for (const { id, alertId, channel, reason, createdAt } of notifications) {
      const left = leftByChannel.get(channel) ?? waitingMax - this.#freshOf(channel);
      leftByChannel.set(channel, left - 1);
      const isFull = left <= 0;
      if (isFull) refused++;
      this.#sql.run(
        `INSERT INTO notifications(id, alert_id, channel, reason, status, is_repeat, attempts, created_at, queued_at, settled_at, error)
         VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?)`,
        id,
        alertId,
        channel,
        reason,
        isFull ? "dead" : "waiting",
        createdAt,
        createdAt,
        isFull ? createdAt : null,
        isFull ? fullReason : null,
      );
    }
    return refused;
  }

  #freshOf(channel: Channel): number {
    return this.#number(
      `SELECT count(*) AS number FROM notifications INDEXED BY notifications_fresh
       WHERE channel = ? AND status = 'waiting' AND delivery IS NULL`,
      channel,
    );
  }

  get(id: string): Notification | undefined {
    const row = this.#sql.read("SELECT * FROM notifications WHERE id = ?").get(id) as NotificationRow | undefined;
    return row && toNotification(row);
  }

  list(filter: NotificationFilter, position: Position) {
    const isCursor = position.mode === "cursor";
    const after = isCursor && position.after !== undefined ? this.#seqOf(position.after) : undefined;
    const { where, values } = whereOf(filter);
    const total = this.#number(`SELECT count(*) AS number FROM notifications WHERE ${where}`, ...values);
    const rows = this.#sql
      .read(`SELECT * FROM notifications WHERE ${where} AND seq < ? ORDER BY seq DESC LIMIT ? OFFSET ?`)
      .all(
        ...values,
        after ?? Number.MAX_SAFE_INTEGER,
        // One more than requested shows whether there is a next page.
        isCursor ? position.size + 1 : position.size,
        isCursor ? 0 : (position.page - 1) * position.size,
      ) as unknown as NotificationRow[];
    const items = rows.slice(0, position.size).map(toNotification);
    const hasNext = isCursor && rows.length > position.size;
    return { total, items, nextCursor: hasNext ? items.at(-1)!.id : null };
  }

  #seqOf(id: string): number {
    const row = this.#sql.read("SELECT seq FROM notifications WHERE id = ?").get(id) as { seq: number } | undefined;
    if (!row) throw new QueryRefused("after", "is not the id of a notification");
    return row.seq;
  }

  backlog(channel: Channel, since: number, now: number): Backlog {
    const first = this.#sql
      .read(
        `SELECT queued_at FROM notifications INDEXED BY notifications_fresh WHERE channel = ? AND status = 'waiting' AND delivery IS NULL
         ORDER BY queued_at, seq LIMIT 1`,
      )
      .get(channel) as { queued_at: number } | undefined;
    const recent = this.#number(
      "SELECT count(*) AS number FROM (SELECT 1 FROM notifications WHERE channel = ? AND queued_at > ? LIMIT ?)",
      channel,
      since,
      RECENT_NOTIFICATIONS_MAX,
    );
    // Of those that are due, the one with the fewest attempts, so that a message that always fails does not block others.
    const retry = this.#sql
      .read(
        `SELECT delivery, due_at FROM notifications INDEXED BY notifications_retry WHERE channel = ?1 AND status = 'waiting' AND delivery IS NOT NULL
         ORDER BY max(due_at, ?2), attempts, seq LIMIT 1`,
      )
      .get(channel, now) as { delivery: string; due_at: number } | undefined;
    return {
      freshSince: first?.queued_at ?? null,
      recent,
      retry: retry ? { deliveryId: retry.delivery, dueAt: retry.due_at } : null,
    };
  }

  /** Must run in a transaction. */
  begin(channel: Channel, deliveryId: string, limit: number): Notification[] {
    this.#sql.run(
      `UPDATE notifications SET status = 'sending', delivery = ?1, attempts = attempts + 1, due_at = NULL WHERE seq IN
         (SELECT seq FROM notifications INDEXED BY notifications_fresh WHERE channel = ?2 AND status = 'waiting' AND delivery IS NULL ORDER BY queued_at, seq LIMIT ?3)`,
      deliveryId,
      channel,
      limit,
    );
    return this.#ofDelivery(deliveryId);
  }

  /** Must run in a transaction. */
  beginAgain(deliveryId: string): Notification[] {
    this.#sql.run(
      "UPDATE notifications SET status = 'sending', attempts = attempts + 1, due_at = NULL WHERE delivery = ? AND status = 'waiting'",
      deliveryId,
    );
    return this.#ofDelivery(deliveryId);
  }

  #ofDelivery(deliveryId: string): Notification[] {
    const rows = this.#sql
      .read("SELECT * FROM notifications WHERE delivery = ? AND status = 'sending' ORDER BY seq")
      .all(deliveryId);
    return (rows as unknown as NotificationRow[]).map(toNotification);
  }

  /** Must run in a transaction. Returns the number of old notifications that were evicted. */
  settle(deliveryId: string, outcome: Settlement, now: number): number {
    const isSettled = outcome.status !== "waiting";
    this.#sql.run(
      `UPDATE notifications SET status = ?, error = ?, settled_at = ?, due_at = ?, is_repeat = max(is_repeat, ?),
         untold = coalesce(?, untold) WHERE delivery = ? AND status = 'sending'`,
      outcome.status,
      outcome.error,
      isSettled ? now : null,
      outcome.status === "waiting" ? outcome.dueAt : null,
      outcome.status === "waiting" && outcome.isRepeat ? 1 : 0,
      outcome.status === "waiting" && outcome.untold ? JSON.stringify(outcome.untold) : null,
      deliveryId,
    );
    if (!isSettled || ++this.#settledSinceEviction < SETTLEMENTS_PER_EVICTION) return 0;
    this.#settledSinceEviction = 0;
    return this.#evict("sent", this.#limits.sentMax) + this.#evict("dead", this.#limits.deadMax);
  }

  #evict(status: NotificationStatus, max: number): number {
    const count = this.#number("SELECT count(*) AS number FROM notifications WHERE status = ?", status);
    const excess = Math.max(0, count - max);
    if (excess > 0) {
      this.#sql.run(
        "DELETE FROM notifications WHERE seq IN (SELECT seq FROM notifications WHERE status = ? ORDER BY seq LIMIT ?)",
        status,
        excess,
      );
    }
    return excess;
  }

  /** Must run in a transaction. */
  recover(now: number): number {
    const messages = this.#number(
      "SELECT count(DISTINCT delivery) AS number FROM notifications WHERE status = 'sending'",
    );
    this.#sql.run(
      "UPDATE notifications SET status = 'waiting', is_repeat = 1, due_at = ? WHERE status = 'sending'",
      now,
    );
    return messages;
  }

  recentDeliveries(channel: Channel, since: number): { deliveryId: string; settledAt: number | null }[] {
    const rows = this.#sql
      .read(
        `SELECT delivery, max(settled_at) AS settled FROM notifications WHERE channel = ? AND delivery IS NOT NULL
         AND (status NOT IN ('sent', 'dead') OR settled_at >= ?) GROUP BY delivery ORDER BY delivery DESC LIMIT ${RECENT_NOTIFICATIONS_MAX}`,
      )
      .all(channel, since) as { delivery: string; settled: number | null }[];
    return rows.map(({ delivery, settled }) => ({ deliveryId: delivery, settledAt: settled }));
  }

  /** Must run in a transaction. */
  resend(which: { readonly id: string } | { readonly channel: Channel }, now: number): number {
    const [where, value] = "id" in which ? ["id", which.id] : ["channel", which.channel];
    return Number(
      this.#sql
        .read(
          `UPDATE notifications SET status = 'waiting', is_repeat = 0, attempts = 0, queued_at = ?1, settled_at = NULL,
             delivery = iif(untold IS NULL, NULL, delivery), due_at = iif(untold IS NULL, NULL, ?1)
           WHERE ${where} = ?2 AND status = 'dead'`,
        )
        .run(now, value!).changes,
    );
  }

  /** Must run in a transaction. */
  removeBefore(ms: number): number {
    const text = "DELETE FROM notifications WHERE status IN ('sent', 'dead') AND settled_at < ?";
    return Number(this.#sql.read(text).run(ms).changes);
  }

  /** Must run in a transaction. Removes the alert's notifications and returns true; returns false if some are not settled. */
  removeOf(alertId: string): boolean {
    const unsettled = this.#sql
      .read("SELECT 1 FROM notifications WHERE alert_id = ? AND status NOT IN ('sent', 'dead') LIMIT 1")
      .get(alertId);
    if (unsettled !== undefined) return false;
    this.#sql.run("DELETE FROM notifications WHERE alert_id = ?", alertId);
    return true;
  }

  counts(): { channel: Channel; status: NotificationStatus; count: number }[] {
    const rows = this.#sql
      .read("SELECT channel, status, count(*) AS count FROM notifications GROUP BY status, channel")
      .all();
    return (rows as { channel: Channel; status: NotificationStatus; count: number }[]).map((row) => ({ ...row }));
  }

  tokensUsed(month: string): number {
    const row = this.#sql.read("SELECT used FROM tokens WHERE month = ?").get(month) as { used: number } | undefined;
    return row?.used ?? 0;
  }

  /** Must run in a transaction. */
  reserveTokens(month: string, tokens: number, max: number): boolean {
    if (this.tokensUsed(month) + tokens > max) return false;
    this.addTokens(month, tokens);
    return true;
  }

  addTokens(month: string, tokens: number): void {
    this.#sql.run(
      "INSERT INTO tokens(month, used) VALUES (?1, ?2) ON CONFLICT(month) DO UPDATE SET used = used + ?2",
      month,
      tokens,
    );
  }

  #number(text: string, ...values: SQLInputValue[]): number {
    return (this.#sql.read(text).get(...values) as { number: number }).number;
  }
}

function whereOf({ status, channel, alertId }: NotificationFilter): { where: string; values: SQLInputValue[] } {
  const tests: string[] = [];
  const values: SQLInputValue[] = [];
  const add = (column: string, value: string | undefined) => {
    if (value === undefined) return;
    tests.push(`${column} = ?`);
    values.push(value);
  };
  add("status", status);
  add("channel", channel);
  add("alert_id", alertId);
  return { where: tests.length === 0 ? "true" : tests.join(" AND "), values };
}

function toNotification(row: NotificationRow): Notification {
  return {
    id: row.id,
    alertId: row.alert_id,
    channel: row.channel as Channel,
    reason: row.reason as Notification["reason"],
    status: row.status as NotificationStatus,
    deliveryId: row.delivery,
    attempts: row.attempts,
    isRepeat: row.is_repeat === 1,
    createdAt: row.created_at,
    queuedAt: row.queued_at,
    dueAt: row.due_at,
    settledAt: row.settled_at,
    error: row.error,
    untold: row.untold === null ? null : (JSON.parse(row.untold) as string[]),
  };
}
