import { DAY_MS } from "../../lib/time.ts";
import type { RuleStats } from "../../model/rule.ts";
import type { DetectionProgress } from "../ports/detection-store.ts";
import { MINUTE_MS, matchesByMinute } from "../queries/matches-by-minute.ts";
import { plainText } from "./plain-text.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";

// Counts of the events that rules matched. Minutes and hours are whole ones since 1970. Sums over a week use hours; at its start
// they use minutes, and milliseconds within a minute. A match takes two bytes: its offset within its minute.

export const POSTGRES_MATCHES_SCHEMA = `
CREATE TABLE rule_matches(number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, rule_id text COLLATE "C" NOT NULL UNIQUE,
  last_ms int8 NOT NULL);
CREATE TABLE rule_moments(rule int8 NOT NULL, minute int8 NOT NULL, part int8 NOT NULL, times bytea NOT NULL,
  PRIMARY KEY(rule, minute, part));
CREATE TABLE rule_hours(rule int8 NOT NULL, hour int8 NOT NULL, count int8 NOT NULL, PRIMARY KEY(rule, hour));
`;

const MINUTES_PER_HOUR = 60;
/** A minute's matches are stored in parts, so that adding some does not rewrite all of them. */
const PART_BYTES_MAX = 2000;
const STATS_MS = 7 * DAY_MS;
/** A day more than statistics cover. */
const COUNTS_KEPT_MS = 8 * DAY_MS;
/** Old counts are removed for a few rules at a time, so that no commit waits for all of them. */
const RULES_CLEARED_PER_COMMIT_MAX = 50;

/** Adds matches to the counts, and removes old ones. */
export class MatchCounts {
  #clearedHour = 0;
  #toClear: number[] = [];

  /** Must run in a transaction that excludes other writers of matches. */
  async add(transaction: PostgresQueries, matches: DetectionProgress["matches"], nowMs: number): Promise<void> {
    const oldest = Math.floor((nowMs - COUNTS_KEPT_MS) / MINUTE_MS);
    const byRule = [...matchesByMinute(matches)];
    if (byRule.length > 0) {
      const last = byRule.map(([ruleId, minutes]) => {
        const [minute, offsets] = [...minutes].reduce((a, b) => (b[0] > a[0] ? b : a));
        return { rule_id: plainText(ruleId), last_ms: minute * MINUTE_MS + offsets.reduce((a, b) => Math.max(a, b)) };
      });
      const numbered = await transaction.query<{ number: number; rule_id: string }>(
        `INSERT INTO rule_matches(rule_id, last_ms)
         SELECT rule_id, last_ms FROM json_to_recordset($1::json) AS given(rule_id text, last_ms int8)
         ON CONFLICT (rule_id) DO UPDATE SET last_ms = greatest(rule_matches.last_ms, excluded.last_ms)
         RETURNING number, rule_id`,
        [JSON.stringify(last)],
      );
      const numbers = new Map(numbered.map((row) => [row.rule_id, row.number]));
      const rows = byRule.flatMap(([ruleId, minutes]) =>
        Array.from(minutes, ([minute, offsets]) => ({ rule: numbers.get(plainText(ruleId))!, minute, offsets })),
      );
      await this.#count(
        transaction,
        rows.filter(({ minute }) => minute >= oldest),
      );
    }
    await this.#clear(transaction, Math.floor(oldest / MINUTES_PER_HOUR));
  }

  async #count(
    transaction: PostgresQueries,
    rows: readonly { rule: number; minute: number; offsets: readonly number[] }[],
  ): Promise<void> {
    const given = JSON.stringify(
      rows.map(({ rule, minute, offsets }) => ({
        rule,
        minute,
        count: offsets.length,
        times: Buffer.from(Uint16Array.from(offsets).buffer).toString("hex"),
      })),
    );
    await transaction.run(
      `INSERT INTO rule_hours(rule, hour, count)
       SELECT rule, minute / ${MINUTES_PER_HOUR}, sum(count)
       FROM json_to_recordset($1::json) AS given(rule int8, minute int8, count int8) GROUP BY 1, 2
       ON CONFLICT (rule, hour) DO UPDATE SET count = rule_hours.count + excluded.count`,
      [given],
    );
    // New matches continue the last part, unless it is full.
    await transaction.run(
      `INSERT INTO rule_moments(rule, minute, part, times)
       SELECT rule, minute, coalesce(last.part + (length(last.times) >= ${PART_BYTES_MAX})::int, 0), decode(given.times, 'hex')
       FROM json_to_recordset($1::json) AS given(rule int8, minute int8, times text)
       LEFT JOIN LATERAL (SELECT part, times FROM rule_moments AS known
         WHERE known.rule = given.rule AND known.minute = given.minute ORDER BY part DESC LIMIT 1) AS last ON true
       ON CONFLICT (rule, minute, part) DO UPDATE SET times = rule_moments.times || excluded.times`,
      [given],
    );
  }

  async #clear(transaction: PostgresQueries, oldestHour: number): Promise<void> {
    if (oldestHour > this.#clearedHour) {
      this.#clearedHour = oldestHour;
      const rows = await transaction.query<{ number: number }>("SELECT number FROM rule_matches");
      this.#toClear = rows.map(({ number }) => number);
    }
    const rules = this.#toClear.splice(0, RULES_CLEARED_PER_COMMIT_MAX);
    if (rules.length === 0) return;
    await transaction.run("DELETE FROM rule_moments WHERE rule = ANY($1) AND minute < $2", [
      rules,
      oldestHour * MINUTES_PER_HOUR,
    ]);
    await transaction.run("DELETE FROM rule_hours WHERE rule = ANY($1) AND hour < $2", [rules, oldestHour]);
  }
}

/** Must run in a transaction. */
export async function forgetMatches(transaction: PostgresQueries, ruleId: string): Promise<void> {
  const removed = await transaction.query<{ number: number }>(
    "DELETE FROM rule_matches WHERE rule_id = $1 RETURNING number",
    [plainText(ruleId)],
  );
  for (const { number } of removed) {
    await transaction.run("DELETE FROM rule_moments WHERE rule = $1", [number]);
    await transaction.run("DELETE FROM rule_hours WHERE rule = $1", [number]);
  }
}

/** The first minute of a period, the whole minutes up to the first whole hour, then hours. */
function spanSince(ms: number) {
  const minute = Math.floor(ms / MINUTE_MS);
  return { minute, offset: ms - minute * MINUTE_MS, hour: Math.ceil((minute + 1) / MINUTES_PER_HOUR) };
}

export async function readMatchStats(
  database: PostgresDatabase,
  ids: readonly string[],
  nowMs: number,
): Promise<RuleStats[]> {
  const spans = [spanSince(nowMs - DAY_MS), spanSince(nowMs - STATS_MS)] as const;
  const sum = (start: number) =>
    `(SELECT coalesce(sum(length(times)), 0) / 2 FROM rule_moments
        WHERE rule = number AND minute > $${start} AND minute < $${start + 1} * ${MINUTES_PER_HOUR})
     + (SELECT coalesce(sum(count), 0) FROM rule_hours WHERE rule = number AND hour >= $${start + 1})`;
  const found = await database.transact(
    async (transaction) => {
      const sums = await transaction.query<{ number: number; rule_id: string; last_ms: number; d: number; w: number }>(
        `SELECT number, rule_id, last_ms, (${sum(2)})::int8 AS d, (${sum(4)})::int8 AS w
         FROM rule_matches WHERE rule_id = ANY($1)`,
        [ids.map(plainText), ...spans.flatMap(({ minute, hour }) => [minute, hour])],
      );
      const edges = await transaction.query<{ rule: number; minute: number; times: Uint8Array }>(
        "SELECT rule, minute, times FROM rule_moments WHERE rule = ANY($1) AND minute = ANY($2)",
        [sums.map(({ number }) => number), spans.map(({ minute }) => minute)],
      );
      return { sums, edges: Map.groupBy(edges, ({ rule }) => rule) };
    },
    { isolation: "REPEATABLE READ" },
  );
  const within = (rule: number, { minute, offset }: (typeof spans)[number]) => {
    let count = 0;
    for (const edge of found.edges.get(rule) ?? []) {
      if (edge.minute !== minute) continue;
      for (const matchOffset of new Uint16Array(edge.times.slice().buffer)) if (matchOffset >= offset) count++;
    }
    return count;
  };
  const byRule = new Map(found.sums.map((row) => [row.rule_id, row]));
  return ids.map((id) => {
    const row = byRule.get(plainText(id));
    if (!row) return { matches24h: 0, matches7d: 0, lastMatchAt: null };
    return {
      matches24h: row.d + within(row.number, spans[0]),
      matches7d: row.w + within(row.number, spans[1]),
      lastMatchAt: row.last_ms,
    };
  });
}
