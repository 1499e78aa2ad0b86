import { ALERT_EVENTS_MAX, RELATED_EVENTS_MAX, type EventMark } from "../../model/finding.ts";
import { eventKey } from "../alert-index/compact-event-id.ts";
import { plainText, textOfPlain } from "./plain-text.ts";
import type { PostgresQueries } from "./postgres-database.ts";

// The events of alerts beyond the newest, and the index from events to alerts.

const OLDER_EVENTS_MAX = ALERT_EVENTS_MAX - RELATED_EVENTS_MAX;

/** An event and an alert that it is related to. */
interface EventLink {
  readonly seq: number;
  readonly id: string;
}

/** Changes of the events of alerts, to be written together. */
export class EventChanges {
  readonly #added = new Map<string, EventLink>();
  readonly #removed = new Map<string, EventLink>();
  readonly #older: { alert: number; at: number; event: string }[] = [];

  /** `before` are the stored newest events, undefined for a new alert. Those that are in neither list are forgotten. */
  change(
    seq: number,
    before: readonly EventMark[] | undefined,
    related: readonly EventMark[],
    older: readonly EventMark[],
  ): void {
    const kept = new Set([...related, ...older].map(({ id }) => id));
    const known = new Set(before?.map(({ id }) => id));
    for (const { id } of before ?? []) if (!kept.has(id)) this.#note(this.#removed, this.#added, { seq, id });
    for (const id of kept) if (!known.has(id)) this.#note(this.#added, this.#removed, { seq, id });
    for (const { id, timestampMs } of older) this.#older.push({ alert: seq, at: timestampMs, event: plainText(id) });
  }

  #note(to: Map<string, EventLink>, from: Map<string, EventLink>, link: EventLink): void {
    const name = `${link.seq} ${link.id}`;
    from.delete(name);
    to.set(name, link);
  }

  async write(transaction: PostgresQueries): Promise<void> {
    await unlinkEvents(transaction, [...this.#removed.values()]);
    if (this.#added.size > 0) {
      await transaction.run(
        `INSERT INTO alert_events(event, seq)
         SELECT decode(event, 'hex'), seq FROM json_to_recordset($1::json) AS given(event text, seq int8)
         ON CONFLICT DO NOTHING`,
        [linksText([...this.#added.values()])],
      );
    }
    if (this.#older.length === 0) return;
    await transaction.run(
      `INSERT INTO alert_older_events(alert, at, event)
       SELECT alert, at, event FROM json_to_recordset($1::json) AS given(alert int8, at int8, event text)
       ON CONFLICT DO NOTHING`,
      [JSON.stringify(this.#older)],
    );
    const dropped = await transaction.query<{ seq: number; event: string }>(
      `WITH excess AS (SELECT alert, at, event FROM (SELECT alert, at, event,
           row_number() OVER (PARTITION BY alert ORDER BY at DESC, event DESC) AS place
         FROM alert_older_events WHERE alert = ANY($1)) AS ranked WHERE place > ${OLDER_EVENTS_MAX})
       DELETE FROM alert_older_events AS stored USING excess
       WHERE stored.alert = excess.alert AND stored.at = excess.at AND stored.event = excess.event
       RETURNING stored.alert AS seq, stored.event`,
      [[...new Set(this.#older.map(({ alert }) => alert))]],
    );
    await unlinkEvents(transaction, dropped.map(toLink));
  }
}

/** Must run in a transaction. Removes the alerts' older events, and all from the index. `newest` are in the documents. */
export async function removeEvents(
  transaction: PostgresQueries,
  alerts: readonly { readonly seq: number; readonly newest: readonly EventMark[] }[],
): Promise<void> {
  const older = await transaction.query<{ seq: number; event: string }>(
    "DELETE FROM alert_older_events WHERE alert = ANY($1) RETURNING alert AS seq, event",
    [alerts.map(({ seq }) => seq)],
  );
  const newest = alerts.flatMap(({ seq, newest: marks }) => marks.map(({ id }) => ({ seq, id })));
  await unlinkEvents(transaction, [...newest, ...older.map(toLink)]);
}

/** The numbers of the alerts that have one of the events. */
export async function alertsWithEvents(queries: PostgresQueries, ids: readonly string[]): Promise<number[]> {
  const rows = await queries.query<{ seq: number }>(
    "SELECT DISTINCT seq FROM alert_events WHERE event IN (SELECT decode(unnest($1::text[]), 'hex'))",
    [ids.map((id) => eventKey(id).toString("hex"))],
  );
  return rows.map(({ seq }) => seq);
}

/** Newest first. */
export async function olderEvents(queries: PostgresQueries, seq: number): Promise<EventMark[]> {
  const rows = await queries.query<{ event: string; at: number }>(
    "SELECT event, at FROM alert_older_events WHERE alert = $1 ORDER BY at DESC, event DESC LIMIT $2",
    [seq, OLDER_EVENTS_MAX],
  );
  return rows.map(({ event, at }) => ({ id: textOfPlain(event), timestampMs: at }));
}

async function unlinkEvents(transaction: PostgresQueries, links: readonly EventLink[]): Promise<void> {
  if (links.length === 0) return;
  await transaction.run(
    `DELETE FROM alert_events AS stored USING json_to_recordset($1::json) AS given(event text, seq int8)
     WHERE stored.event = decode(given.event, 'hex') AND stored.seq = given.seq`,
    [linksText(links)],
  );
}

function toLink({ seq, event }: { readonly seq: number; readonly event: string }): EventLink {
  return { seq, id: textOfPlain(event) };
}

function linksText(links: readonly EventLink[]): string {
  return JSON.stringify(links.map(({ seq, id }) => ({ seq, event: eventKey(id).toString("hex") })));
}
