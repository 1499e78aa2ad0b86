import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { RESOLUTIONS, STATUSES, type Resolution } from "../src/model/alert-state.ts";
import { SEVERITIES } from "../src/model/event.ts";
import type { TimeRange } from "../src/model/query.ts";
import type { AlertFilter, AlertSort, AlertTotals } from "../src/store/ports/alert-store.ts";
import type { AlertCells, Selection } from "../src/store/alert-index/alert-columns.ts";
import { Statements } from "../src/store/sqlite/cases/prepared-statements.ts";
import { PEOPLE, RULES, SOURCES } from "./alert-rows.ts";

// The questions that AlertColumns answers, put to SQLite as well as it can take them: names are numbers, row numbers rise
// with the ids, so that every index has the second sort key in it, and every list reads one index and no table.

const FILTER_COLUMNS = ["status", "severity", "rule", "source", "assignee", "created_at"] as const;
const SORT_COLUMNS: readonly AlertSort[] = ["created_at", "last_event_at", "severity", "event_count"];

const TABLE = `
CREATE TABLE alerts(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, change INTEGER NOT NULL,
  rule_id TEXT NOT NULL, fold_key TEXT NOT NULL, rule INTEGER NOT NULL, source INTEGER NOT NULL, severity INTEGER NOT NULL,
  status INTEGER NOT NULL, assignee INTEGER NOT NULL, resolution INTEGER, created_at INTEGER NOT NULL,
  first_event_at INTEGER NOT NULL, last_event_at INTEGER NOT NULL, event_count INTEGER NOT NULL,
  acknowledge_ms INTEGER, resolve_ms INTEGER, resolved_at INTEGER, text_hash TEXT NOT NULL) STRICT;
CREATE UNIQUE INDEX alerts_change ON alerts(change);
CREATE INDEX alerts_unresolved ON alerts(rule_id, fold_key, last_event_at, seq) WHERE status <> ${STATUSES.indexOf("resolved")};`;

/** One for each sort, one for each filter in the default order, one for each kind of statistics; all are covering. */
const INDEXES = [
  ...SORT_COLUMNS.map((key) => indexOn(`by_${key}`, [key, "seq"])),
  ...FILTER_COLUMNS.filter((key) => key !== "created_at").map((key) =>
    indexOn(`with_${key}`, [key, "created_at", "seq"]),
  ),
  "CREATE INDEX totals ON alerts(status, severity, created_at, acknowledge_ms, resolve_ms);",
  "CREATE INDEX resolutions ON alerts(rule, resolution) WHERE resolution IS NOT NULL;",
  "CREATE INDEX resolved ON alerts(seq, resolved_at) WHERE resolved_at IS NOT NULL;",
];

function indexOn(name: string, keys: readonly string[]): string {
  const others = FILTER_COLUMNS.filter((column) => !keys.includes(column));
  return `CREATE INDEX ${name} ON alerts(${[...keys, ...others].join(", ")});`;
}

/** The worst severity is the highest. */
const severityNumber = (name: AlertCells["severity"]) => SEVERITIES.length - 1 - SEVERITIES.indexOf(name);
const assigneeNumber = (name: string | null) => (name === null ? 0 : PEOPLE.indexOf(name) + 1);

/** To sort a row costs about as much as to pass so many of an index. */
const ROWS_PASSED_PER_SORTED = 16;

export class SqlAlerts {
  readonly #db: DatabaseSync;
  readonly #sql: Statements;
  readonly #choosesIndex: boolean;
  #size = 0;

  /** With `choosesIndex`, a list names the index of its order where that is the quicker one; otherwise SQLite plans alone. */
  constructor(db: DatabaseSync, choosesIndex: boolean) {
    this.#db = db;
    this.#choosesIndex = choosesIndex;
    this.#sql = new Statements(db);
  }

  /** Fills an empty file. */
  fill(alerts: readonly AlertCells[], idOf: (slot: number) => string): void {
    this.#size = alerts.length;
    this.#db.exec(`${TABLE} BEGIN`);
    for (const cells of alerts) {
      this.#sql.run(
        `INSERT INTO alerts VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        cells.slot + 1,
        idOf(cells.slot),
        cells.slot + 1,
        cells.ruleName,
        `["${cells.slot}"]`,
        RULES.indexOf(cells.ruleName),
        SOURCES.indexOf(cells.source),
        severityNumber(cells.severity),
        STATUSES.indexOf(cells.status),
        assigneeNumber(cells.assignee),
        cells.resolution && RESOLUTIONS.indexOf(cells.resolution),
        cells.createdAt,
        cells.createdAt,
        cells.lastEventAt,
        cells.eventCount,
        cells.firstAcknowledgedAt && cells.firstAcknowledgedAt - cells.createdAt,
        cells.resolvedAt && cells.resolvedAt - cells.createdAt,
        cells.resolvedAt,
        "hash",
      );
    }
    this.#db.exec(`${INDEXES.join("\n")} COMMIT; ANALYZE`);
  }

  /** Bytes of the indexes that only lists, totals and statistics need. */
  indexBytes(): number {
    const names = INDEXES.map((text) => `'${text.split(" ")[2]!}'`).join(", ");
    const row = this.#sql.read(`SELECT sum(pgsize) AS bytes FROM dbstat WHERE name IN (${names})`).get();
    return (row as { bytes: number }).bytes;
  }

  /** Within a transaction. `change` is the number of the first change. */
  change(alerts: readonly AlertCells[], change: number): void {
    for (const [i, cells] of alerts.entries()) {
      this.#sql.run(
        `UPDATE alerts SET version = version + 1, change = ?, severity = ?, status = ?, assignee = ?, resolution = ?,
           last_event_at = ?, event_count = ?, acknowledge_ms = ?, resolve_ms = ?, resolved_at = ? WHERE seq = ?`,
        change + i,
        severityNumber(cells.severity),
        STATUSES.indexOf(cells.status),
        assigneeNumber(cells.assignee),
        cells.resolution && RESOLUTIONS.indexOf(cells.resolution),
        cells.lastEventAt,
        cells.eventCount,
        cells.firstAcknowledgedAt && cells.firstAcknowledgedAt - cells.createdAt,
        cells.resolvedAt && cells.resolvedAt - cells.createdAt,
        cells.resolvedAt,
        cells.slot + 1,
      );
    }
  }

  select({ filter, found, sort, descending, after, offset, limit }: Selection): { total: number; slots: number[] } {
    const tests = testsOf(filter, found);
    const { total } = this.#sql
      .read(`SELECT count(*) AS total FROM alerts ${whereAll(tests)}`)
      .get(...tests.values) as {
      total: number;
    };
    const order = { sort, descending, total };
    if (after !== undefined) {
      const place = `(${sort}, seq) ${descending ? "<" : ">"} (SELECT ${sort}, seq FROM alerts WHERE seq = ?)`;
      const later = { terms: [...tests.terms, place], values: [...tests.values, after + 1] };
      return { total, slots: this.#slots(later, order, limit, offset) };
    }
    if (offset <= total / 2) return { total, slots: this.#slots(tests, order, limit, offset) };
    // A page of the second half is nearer to the end, and the total is known by now.
    const wanted = Math.max(0, Math.min(limit, total - offset));
    const fromEnd = { ...order, descending: !descending };
    return { total, slots: this.#slots(tests, fromEnd, wanted, Math.max(0, total - offset - wanted)).reverse() };
  }

  #slots(tests: Tests, { sort, descending, total }: Order, limit: number, offset: number): number[] {
    const direction = descending ? "DESC" : "ASC";
    // SQLite alone prefers the index of a filter and sorts what it finds, even if that is most of the table.
    const passed = Math.min(this.#size, (offset + limit) * (this.#size / Math.max(1, total)));
    const isQuicker = this.#choosesIndex && passed < total * ROWS_PASSED_PER_SORTED;
    const index = isQuicker ? `INDEXED BY by_${sort}` : "";
    const rows = this.#sql
      .read(
        `SELECT seq FROM alerts ${index} ${whereAll(tests)} ORDER BY ${sort} ${direction}, seq ${direction} LIMIT ? OFFSET ?`,
      )
      .all(...tests.values, limit, offset) as { seq: number }[];
    return rows.map(({ seq }) => seq - 1);
  }

  /** A range of the index for each status with each severity: grouping all rows would sort them first. */
  totals({ fromMs = 0, toMs = Number.MAX_SAFE_INTEGER }: TimeRange): AlertTotals {
    const byStatus = { open: 0, acknowledged: 0, resolved: 0 };
    const bySeverity = { critical: 0, high: 0, medium: 0, low: 0, info: 0 };
    const [sums, counts] = [
      [0, 0],
      [0, 0],
    ];
    let total = 0;
    const select = this.#sql.read(
      `SELECT count(*) AS n, count(acknowledge_ms) AS acknowledged, coalesce(sum(acknowledge_ms), 0) AS acknowledgeMs,
         count(resolve_ms) AS resolved, coalesce(sum(resolve_ms), 0) AS resolveMs
       FROM alerts WHERE status = ? AND severity = ? AND created_at >= ? AND created_at < ?`,
    );
    for (const [number, status] of STATUSES.entries()) {
      for (const severity of SEVERITIES) {
        const row = select.get(number, severityNumber(severity), fromMs, toMs) as Record<string, number>;
        total += row.n!;
        byStatus[status] += row.n!;
        bySeverity[severity] += row.n!;
        counts[0]! += row.acknowledged!;
        sums[0]! += row.acknowledgeMs!;
        counts[1]! += row.resolved!;
        sums[1]! += row.resolveMs!;
      }
    }
    const mean = (i: number) => (counts[i] === 0 ? null : sums[i]! / counts[i]!);
    return { total, byStatus, bySeverity, acknowledgeMs: mean(0), resolveMs: mean(1) };
  }

  resolutions(ruleName: string): Record<Resolution, number> {
    const rows = this.#sql
      .read(
        `SELECT resolution, count(*) AS n FROM alerts WHERE rule = ? AND resolution IS NOT NULL GROUP BY resolution`,
      )
      .all(RULES.indexOf(ruleName)) as { resolution: number; n: number }[];
    const counts = { true_positive: 0, false_positive: 0, benign: 0, duplicate: 0 };
    for (const { resolution, n } of rows) counts[RESOLUTIONS[resolution]!] = n;
    return counts;
  }

  resolvedBefore(ms: number, fromSlot: number, limit: number): number[] {
    const rows = this.#sql
      .read("SELECT seq FROM alerts WHERE seq > ? AND resolved_at IS NOT NULL AND resolved_at < ? ORDER BY seq LIMIT ?")
      .all(fromSlot, ms, limit) as { seq: number }[];
    return rows.map(({ seq }) => seq - 1);
  }
}

interface Order {
  readonly sort: AlertSort;
  readonly descending: boolean;
  readonly total: number;
}

interface Tests {
  readonly terms: string[];
  readonly values: SQLInputValue[];
}

function testsOf(filter: AlertFilter, found: Uint8Array | undefined): Tests {
  const tests: Tests = { terms: [], values: [] };
  const add = (term: string, ...values: SQLInputValue[]) => {
    tests.terms.push(term);
    tests.values.push(...values);
  };
  const numbers = {
    status: filter.status?.map((name) => STATUSES.indexOf(name)),
    severity: filter.severity?.map(severityNumber),
    rule: filter.ruleName?.map((name) => RULES.indexOf(name)),
    source: filter.source?.map((name) => SOURCES.indexOf(name)),
    assignee: filter.assignee?.map(assigneeNumber),
  };
  for (const [column, values] of Object.entries(numbers)) {
    if (values?.length === 1) add(`${column} = ?`, ...values);
    else if (values) add(`${column} IN (${values.map(() => "?").join(", ")})`, ...values);
  }
  if (filter.fromMs !== undefined) add("created_at >= ?", filter.fromMs);
  if (filter.toMs !== undefined) add("created_at < ?", filter.toMs);
  // Quicker than a function in JavaScript or a table of the rows that were found.
  if (found) add("substr(?, seq, 1) = x'01'", found);
  return tests;
}

function whereAll({ terms }: Tests): string {
  return terms.length === 0 ? "" : `WHERE ${terms.join(" AND ")}`;
}
