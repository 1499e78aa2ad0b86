import { statSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { isDeepStrictEqual } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { randomFrom } from "../src/demo/random.ts";
import { idMaker } from "../src/lib/id.ts";
import { DAY_MS } from "../src/lib/time.ts";
import { PER_PAGE_DEFAULT, PER_PAGE_MAX } from "../src/model/page.ts";
import type { AlertFilter, AlertSort } from "../src/store/ports/alert-store.ts";
import { AlertColumns, type AlertCells, type Selection } from "../src/store/alert-index/alert-columns.ts";
import { addAlertFields } from "../src/store/sqlite/cases/alert-row-fields.ts";
import { ALERT_SCHEMA, openAlertTables } from "../src/store/sqlite/cases/alert-tables.ts";
import { Statements } from "../src/store/sqlite/cases/prepared-statements.ts";
import { openShared } from "../src/store/sqlite/sqlite.ts";
import { benchAlerts, DAYS, PEOPLE, RULES, SOURCES } from "./alert-rows.ts";
import { SqlAlerts } from "./alert-sql.ts";
import { cpuMs, DATA_FOLDER, megabytes, median, ms, type Measurement } from "./figures.ts";

// Alert columns in memory against SQL over covering indexes: the same queries to both, in turns, and the answers must be
// equal. A query counts with its best round, in CPU time of the thread; the worst is the slowest query, not the
// busiest moment of the machine. Reading the documents of a page is the same for both and left out.

const SIZES = [100_000, 300_000];
const ROUNDS = 3;
const ANSWER_MS_MAX = 30;
const PAUSE_MS = 0.05;
const DEEP_PAGE = 500;
const CHANGED = 100;
const COMMITS = 20;
const OPENINGS = 3;
const REMOVED = 200;
/** That of the case database. */
const CACHE = "PRAGMA cache_size = -32768;";
const SORTS: readonly AlertSort[] = ["created_at", "last_event_at", "severity", "event_count"];

interface Engine extends Pick<AlertColumns, "select" | "totals" | "resolutions" | "resolvedBefore"> {}

interface Query {
  readonly name: string;
  ask(engine: Engine): unknown;
}

export async function alertColumns(): Promise<readonly Measurement[]> {
  const measurements: Measurement[] = [];
  await mkdir(DATA_FOLDER, { recursive: true });
  for (const size of SIZES) {
    const folder = await mkdtemp(join(DATA_FOLDER, "alert-columns-"));
    try {
      measurements.push(...measure(folder, size));
    } finally {
      await rm(folder, { recursive: true });
    }
  }
  return measurements;
}

function measure(folder: string, size: number): Measurement[] {
  const endMs = Date.now();
  const alerts = benchAlerts(size, endMs);
  const ids = idsOf(alerts);
  const today = openToday(folder);
  fillToday(today, alerts, ids);
  const indexed = openIndexed(folder);
  const [sql, unaided] = [new SqlAlerts(indexed, true), new SqlAlerts(indexed, false)];
  sql.fill(alerts, (slot) => ids[slot]!);

  const before = memory();
  const columns = new AlertColumns();
  columns.load(size, alerts);
  const columnBytes = memory() - before;
  const named = (name: string) => `${size.toLocaleString("en")} alerts: ${name}`;
  const measurements = Object.entries(groups(columns, alerts, endMs)).map(([name, queries]) =>
    compare(named(name), queries, { columns, sql, unaided }),
  );
  measurements.push(
    commits(named(`commit of ${CHANGED} changed alerts`), { today, columns }, { indexed, sql }, alerts),
  );
  measurements.push(opening(named("opening"), folder));
  const indexBytes = sql.indexBytes();
  measurements.push({
    name: named("memory"),
    result: megabytes(columnBytes),
    baseline: `${megabytes(indexBytes)} of indexes on disk`,
    ratio: columnBytes / indexBytes,
    target: "",
    met: true,
    values: { columnBytes, indexBytes },
  });
  today.close();
  indexed.close();
  return measurements;
}

const openToday = (folder: string) => openShared(join(folder, "today.db"), [ALERT_SCHEMA, addAlertFields], CACHE);
const openIndexed = (folder: string) => openShared(join(folder, "indexed.db"), [], CACHE);

function memory(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().arrayBuffers;
}

function idsOf(alerts: readonly AlertCells[]): string[] {
  let nowMs = 0;
  const newId = idMaker("alt_", () => nowMs);
  return alerts.map(({ createdAt }) => {
    nowMs = createdAt;
    return newId();
  });
}

function fillToday(db: DatabaseSync, alerts: readonly AlertCells[], ids: readonly string[]): void {
  const insert = db.prepare(
    `INSERT INTO alerts(seq, id, version, change, rule_id, fold_key, rule_name, source, severity, status, assignee, resolution,
       created_at, first_event_at, last_event_at, event_count, first_acknowledged_at, resolved_at, text_hash)
     VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'hash')`,
  );
  db.exec("BEGIN");
  for (const cells of alerts) {
    insert.run(
      cells.slot + 1,
      ids[cells.slot]!,
      cells.slot + 1,
      cells.ruleName,
      `["${cells.slot}"]`,
      cells.ruleName,
      cells.source,
      cells.severity,
      cells.status,
      cells.assignee,
      cells.resolution,
      cells.createdAt,
      cells.createdAt,
      cells.lastEventAt,
      cells.eventCount,
      cells.firstAcknowledgedAt,
      cells.resolvedAt,
    );
  }
  db.exec("COMMIT");
}

/** The queries by kind. A filter of two or three fields has a value of each that many alerts have: the worst for an index. */
function groups(columns: AlertColumns, alerts: readonly AlertCells[], endMs: number): Record<string, Query[]> {
  const daysAgo = (days: number) => endMs - days * DAY_MS;
  const common: Record<string, AlertFilter> = {
    status: { status: ["resolved"] },
    severity: { severity: ["medium", "low"] },
    rule: { ruleName: RULES.slice(0, 10) },
    source: { source: [SOURCES[0]!] },
    assignee: { assignee: PEOPLE.slice(0, 10) },
    time: { fromMs: daysAgo(DAYS - 10), toMs: daysAgo(1) },
  };
  const rare: Record<string, AlertFilter> = {
    "status, rare": { status: ["open"] },
    "severity, rare": { severity: ["critical"] },
    "rule, rare": { ruleName: [RULES.at(-1)!] },
    "source, rare": { source: [SOURCES[3]!] },
    "assignee, rare": { assignee: [PEOPLE.at(-1)!] },
    "time, rare": { fromMs: daysAgo(7) },
  };
  const random = randomFrom(1);
  const found = Uint8Array.from(alerts, () => (random.onceIn(2) ? 1 : 0));
  const totals = (days: number | undefined): Query => ({
    name: days === undefined ? "all" : `${days} days`,
    ask: (engine) => engine.totals(days === undefined ? {} : { fromMs: daysAgo(days) }),
  });
  const one = { ...common, ...rare };
  const two = combinations(common, 2);
  const three = combinations(common, 3);
  const lists = (filters: Record<string, AlertFilter>, words?: Uint8Array) =>
    Object.entries(filters).flatMap(([name, filter]) => pages(columns, name, filter, words));
  const isFirst = ({ name }: Query) => name.endsWith("page 1");
  const byDepth = (name: string, queries: Query[]) => ({
    [`${name}, first page`]: queries.filter(isFirst),
    [`${name}, page ${DEEP_PAGE} and last`]: queries.filter((query) => !isFirst(query)),
  });
  return {
    "totals by status and severity, all": [totals(undefined)],
    "totals of the last 1, 7, 30 and 60 days": [1, 7, 30, 60].map(totals),
    "newest 50": [{ name: "newest", ask: (engine) => engine.select(selection({}, { limit: PER_PAGE_DEFAULT })) }],
    ...byDepth("no filter", lists({ none: {} })),
    ...byDepth("one filter", lists(one)),
    ...byDepth("two filters", lists(two)),
    ...byDepth("three filters", lists(three)),
    ...byDepth("words in half of the alerts", lists({ words: {}, "words, status": common.status! }, found)),
    "cursor from the middle": Object.entries({ none: {}, ...one, ...two }).flatMap(([name, filter]) =>
      fromTheMiddle(columns, name, filter),
    ),
    "resolutions of a rule": [RULES[0]!, RULES.at(-1)!].map((rule) => ({
      name: rule,
      ask: (engine) => engine.resolutions(rule),
    })),
    [`first ${REMOVED} to remove`]: [
      { name: "some", ask: (engine) => engine.resolvedBefore(daysAgo(30), 0, REMOVED) },
      { name: "none", ask: (engine) => engine.resolvedBefore(daysAgo(DAYS + 1), 0, REMOVED) },
    ],
  };
}

function combinations(filters: Record<string, AlertFilter>, size: number): Record<string, AlertFilter> {
  let found: [string[], AlertFilter][] = [[[], {}]];
  const names = Object.keys(filters);
  for (let i = 0; i < size; i++) {
    found = found.flatMap(([chosen, filter]) =>
      names
        .slice(names.indexOf(chosen.at(-1) ?? "") + 1)
        .map((name): [string[], AlertFilter] => [[...chosen, name], { ...filter, ...filters[name] }]),
    );
  }
  return Object.fromEntries(found.map(([chosen, filter]) => [chosen.join(" and "), filter]));
}

function selection(filter: AlertFilter, rest: Partial<Selection>): Selection {
  const start = { found: undefined, sort: "created_at", descending: true, after: undefined, offset: 0 } as const;
  return { filter, ...start, limit: PER_PAGE_MAX, ...rest };
}

const ORDERS = SORTS.flatMap((sort) => [true, false].map((descending) => ({ sort, descending })));

/** In each order the first page, the deep one or that in the middle if there are fewer, and the last. */
function pages(columns: AlertColumns, name: string, filter: AlertFilter, found: Uint8Array | undefined): Query[] {
  const { total } = columns.select(selection(filter, { found }));
  const count = Math.max(1, Math.ceil(total / PER_PAGE_MAX));
  const shown = new Set([1, count < DEEP_PAGE ? Math.ceil(count / 2) : DEEP_PAGE, count]);
  return ORDERS.flatMap((order) =>
    Array.from(shown, (page) => {
      const asked = selection(filter, { found, ...order, offset: (page - 1) * PER_PAGE_MAX });
      return { name: `${name} ${nameOf(order)} page ${page}`, ask: (engine) => engine.select(asked) };
    }),
  );
}

function fromTheMiddle(columns: AlertColumns, name: string, filter: AlertFilter): Query[] {
  const { total } = columns.select(selection(filter, {}));
  return ORDERS.map((order) => {
    const [after] = columns.select(selection(filter, { ...order, offset: Math.floor(total / 2), limit: 1 })).slots;
    const asked = selection(filter, { ...order, after, limit: PER_PAGE_MAX + 1 });
    return { name: `${name} ${nameOf(order)}`, ask: (engine) => engine.select(asked) };
  });
}

function nameOf({ sort, descending }: Pick<Selection, "sort" | "descending">): string {
  return `by ${sort} ${descending ? "desc" : "asc"}`;
}

interface Engines {
  readonly columns: Engine;
  readonly sql: Engine;
  /** SQL with the plans that SQLite makes alone. */
  readonly unaided: Engine;
}

function compare(name: string, queries: readonly Query[], { columns, sql, unaided }: Engines): Measurement {
  const figures = queries.map((query) => {
    const best = { name: query.name, columns: Infinity, sql: Infinity, unaided: spent(() => query.ask(unaided)).ms };
    for (let round = 0; round < ROUNDS; round++) {
      const ours = spent(() => query.ask(columns));
      const theirs = spent(() => query.ask(sql));
      if (!isDeepStrictEqual(ours.value, theirs.value)) throw new Error(`${name}, ${query.name}: answers differ`);
      best.columns = Math.min(best.columns, ours.ms);
      best.sql = Math.min(best.sql, theirs.ms);
    }
    return best;
  });
  const [ours, theirs, alone] = [
    summary(figures.map((figure) => figure.columns)),
    summary(figures.map((figure) => figure.sql)),
    summary(figures.map((figure) => figure.unaided)),
  ];
  const slowest = figures.find((figure) => figure.sql === theirs.worst)!.name;
  const missed = `of ${queries.length} over ${ANSWER_MS_MAX} ms`;
  return {
    name,
    result: `worst ${ms(ours.worst)}; p50 ${ms(ours.p50)}; ${ours.missed} ${missed}`,
    baseline: `SQL worst ${ms(theirs.worst)} (${slowest}); p50 ${ms(theirs.p50)}; ${theirs.missed} ${missed}; SQLite's plans worst ${ms(alone.worst)}; p50 ${ms(alone.p50)}; ${alone.missed} over`,
    ratio: ours.worst / theirs.worst,
    target: `at most ${ANSWER_MS_MAX} ms`,
    met: ours.missed === 0,
    values: {
      ...ours,
      sqlWorst: theirs.worst,
      sqlP50: theirs.p50,
      sqlMissed: theirs.missed,
      unaidedWorst: alone.worst,
      unaidedP50: alone.p50,
      unaidedMissed: alone.missed,
      queries: queries.length,
    },
  };
}

function summary(values: readonly number[]): { worst: number; p50: number; missed: number } {
  const missed = values.filter((value) => value > ANSWER_MS_MAX).length;
  return { worst: Math.max(...values), p50: median(values), missed };
}

const neverWoken = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** CPU time of the work. The kernel books it when a thread pauses, otherwise at its next tick, which may be 4 ms away. */
function spent<Value>(work: () => Value): { ms: number; value: Value } {
  Atomics.wait(neverWoken, 0, 0, PAUSE_MS);
  const before = cpuMs();
  const value = work();
  Atomics.wait(neverWoken, 0, 0, PAUSE_MS);
  return { ms: cpuMs() - before, value };
}

interface Today {
  readonly today: DatabaseSync;
  readonly columns: AlertColumns;
}

interface Indexed {
  readonly indexed: DatabaseSync;
  readonly sql: SqlAlerts;
}

/** Alerts of any age, as a bulk transition takes them. */
function commits(
  name: string,
  { today, columns }: Today,
  { indexed, sql }: Indexed,
  alerts: readonly AlertCells[],
): Measurement {
  const random = randomFrom(2);
  const statements = new Statements(today);
  const took: Record<"ours" | "theirs", Commit[]> = { ours: [], theirs: [] };
  for (let round = 0; round < COMMITS; round++) {
    const changed = Array.from({ length: CHANGED }, () => acknowledged(random.pick(alerts)));
    const change = alerts.length + 1 + round * CHANGED;
    const inMemory = spent(() => {
      for (const cells of changed) columns.change(cells);
    });
    const { spentMs, bytes } = commit(today, () => changeToday(statements, changed, change));
    took.ours.push({ spentMs: spentMs + inMemory.ms, bytes });
    took.theirs.push(commit(indexed, () => sql.change(changed, change)));
  }
  const middle = (list: readonly Commit[]) => ({
    spentMs: median(list.map((each) => each.spentMs)),
    bytes: median(list.map((each) => each.bytes)),
  });
  const [ours, theirs] = [middle(took.ours), middle(took.theirs)];
  const shown = (figure: Commit) => `p50 ${ms(figure.spentMs)}, ${Math.round(figure.bytes / 1000)} kB logged`;
  return {
    name,
    result: shown(ours),
    baseline: `SQL ${shown(theirs)}`,
    ratio: ours.spentMs / theirs.spentMs,
    target: "",
    met: true,
    values: { ms: ours.spentMs, bytes: ours.bytes, sqlMs: theirs.spentMs, sqlBytes: theirs.bytes },
  };
}

interface Commit {
  readonly spentMs: number;
  readonly bytes: number;
}

/** In CPU time, and what it adds to an empty write-ahead log. */
function commit(db: DatabaseSync, work: () => void): Commit {
  db.exec("PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE)");
  const { ms: spentMs } = spent(() => {
    db.exec("BEGIN IMMEDIATE");
    work();
    db.exec("COMMIT");
  });
  return { spentMs, bytes: statSync(`${db.location()!}-wal`).size };
}

function acknowledged(cells: AlertCells): AlertCells {
  return {
    ...cells,
    status: "acknowledged",
    assignee: PEOPLE[0]!,
    resolution: null,
    lastEventAt: cells.lastEventAt + 1,
    eventCount: cells.eventCount + 1,
    firstAcknowledgedAt: cells.firstAcknowledgedAt ?? cells.createdAt + 1,
    resolvedAt: null,
  };
}

function changeToday(statements: Statements, alerts: readonly AlertCells[], change: number): void {
  for (const [i, cells] of alerts.entries()) {
    statements.run(
      `UPDATE alerts SET version = version + 1, change = ?, severity = ?, status = ?, assignee = ?, resolution = ?,
         last_event_at = ?, event_count = ?, first_acknowledged_at = ?, resolved_at = ? WHERE seq = ?`,
      change + i,
      cells.severity,
      cells.status,
      cells.assignee,
      cells.resolution,
      cells.lastEventAt,
      cells.eventCount,
      cells.firstAcknowledgedAt,
      cells.resolvedAt,
      cells.slot + 1,
    );
  }
}

function opening(name: string, folder: string): Measurement {
  const best = { ours: Infinity, theirs: Infinity };
  for (let round = 0; round < OPENINGS; round++) {
    const today = spent(() => {
      const db = openToday(folder);
      return [db, openAlertTables(db)] as const;
    });
    const indexed = spent(() => openIndexed(folder));
    best.ours = Math.min(best.ours, today.ms);
    best.theirs = Math.min(best.theirs, indexed.ms);
    today.value[0].close();
    indexed.value.close();
  }
  return {
    name,
    result: ms(best.ours),
    baseline: `SQL ${ms(best.theirs)}`,
    ratio: best.ours / best.theirs,
    target: "",
    met: true,
    values: best,
  };
}
