import { JsonText } from "../../../lib/thread.ts";
import type { Alert, AlertSummary, TimelineEntry } from "../../../model/alert.ts";
import type { Resolution } from "../../../model/alert-state.ts";
import type { EventMark } from "../../../model/finding.ts";
import type { Position } from "../../../model/page.ts";
import type { TimeRange } from "../../../model/query.ts";
import type { RuleDefinition } from "../../../model/rule-definition.ts";
import type {
  AlertEventsPage,
  AlertEventsQuery,
  AlertFilter,
  AlertIds,
  AlertPage,
  AlertQuery,
  AlertSearchResult,
  AlertSort,
  AlertTotals,
  AlertTrends,
  TrendQuery,
  UnresolvedQuery,
  OutcomesSince,
  RuleOutcomes,
  WorkQuery,
  AlertWork,
} from "../../ports/alert-store.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import type { TimeSlices } from "../../queries/time-slices.ts";
import type { AlertQueries } from "../../alert-index/alert-query.ts";
import type { AlertColumns, Selection } from "../../alert-index/alert-columns.ts";
import type { AlertDocuments } from "./alert-documents.ts";
import type { RelatedEvents } from "./alert-row-fields.ts";
import type { AlertSearch } from "../../alert-index/alert-search.ts";
import { alertTrends } from "../../alert-index/alert-trends.ts";
import { alertWork } from "../../alert-index/alert-work.ts";
import type { LastAlert } from "./alert-writer.ts";
import type { Definitions } from "./definition-table.ts";
import type { OlderEvents } from "./older-events.ts";
import type { Statements } from "./prepared-statements.ts";
import type { Timelines } from "./timeline-table.ts";

/** Only the alerts are text: in JSON, a large double could not be told from an integer. */
export interface AlertSearchText extends Omit<AlertSearchResult, "items"> {
  readonly items: string;
}

export interface AlertReaderOptions {
  readonly sql: Statements;
  readonly columns: AlertColumns;
  readonly documents: AlertDocuments;
  readonly search: AlertSearch;
  readonly queries: AlertQueries;
  readonly timelines: Timelines;
  readonly definitions: Definitions;
  readonly relatedEvents: RelatedEvents;
  readonly olderEvents: OlderEvents;
  readonly last: () => LastAlert;
}

/** Reads alerts: one by one, in lists, and in numbers. */
export class AlertReader {
  readonly #sql: Statements;
  readonly #columns: AlertColumns;
  readonly #documents: AlertDocuments;
  readonly #search: AlertSearch;
  readonly #queries: AlertQueries;
  readonly #timelines: Timelines;
  readonly #definitions: Definitions;
  readonly #relatedEvents: RelatedEvents;
  readonly #olderEvents: OlderEvents;
  readonly #last: () => LastAlert;

  constructor(options: AlertReaderOptions) {
    this.#sql = options.sql;
    this.#columns = options.columns;
    this.#documents = options.documents;
    this.#search = options.search;
    this.#queries = options.queries;
    this.#timelines = options.timelines;
    this.#definitions = options.definitions;
    this.#relatedEvents = options.relatedEvents;
    this.#olderEvents = options.olderEvents;
    this.#last = options.last;
  }

  lastChange(): number {
    return this.#last().change;
  }

  lastId(): string | null {
    const { id } = this.#last();
    return id === "" ? null : id;
  }

  /** The number of alerts that were resolved before this time, and of all alerts. */
  due(beforeMs: number): { rows: number; total: number } {
    const found = this.#sql
      .read(
        "SELECT count(*) FILTER (WHERE status = 'resolved' AND resolved_at < ?) AS rows, count(*) AS total FROM alerts",
      )
      .get(beforeMs);
    return found as { rows: number; total: number };
  }

  get(id: string): JsonText<Alert> | undefined {
    const slot = this.#documents.slotOf(id);
    return slot === null ? undefined : new JsonText(this.#documents.wholeOf(slot));
  }

  getMany(ids: readonly string[]): JsonText<(AlertSummary | null)[]> {
    const texts = ids.map((id) => {
      const slot = this.#documents.slotOf(id);
      return slot === null ? "null" : this.#documents.textOf(slot);
    });
    return new JsonText(listText(texts));
  }

  withTimeline(id: string): JsonText<{ alert: Alert; timeline: TimelineEntry[] }> | undefined {
    const slot = this.#documents.slotOf(id);
    if (slot === null) return undefined;
    return new JsonText(
      `{"alert":${this.#documents.wholeOf(slot)},"timeline":${listText(this.#timelines.of(slot + 1))}}`,
    );
  }

  events(id: string, { after, limit, descending }: AlertEventsQuery): AlertEventsPage | undefined {
    const slot = this.#documents.slotOf(id);
    if (slot === null) return undefined;
    const newest = JSON.parse(this.#documents.eventsOf(slot)) as EventMark[];
    const all = [...newest, ...this.#olderEvents.of(slot + 1)];
    if (!descending) all.reverse();
    const index = after === undefined ? -1 : all.findIndex((event) => event.id === after);
    if (after !== undefined && index < 0) throw new QueryRefused("after", "is not an event of the alert");
    const events = all.slice(index + 1, index + 1 + limit);
    const nextCursor = index + 1 + limit < all.length ? events.at(-1)!.id : null;
    return { eventCount: this.#documents.summaryOf(slot).eventCount, total: all.length, events, nextCursor };
  }

  definition(id: string): JsonText<RuleDefinition> | undefined {
    return this.#definitions.get(id);
  }

  unresolved(queries: readonly UnresolvedQuery[]): JsonText<(Alert | null)[]> {
    const select = this.#sql.read(
      `SELECT seq FROM alerts WHERE rule_id = ? AND fold_key = ? AND status <> 'resolved'
       AND last_event_at > ? AND first_event_at < ? ORDER BY last_event_at DESC, seq DESC LIMIT 1`,
    );
    const texts = queries.map(({ ruleId, dedupKey, endsAfterMs, beginsBeforeMs }) => {
      const row = select.get(ruleId, dedupKey, endsAfterMs, beginsBeforeMs) as { seq: number } | undefined;
      return row ? this.#documents.wholeOf(row.seq - 1) : "null";
    });
    return new JsonText(listText(texts));
  }

  countUnresolved(ruleIds: readonly string[], besides: string, countMax: number): number[] {
    const select = this.#sql.read(
      `SELECT count(*) AS n FROM
       (SELECT 1 FROM alerts WHERE rule_id = ?1 AND substr(fold_key, 1, length(?2)) <> ?2 AND status <> 'resolved' LIMIT ?3)`,
    );
    return ruleIds.map((ruleId) => (select.get(ruleId, besides, countMax) as { n: number }).n);
  }

  changedSince(change: number, limit: number): JsonText<{ change: number; alert: AlertSummary }[]> {
    const rows = this.#sql
      .read("SELECT change, document FROM alerts JOIN documents USING (seq) WHERE change > ? ORDER BY change LIMIT ?")
      .all(change, limit) as { change: number; document: string }[];
    return new JsonText(listText(rows.map((row) => `{"change":${row.change},"alert":${row.document}}`)));
  }

  totals(range: TimeRange): AlertTotals {
    return this.#columns.totals(range);
  }

  trends(query: TrendQuery): AlertTrends {
    return alertTrends(this.#columns, query);
  }

  resolutions(ruleName: string): Record<Resolution, number> {
    return this.#columns.resolutions(ruleName);
  }

  outcomes(ruleNames: readonly string[], since: OutcomesSince): RuleOutcomes[] {
    return this.#columns.outcomes(ruleNames, since);
  }

  work(query: WorkQuery): JsonText<AlertWork> {
    const { total, slots, ...figures } = alertWork(this.#columns, query);
    const items = slots.map(({ slot, kind, at }) => {
      const actor = this.#timelines.actorOf(slot + 1, kind, at);
      const rest = JSON.stringify({ kind, at, actor, lastComment: this.#timelines.lastComment(slot + 1) });
      return `{"alert":${this.#documents.textOf(slot)},${rest.slice(1)}`;
    });
    const head = JSON.stringify(figures).slice(0, -1);
    return new JsonText(`${head},"handled":{"total":${total},"items":${listText(items)}}}`);
  }

  list(filter: AlertFilter, position: Position, sort: AlertSort, descending: boolean): JsonText<AlertPage> {
    return this.#page({ filter, sort, descending, found: undefined }, position);
  }

  /** The same for a filter with search words, which may take long. */
  search(
    words: string,
    filter: AlertFilter,
    position: Position,
    order: Pick<Selection, "sort" | "descending">,
    slices: TimeSlices,
  ): Promise<JsonText<AlertPage>> {
    return this.#search.find(words, filter, slices, (found) => this.#page({ filter, found, ...order }, position));
  }

  ids(filter: AlertFilter, limit: number): AlertIds {
    return this.#idsOf(filter, undefined, limit);
  }

  /** The same for a filter with search words. */
  searchIds(words: string, filter: AlertFilter, limit: number, slices: TimeSlices): Promise<AlertIds> {
    return this.#search.find(words, filter, slices, (found) => this.#idsOf(filter, found, limit));
  }

  #idsOf(filter: AlertFilter, found: Uint8Array | undefined, limit: number): AlertIds {
    const order = { sort: "created_at", descending: true, after: undefined, offset: 0 } as const;
    const { total, slots } = this.#columns.select({ filter, found: this.#narrowed(filter, found), ...order, limit });
    // One text instead of a hundred thousand rows takes half the time.
    const { ids } = this.#sql
      .read(
        `SELECT group_concat(alerts.id, ',' ORDER BY slot.key) AS ids
         FROM json_each(?) AS slot JOIN alerts ON seq = slot.value + 1`,
      )
      .get(JSON.stringify(slots)) as { ids: string | null };
    return { total, ids: ids?.split(",") ?? [] };
  }

  isHeavy(query: AlertQuery): boolean {
    return this.#queries.isHeavy(query);
  }

  query(query: AlertQuery, slices: TimeSlices): Promise<AlertSearchText> {
    return this.#queries.find(query, slices, ({ total, slots, hasNext, aggregations }) => ({
      total,
      items: listText(slots.map((slot) => this.#documents.textOf(slot))),
      nextCursor: hasNext ? this.#documents.idOf(slots.at(-1)!) : null,
      aggregations,
    }));
  }

  #page(
    selection: Pick<Selection, "filter" | "found" | "sort" | "descending">,
    position: Position,
  ): JsonText<AlertPage> {
    const found = this.#narrowed(selection.filter, selection.found);
    const isCursor = position.mode === "cursor";
    const after = isCursor && position.after !== undefined ? this.#documents.slotOf(position.after) : undefined;
    if (after === null) throw new QueryRefused("after", "is not the id of an alert");
    const { total, slots } = this.#columns.select({
      ...selection,
      found,
      after,
      offset: isCursor ? 0 : (position.page - 1) * position.size,
      // One more than requested shows whether there is a next page.
      limit: isCursor ? position.size + 1 : position.size,
    });
    const shown = slots.slice(0, position.size);
    const items = listText(shown.map((slot) => this.#documents.textOf(slot)));
    const hasNext = isCursor && slots.length > position.size;
    const nextCursor = JSON.stringify(hasNext ? this.#documents.idOf(shown.at(-1)!) : null);
    return new JsonText(`{"total":${total},"items":${items},"nextCursor":${nextCursor}}`);
  }

  /** What the words found, and of these only alerts that have one of the filter's events; undefined: all. */
  #narrowed({ eventId }: AlertFilter, found: Uint8Array | undefined): Uint8Array | undefined {
    if (eventId === undefined) return found;
    const slots = new Uint8Array(this.#columns.slotsEnd);
    for (const seq of this.#relatedEvents.alertsWith(eventId)) slots[seq - 1] = found ? found[seq - 1]! : 1;
    return slots;
  }

  withoutEntities(limit: number): JsonText<Pick<Alert, "id" | "group" | "relatedEvents">[]> {
    const rows = this.#sql.read("SELECT seq FROM alerts WHERE entities IS NULL ORDER BY seq DESC LIMIT ?").all(limit);
    return new JsonText(listText((rows as { seq: number }[]).map(({ seq }) => this.#documents.wholeOf(seq - 1))));
  }
}

function listText(items: readonly string[]): string {
  return `[${items.join(",")}]`;
}
