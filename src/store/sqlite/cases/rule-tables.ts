import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { parseExact } from "../../../lib/exact-json.ts";
import { timeOfId } from "../../../lib/id.ts";
import { DAY_MS } from "../../../lib/time.ts";
import type { SeenEvent } from "../../../model/finding.ts";
import type { Rule, RuleStats } from "../../../model/rule.ts";
import type { DetectionProgress, Outage, SeenRow } from "../../ports/detection-store.ts";
import { RuleConflict } from "../../ports/rule-store.ts";
import { onFile } from "../../files/store-failure.ts";
import { casesFile } from "../../files/layout.ts";
import { MINUTE_MS, matchesByMinute } from "../../queries/matches-by-minute.ts";
import { Statements } from "./prepared-statements.ts";
import { JsonText } from "../../../lib/thread.ts";

// Rules and the state of detection: match counts, the groups that absence rules have seen, the position in the journal.

// Minutes and hours are whole ones since 1970. Sums over a week use hours; at its start they use minutes, and milliseconds
// within a minute. A match takes two bytes: its offset within its minute.
const SCHEMA = `
CREATE TABLE IF NOT EXISTS rules(id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL, document TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS matched(number INTEGER PRIMARY KEY, rule_id TEXT NOT NULL UNIQUE, last_ms INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS moments(rule INTEGER NOT NULL, minute INTEGER NOT NULL, part INTEGER NOT NULL, times BLOB NOT NULL, PRIMARY KEY(rule, minute, part)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hours(rule INTEGER NOT NULL, hour INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY(rule, hour)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen(rule_id TEXT NOT NULL, value TEXT NOT NULL, at_ms INTEGER NOT NULL, last TEXT, PRIMARY KEY(rule_id, value)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS seen_at ON seen(at_ms);
CREATE TABLE IF NOT EXISTS alive(only INTEGER PRIMARY KEY CHECK (only = 0), at_ms INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS outages(from_ms INTEGER PRIMARY KEY, to_ms INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS progress(only INTEGER PRIMARY KEY CHECK (only = 0), up_to TEXT NOT NULL) STRICT;
`;

const MINUTES_PER_HOUR = 60;
/** A minute's matches are stored in parts, so that adding some does not rewrite all of them. */
const PART_MATCHES_MAX = 1000;
const STATS_MS = 7 * DAY_MS;
/** A day more than statistics cover. */
const COUNTS_KEPT_MS = 8 * DAY_MS;
/** Old counts are removed for a few rules at a time, so that no commit waits for all of them. */
const RULES_CLEARED_PER_COMMIT_MAX = 50;
/** Groups that absence rules have seen. Past the limit, those seen longest ago are evicted. */
const SEEN_MAX = 1_000_000;
/** Past the limit, the oldest are dropped: absences of that time have been reported. */
const OUTAGES_MAX = 1000;
/** How long to wait for another process that holds the file. */
const READ_MS_MAX = 5000;

/** For a new file, or for one without a schema version. */
export function makeRuleTables(db: DatabaseSync): void {
  db.exec(SCHEMA);
  // Older files do not store the last seen event.
  const isOld = db.prepare("SELECT 1 FROM pragma_table_info('seen') WHERE name = 'last'").get() === undefined;
  if (isOld) db.exec("ALTER TABLE seen ADD COLUMN last TEXT");
  // Older files do not store the times of matches within a minute.
  if (db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'minutes'").get() !== undefined) {
    db.exec("INSERT INTO moments SELECT rule, minute, 0, zeroblob(2 * count) FROM minutes; DROP TABLE minutes");
  }
}

export class RuleTables {
  readonly #sql: Statements;
  #seenAtMost: number;
  #clearedHour = 0;
  #toClear: number[] = [];

  constructor(db: DatabaseSync) {
    this.#sql = new Statements(db);
    this.#seenAtMost = this.#countSeen();
  }

  list(): JsonText<Rule[]> {
    const rows = this.#sql.read("SELECT document FROM rules ORDER BY name").all() as { document: string }[];
    return new JsonText(`[${rows.map(({ document }) => document).join(",")}]`);
  }

  /** Must run in a transaction. */
  putMany(rules: readonly Rule[]): void {
    for (const rule of rules) this.put(rule);
  }

  /** Must run in a transaction. */
  put(rule: Rule): void {
    const known = this.#sql
      .read("SELECT revision, document ->> 'activeAfter' AS activeAfter FROM rules WHERE id = ?")
      .get(rule.id) as { revision: number; activeAfter: string | null } | undefined;
    // Built-in rules are stored only once changed, so the first stored revision may be a later one.
    const isNext = known ? known.revision === rule.revision - 1 : rule.builtin || rule.revision === 1;
    if (!isNext) throw new RuleConflict("changed", `the rule ${rule.name} was changed or deleted in the meantime`);
    const namesake = this.#sql.read("SELECT id FROM rules WHERE name = ? AND id <> ?").get(rule.name, rule.id);
    if (namesake) throw new RuleConflict("name_taken", `another rule has the name ${rule.name}`);
    this.#sql.run(
      "INSERT OR REPLACE INTO rules(id, name, revision, document) VALUES (?, ?, ?, ?)",
      rule.id,
      rule.name,
      rule.revision,
      JSON.stringify(rule),
    );
    // A rule that starts over has seen nothing.
    if ((known?.activeAfter ?? null) !== rule.activeAfter) this.#sql.run("DELETE FROM seen WHERE rule_id = ?", rule.id);
  }

  /** Must run in a transaction. */
  remove(id: string): void {
    this.#sql.run("DELETE FROM rules WHERE id = ?", id);
    for (const table of ["moments", "hours"]) {
      this.#sql.run(`DELETE FROM ${table} WHERE rule = (SELECT number FROM matched WHERE rule_id = ?)`, id);
    }
    this.#sql.run("DELETE FROM matched WHERE rule_id = ?", id);
    this.#sql.run("DELETE FROM seen WHERE rule_id = ?", id);
  }

  stats(ids: readonly string[], nowMs: number): RuleStats[] {
    const find = this.#sql.read("SELECT number, last_ms FROM matched WHERE rule_id = ?");
    return ids.map((id) => {
      const row = find.get(id) as { number: number; last_ms: number } | undefined;
      if (!row) return { matches24h: 0, matches7d: 0, lastMatchAt: null };
      return {
        matches24h: this.#countSince(row.number, nowMs - DAY_MS),
        matches7d: this.#countSince(row.number, nowMs - STATS_MS),
        lastMatchAt: row.last_ms,
      };
    });
  }

  /** Counts single matches in the first minute, then whole minutes up to the first whole hour, then hours. */
  #countSince(rule: number, ms: number): number {
    const minute = Math.floor(ms / MINUTE_MS);
    const hour = Math.ceil((minute + 1) / MINUTES_PER_HOUR);
    const { sum } = this.#sql
      .read(`SELECT (SELECT coalesce(sum(length(times)), 0) / 2 FROM moments WHERE rule = ?1 AND minute > ?2 AND minute < ?3)
            + (SELECT coalesce(sum(count), 0) FROM hours WHERE rule = ?1 AND hour >= ?4) AS sum`)
      .get(rule, minute, hour * MINUTES_PER_HOUR, hour) as { sum: number };
    const parts = this.#sql.read("SELECT times FROM moments WHERE rule = ? AND minute = ?").all(rule, minute);
    const offset = ms - minute * MINUTE_MS;
    let within = 0;
    for (const { times } of parts as unknown as Moments[]) {
      for (const matchOffset of offsetsOf(times)) if (matchOffset >= offset) within++;
    }
    return sum + within;
  }

  position(): string | null {
    const row = this.#sql.read("SELECT up_to FROM progress").get() as { up_to: string } | undefined;
    return row?.up_to ?? null;
  }

  seen(): SeenRow[] {
    const rows = this.#sql.read("SELECT rule_id, value, at_ms, last FROM seen ORDER BY at_ms").all();
    return (rows as { rule_id: string; value: string; at_ms: number; last: string | null }[]).map((row) => ({
      ruleId: row.rule_id,
      group: row.value,
      atMs: row.at_ms,
      last: row.last === null ? null : (parseExact(row.last) as SeenEvent),
    }));
  }

  /** Must run in a transaction. */
  begin(nowMs: number): Outage[] {
    const aliveAt = this.#aliveAt();
    if (aliveAt !== null && aliveAt < nowMs) {
      this.#sql.run(
        `INSERT INTO outages(from_ms, to_ms) VALUES (?1, ?2)
         ON CONFLICT(from_ms) DO UPDATE SET to_ms = max(to_ms, ?2)`,
        aliveAt,
        nowMs,
      );
      this.#sql.run(
        "DELETE FROM outages WHERE from_ms NOT IN (SELECT from_ms FROM outages ORDER BY from_ms DESC LIMIT ?)",
        OUTAGES_MAX,
      );
    }
    this.#noteAlive(nowMs);
    const rows = this.#sql.read("SELECT from_ms AS fromMs, to_ms AS toMs FROM outages ORDER BY from_ms").all();
    return (rows as unknown as Outage[]).map(({ fromMs, toMs }) => ({ fromMs, toMs }));
  }

  /** The last sign of life; in older files, which do not store it, the time of the last processed event. */
  #aliveAt(): number | null {
    const row = this.#sql.read("SELECT at_ms FROM alive").get() as { at_ms: number } | undefined;
    if (row) return row.at_ms;
    const position = this.position();
    return position === null ? null : timeOfId(position);
  }

  #noteAlive(atMs: number): void {
    this.#sql.run("INSERT OR REPLACE INTO alive(only, at_ms) VALUES (0, ?)", atMs);
  }

  /** Must run in a transaction. Returns the number of seen groups that were evicted. */
  note({ upTo, matches, seen }: DetectionProgress, nowMs: number): number {
    this.#sql.run("INSERT OR REPLACE INTO progress(only, up_to) VALUES (0, ?)", upTo);
    this.#noteAlive(nowMs);
    const oldest = Math.floor((nowMs - COUNTS_KEPT_MS) / MINUTE_MS);
    for (const [ruleId, minutes] of matchesByMinute(matches)) {
      const [lastMinute, lastOffsets] = [...minutes].reduce((a, b) => (b[0] > a[0] ? b : a));
      const { number } = this.#sql
        .read(`INSERT INTO matched(rule_id, last_ms) VALUES (?1, ?2)
         ON CONFLICT(rule_id) DO UPDATE SET last_ms = max(last_ms, ?2) RETURNING number`)
        .get(ruleId, lastMinute * MINUTE_MS + lastOffsets.reduce((a, b) => Math.max(a, b))) as { number: number };
      for (const [minute, offsets] of minutes) if (minute >= oldest) this.#count(number, minute, offsets);
    }
    this.#clearCounts(oldest);
    for (const { ruleId, group, atMs, last } of seen) {
      this.#sql.run(
        "INSERT OR REPLACE INTO seen(rule_id, value, at_ms, last) VALUES (?, ?, ?, ?)",
        ruleId,
        group,
        atMs,
        last && JSON.stringify(last),
      );
    }
    return this.#evictSeen(seen.length);
  }

  #count(rule: number, minute: number, offsets: readonly number[]): void {
    this.#sql.run(
      `INSERT INTO hours(rule, hour, count) VALUES (?1, ?2, ?3) ON CONFLICT(rule, hour) DO UPDATE SET count = count + ?3`,
      rule,
      Math.floor(minute / MINUTES_PER_HOUR),
      offsets.length,
    );
    const last = this.#sql
      .read("SELECT part, times FROM moments WHERE rule = ? AND minute = ? ORDER BY part DESC LIMIT 1")
      .get(rule, minute) as (Moments & { part: number }) | undefined;
    // New matches continue the last part.
    const all = Uint16Array.from(last ? [...offsetsOf(last.times), ...offsets] : offsets);
    for (let from = 0, part = last?.part ?? 0; from < all.length; from += PART_MATCHES_MAX, part++) {
      const bytes = new Uint8Array(all.slice(from, from + PART_MATCHES_MAX).buffer);
      this.#sql.run(
        "INSERT OR REPLACE INTO moments(rule, minute, part, times) VALUES (?, ?, ?, ?)",
        rule,
        minute,
        part,
        bytes,
      );
    }
  }

  #clearCounts(oldestMinute: number): void {
    const oldestHour = Math.floor(oldestMinute / MINUTES_PER_HOUR);
    if (oldestHour > this.#clearedHour) {
      this.#clearedHour = oldestHour;
      const rows = this.#sql.read("SELECT number FROM matched").all() as { number: number }[];
      this.#toClear = rows.map(({ number }) => number);
    }
    for (const rule of this.#toClear.splice(0, RULES_CLEARED_PER_COMMIT_MAX)) {
      this.#sql.run("DELETE FROM moments WHERE rule = ? AND minute < ?", rule, oldestHour * MINUTES_PER_HOUR);
      this.#sql.run("DELETE FROM hours WHERE rule = ? AND hour < ?", rule, oldestHour);
    }
  }

  #evictSeen(added: number): number {
    // Assume that all are new. Counting, which reads every row, is needed only when that exceeds the limit.
    this.#seenAtMost += added;
    if (this.#seenAtMost <= SEEN_MAX) return 0;
    const count = this.#countSeen();
    const excess = Math.max(0, count - SEEN_MAX);
    this.#sql.run(
      "DELETE FROM seen WHERE (rule_id, value) IN (SELECT rule_id, value FROM seen ORDER BY at_ms LIMIT ?)",
      excess,
    );
    this.#seenAtMost = count - excess;
    return excess;
  }

  #countSeen(): number {
    return (this.#sql.read("SELECT count(*) AS count FROM seen").get() as { count: number }).count;
  }
}

/** The stored rules; works with and without a running server. Creates no file. */
export function readStoredRules(dataDir: string): Rule[] {
  const rows = readRows<{ document: string }>(dataDir, "rules", "SELECT document FROM rules");
  return rows.map(({ document }) => JSON.parse(document) as Rule);
}

/** The id of the last event that detection has processed, read without opening the other tables. */
export function readPosition(dataDir: string): string | null {
  return readRows<{ up_to: string }>(dataDir, "progress", "SELECT up_to FROM progress")[0]?.up_to ?? null;
}

function readRows<Row>(dataDir: string, table: string, sql: string): Row[] {
  const path = casesFile(dataDir);
  if (!existsSync(path)) return [];
  return onFile(path, () => {
    const db = new DatabaseSync(path, { readOnly: true, timeout: READ_MS_MAX });
    try {
      const exists = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?").get(table) !== undefined;
      return exists ? (db.prepare(sql).all() as Row[]) : [];
    } finally {
      db.close();
    }
  });
}

interface Moments {
  readonly times: Uint8Array;
}

/** Offsets in milliseconds from the start of the minute. */
function offsetsOf(times: Uint8Array): Uint16Array {
  return new Uint16Array(times.slice().buffer);
}
