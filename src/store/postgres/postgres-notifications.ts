import type { Counter } from "prom-client";
import type { NewNotification, Notification, NotificationStatus } from "../../model/notification.ts";
import type { Position } from "../../model/page.ts";
import type { Channel } from "../../model/rule.ts";
import type { NewTimelineEntry } from "../ports/alert-store.ts";
import {
  NOTIFICATION_LIMITS,
  RECENT_NOTIFICATIONS_MAX,
  type Backlog,
  type NotificationFilter,
  type NotificationStore,
  type Settlement,
} from "../ports/notification-store.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import { plainText, textOfPlain } from "./plain-text.ts";
import type { PostgresQueries, PostgresTransactions, PostgresValue } from "./postgres-database.ts";
import type { NoticedListeners } from "./postgres-notices.ts";
import { addTimelineEntries } from "./postgres-timelines.ts";

export const POSTGRES_NOTIFICATIONS_SCHEMA = `
CREATE TABLE notifications(seq int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE,
  alert_id text COLLATE "C" NOT NULL, channel text COLLATE "C" NOT NULL, reason text NOT NULL, status text COLLATE "C" NOT NULL,
  delivery text COLLATE "C", is_repeat bool NOT NULL, attempts int8 NOT NULL, created_at int8 NOT NULL, queued_at int8 NOT NULL,
  due_at int8, settled_at int8, error text, untold text);
CREATE INDEX notifications_fresh ON notifications(channel, queued_at, seq) WHERE status = 'waiting' AND delivery IS NULL;
CREATE INDEX notifications_retry ON notifications(channel, due_at) WHERE status = 'waiting' AND delivery IS NOT NULL;
CREATE INDEX notifications_sending ON notifications(seq) WHERE status = 'sending';
CREATE INDEX notifications_delivery ON notifications(delivery) WHERE delivery IS NOT NULL;
CREATE INDEX notifications_queued ON notifications(channel, queued_at);
CREATE INDEX notifications_status ON notifications(status, channel, seq);
CREATE INDEX notifications_alert ON notifications(alert_id, seq);
`;

/** Eviction runs once in this many settlements, because counting reads many rows. */
const SETTLEMENTS_PER_EVICTION = 200;

interface StoredNotification {
  readonly seq: number;
  readonly id: string;
  readonly alert_id: string;
  readonly channel: string;
  readonly reason: string;
  readonly status: string;
  readonly delivery: string | null;
  readonly is_repeat: boolean;
  readonly attempts: number;
  readonly created_at: number;
  readonly queued_at: number;
  readonly due_at: number | null;
  readonly settled_at: number | null;
  readonly error: string | null;
  /** JSON. */
  readonly untold: string | null;
}

export interface PostgresNotificationsOptions {
  readonly database: PostgresTransactions;
  readonly queued: NoticedListeners;
  /** Counts notifications that were dropped or forgotten. */
  readonly lost: Counter<"reason">;
  readonly limits?: typeof NOTIFICATION_LIMITS;
}

export class PostgresNotifications implements NotificationStore {
  readonly #database: PostgresTransactions;
  readonly #queued: NoticedListeners;
  readonly #lost: Counter<"reason">;
  readonly #limits: typeof NOTIFICATION_LIMITS;
  #settledSinceEviction = SETTLEMENTS_PER_EVICTION;

  constructor({ database, queued, lost, limits = NOTIFICATION_LIMITS }: PostgresNotificationsOptions) {
    this.#database = database;
    this.#queued = queued;
    this.#lost = lost;
    this.#limits = limits;
  }

  /** Must run in a transaction that excludes other commits. Returns how many were refused because their queue was full. */
  async add(transaction: PostgresQueries, notifications: readonly NewNotification[]): Promise<number> {
    if (notifications.length === 0) return 0;
    let refused = 0;
    const { waitingMax } = this.#limits;
    const fullReason = plainText(`more than ${waitingMax.toLocaleString("en-US")} were waiting for the channel`);
    const rows = await transaction.query<{ channel: Channel; fresh: number }>(
      `SELECT channel, count(*) AS fresh FROM notifications
       WHERE channel = ANY($1) AND status = 'waiting' AND delivery IS NULL GROUP BY channel`,
      [[...new Set(notifications.map(({ channel }) => channel))]],
    );
    const left = new Map(rows.map(({ channel, fresh }) => [channel, waitingMax - fresh]));
    const given = notifications.map(({ id, alertId, channel, reason, createdAt }, number) => {
      const room = left.get(channel) ?? waitingMax;
      left.set(channel, room - 1);
      const isFull = room <= 0;
      if (isFull) refused++;
      return {
        number,
        id: plainText(id),
        alert_id: plainText(alertId),
        channel,
        reason,
        status: isFull ? "dead" : "waiting",
        created_at: createdAt,
        settled_at: isFull ? createdAt : null,
        error: isFull ? fullReason : null,
      };
    });
    await transaction.run(
      `INSERT INTO notifications(id, alert_id, channel, reason, status, is_repeat, attempts, created_at, queued_at, settled_at, error)
       SELECT id, alert_id, channel, reason, status, false, 0, created_at, created_at, settled_at, error
       FROM json_to_recordset($1::json) AS given(number int8, id text, alert_id text, channel text, reason text, status text,
         created_at int8, settled_at int8, error text)
       ORDER BY number`,
      [JSON.stringify(given)],
    );
    await this.#queued.announce(transaction);
    return refused;
  }

  async get(id: string): Promise<Notification | undefined> {
    const [row] = await this.#database.query<StoredNotification>("SELECT * FROM notifications WHERE id = $1", [
      plainText(id),
    ]);
    return row && toNotification(row);
  }

  list = async (filter: NotificationFilter, position: Position) =>
    this.#database.transact(
      async (transaction) => {
        const isCursor = position.mode === "cursor";
        const after = isCursor && position.after !== undefined ? await seqOf(transaction, position.after) : undefined;
        const { where, values } = whereOf(filter);
        const total = await numberOf(
          transaction,
          `SELECT count(*) AS number FROM notifications WHERE ${where}`,
          values,
        );
        const [from, limit, offset] = [1, 2, 3].map((n) => `$${values.length + n}`);
        const rows = await transaction.query<StoredNotification>(
          `SELECT * FROM notifications WHERE ${where} AND seq < ${from} ORDER BY seq DESC LIMIT ${limit} OFFSET ${offset}`,
          [
            ...values,
            after ?? Number.MAX_SAFE_INTEGER,
            // One more than requested shows whether there is a next page.
            isCursor ? position.size + 1 : position.size,
            isCursor ? 0 : (position.page - 1) * position.size,
          ],
        );
        const items = rows.slice(0, position.size).map(toNotification);
        const hasNext = isCursor && rows.length > position.size;
        return { total, items, nextCursor: hasNext ? items.at(-1)!.id : null };
      },
      { isolation: "REPEATABLE READ" },
    );

  async backlog(channel: Channel, since: number, now: number): Promise<Backlog> {
    // Of those that are due, the one with the fewest attempts, so that a message that always fails does not block others.
    const [row] = await this.#database.query<{
      fresh: number | null;
      recent: number;
      delivery: string | null;
      due_at: number | null;
    }>(
      `SELECT
         (SELECT queued_at FROM notifications WHERE channel = $1 AND status = 'waiting' AND delivery IS NULL
          ORDER BY queued_at, seq LIMIT 1) AS fresh,
         (SELECT count(*) FROM (SELECT 1 FROM notifications WHERE channel = $1 AND queued_at > $2 LIMIT ${RECENT_NOTIFICATIONS_MAX}) AS counted)
           AS recent,
         retry.delivery, retry.due_at
       FROM (VALUES (1)) AS one
       LEFT JOIN LATERAL (SELECT delivery, due_at FROM notifications
         WHERE channel = $1 AND status = 'waiting' AND delivery IS NOT NULL
         ORDER BY greatest(due_at, $3), attempts, seq LIMIT 1) AS retry ON true`,
      [channel, since, now],
    );
    const { fresh, recent, delivery, due_at: dueAt } = row!;
    return {
      freshSince: fresh,
      recent,
      retry: delivery === null ? null : { deliveryId: textOfPlain(delivery), dueAt: dueAt! },
    };
  }

  /** Of several processes that ask at once, each gets other notifications. */
  async begin(channel: Channel, deliveryId: string, limit: number): Promise<readonly Notification[]> {
    const rows = await this.#update(
      `UPDATE notifications SET status = 'sending', delivery = $1, attempts = attempts + 1, due_at = NULL WHERE seq IN
         (SELECT seq FROM notifications WHERE channel = $2 AND status = 'waiting' AND delivery IS NULL
          ORDER BY queued_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED)
       RETURNING *`,
      [plainText(deliveryId), channel, limit],
    );
    return inOrder(rows);
  }

  /** Of several processes that ask at once, one gets the message. */
  async beginAgain(deliveryId: string): Promise<readonly Notification[]> {
    const rows = await this.#update(
      `UPDATE notifications SET status = 'sending', attempts = attempts + 1, due_at = NULL
       WHERE delivery = $1 AND status = 'waiting' RETURNING *`,
      [plainText(deliveryId)],
    );
    return inOrder(rows);
  }

  async settle(
    deliveryId: string,
    outcome: Settlement,
    now: number,
    timeline: readonly NewTimelineEntry[],
  ): Promise<void> {
    const isSettled = outcome.status !== "waiting";
    const isEvicting = isSettled && ++this.#settledSinceEviction >= SETTLEMENTS_PER_EVICTION;
    const forgotten = await this.#database.transact(async (transaction) => {
      await addTimelineEntries(transaction, timeline);
      await transaction.run(
        `UPDATE notifications SET status = $1, error = $2, settled_at = $3, due_at = $4, is_repeat = is_repeat OR $5,
           untold = coalesce($6, untold) WHERE delivery = $7 AND status = 'sending'`,
        [
          outcome.status,
          outcome.error === null ? null : plainText(outcome.error),
          isSettled ? now : null,
          outcome.status === "waiting" ? outcome.dueAt : null,
          outcome.status === "waiting" && outcome.isRepeat,
          outcome.status === "waiting" && outcome.untold ? JSON.stringify(outcome.untold) : null,
          plainText(deliveryId),
        ],
      );
      if (!isEvicting) return 0;
      const { sentMax, deadMax } = this.#limits;
      return (await evict(transaction, "sent", sentMax)) + (await evict(transaction, "dead", deadMax));
    });
    if (isEvicting) this.#settledSinceEviction = 0;
    this.#lost.inc({ reason: "forgotten" }, forgotten);
  }

  async recover(now: number): Promise<number> {
    const rows = await this.#update(
      "UPDATE notifications SET status = 'waiting', is_repeat = true, due_at = $1 WHERE status = 'sending' RETURNING *",
      [now],
    );
    return new Set(rows.map(({ delivery }) => delivery)).size;
  }

  async recentDeliveries(channel: Channel, since: number) {
    const rows = await this.#database.query<{ delivery: string; settled: number | null }>(
      `SELECT delivery, max(settled_at) AS settled FROM notifications WHERE channel = $1 AND delivery IS NOT NULL
         AND (status NOT IN ('sent', 'dead') OR settled_at >= $2) GROUP BY delivery ORDER BY delivery DESC LIMIT ${RECENT_NOTIFICATIONS_MAX}`,
      [channel, since],
    );
    return rows.map(({ delivery, settled }) => ({ deliveryId: textOfPlain(delivery), settledAt: settled }));
  }

  async resend(which: { readonly id: string } | { readonly channel: Channel }, now: number): Promise<number> {
    const [where, value] = "id" in which ? ["id", plainText(which.id)] : ["channel", which.channel];
    const count = await this.#database.transact(async (transaction) => {
      const changed = await transaction.run(
        `UPDATE notifications SET status = 'waiting', is_repeat = false, attempts = 0, queued_at = $1, settled_at = NULL,
           delivery = CASE WHEN untold IS NULL THEN NULL ELSE delivery END,
           due_at = CASE WHEN untold IS NULL THEN NULL ELSE $1::int8 END
         WHERE ${where} = $2 AND status = 'dead'`,
        [now, value!],
      );
      if (changed > 0) await this.#queued.announce(transaction);
      return changed;
    });
    if (count > 0) this.#queued.notify();
    return count;
  }

  removeBefore(ms: number): Promise<number> {
    return this.#database.run("DELETE FROM notifications WHERE status IN ('sent', 'dead') AND settled_at < $1", [ms]);
  }

  counts(): Promise<{ channel: Channel; status: NotificationStatus; count: number }[]> {
    return this.#database.query(
      "SELECT channel, status, count(*) AS count FROM notifications GROUP BY status, channel ORDER BY status, channel",
    );
  }

  onQueued(listener: () => void): () => void {
    return this.#queued.add(listener);
  }

  /** In a transaction, because a fenced database checks the lease at the end of one. */
  #update(text: string, values: readonly PostgresValue[]): Promise<StoredNotification[]> {
    return this.#database.transact((transaction) => transaction.query<StoredNotification>(text, values));
  }
}

async function evict(transaction: PostgresQueries, status: NotificationStatus, max: number): Promise<number> {
  const count = await numberOf(transaction, "SELECT count(*) AS number FROM notifications WHERE status = $1", [status]);
  if (count <= max) return 0;
  // Rows that another process changes at this moment are left for the next time.
  return transaction.run(
    `DELETE FROM notifications WHERE seq IN
       (SELECT seq FROM notifications WHERE status = $1 ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED)`,
    [status, count - max],
  );
}

async function seqOf(transaction: PostgresQueries, id: string): Promise<number> {
  const [row] = await transaction.query<{ seq: number }>("SELECT seq FROM notifications WHERE id = $1", [
    plainText(id),
  ]);
  if (!row) throw new QueryRefused("after", "is not the id of a notification");
  return row.seq;
}

async function numberOf(queries: PostgresQueries, text: string, values: readonly PostgresValue[]): Promise<number> {
  const [row] = await queries.query<{ number: number }>(text, values);
  return row!.number;
}

function whereOf({ status, channel, alertId }: NotificationFilter): { where: string; values: string[] } {
  const tests = Object.entries({ status, channel, alert_id: alertId === undefined ? undefined : plainText(alertId) });
  const given = tests.filter((test): test is [string, string] => test[1] !== undefined);
  const where = given.map(([column], i) => `${column} = $${i + 1}`).join(" AND ") || "true";
  return { where, values: given.map(([, value]) => value) };
}

function inOrder(rows: readonly StoredNotification[]): Notification[] {
  return rows.toSorted((a, b) => a.seq - b.seq).map(toNotification);
}

function toNotification(row: StoredNotification): Notification {
  return {
    id: textOfPlain(row.id),
    alertId: textOfPlain(row.alert_id),
    channel: row.channel as Channel,
    reason: row.reason as Notification["reason"],
    status: row.status as NotificationStatus,
    deliveryId: row.delivery === null ? null : textOfPlain(row.delivery),
    attempts: row.attempts,
    isRepeat: row.is_repeat,
    createdAt: row.created_at,
    queuedAt: row.queued_at,
    dueAt: row.due_at,
    settledAt: row.settled_at,
    error: row.error === null ? null : textOfPlain(row.error),
    untold: row.untold === null ? null : (JSON.parse(row.untold) as string[]),
  };
}
