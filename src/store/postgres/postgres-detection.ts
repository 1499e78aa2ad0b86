import { parseExact } from "../../lib/exact-json.ts";
import type { SeenEvent } from "../../model/finding.ts";
import type { Fence } from "../ports/lease-store.ts";
import type { DetectionProgress, DetectionStore, Outage, SeenRow } from "../ports/detection-store.ts";
import { plainText, textOfPlain } from "./plain-text.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";
import { requireEpoch } from "./postgres-leases.ts";
import { MatchCounts } from "./postgres-matches.ts";

// How far detection has come, when it ran, and the groups that absence rules have seen.

export const POSTGRES_DETECTION_SCHEMA = `
CREATE TABLE detection(only_row bool PRIMARY KEY CHECK (only_row), up_to text, alive_at int8);
INSERT INTO detection(only_row) VALUES (true);
CREATE TABLE detection_outages(from_ms int8 PRIMARY KEY, to_ms int8 NOT NULL);
CREATE TABLE rule_seen(rule_id text COLLATE "C" NOT NULL, value text COLLATE "C" NOT NULL, at_ms int8 NOT NULL, last text,
  PRIMARY KEY(rule_id, value));
CREATE INDEX rule_seen_at ON rule_seen(at_ms);
`;

/** Groups that absence rules have seen. Past the limit, those seen longest ago are evicted. */
const SEEN_MAX = 1_000_000;
/** Past the limit, the oldest are dropped: absences of that time have been reported. */
const OUTAGES_MAX = 1000;

export class PostgresDetection implements DetectionStore {
  readonly #database: PostgresDatabase;
  readonly #matches = new MatchCounts();
  /** Undefined until they are counted; another process may have added some before this one began. */
  #seenAtMost: number | undefined;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  async position(): Promise<string | null> {
    const [row] = await this.#database.query<{ up_to: string | null }>("SELECT up_to FROM detection");
    return row!.up_to === null ? null : textOfPlain(row!.up_to);
  }

  async seen(): Promise<SeenRow[]> {
    const rows = await this.#database.query<{ rule_id: string; value: string; at_ms: number; last: string | null }>(
      "SELECT rule_id, value, at_ms, last FROM rule_seen ORDER BY at_ms, rule_id, value",
    );
    return rows.map((row) => ({
      ruleId: textOfPlain(row.rule_id),
      group: textOfPlain(row.value),
      atMs: row.at_ms,
      last: row.last === null ? null : (parseExact(row.last) as SeenEvent),
    }));
  }

  async begin(nowMs: number, fence?: Fence): Promise<Outage[]> {
    this.#seenAtMost = undefined;
    return this.#database.transact(async (transaction) => {
      const [row] = await transaction.query<{ alive_at: number | null }>("SELECT alive_at FROM detection FOR UPDATE");
      const aliveAt = row!.alive_at;
      if (aliveAt !== null && aliveAt < nowMs) {
        await transaction.run(
          `INSERT INTO detection_outages(from_ms, to_ms) VALUES ($1, $2)
           ON CONFLICT (from_ms) DO UPDATE SET to_ms = greatest(detection_outages.to_ms, $2)`,
          [aliveAt, nowMs],
        );
        await transaction.run(
          `DELETE FROM detection_outages WHERE from_ms IN
             (SELECT from_ms FROM detection_outages ORDER BY from_ms DESC OFFSET $1)`,
          [OUTAGES_MAX],
        );
      }
      await transaction.run("UPDATE detection SET alive_at = $1", [nowMs]);
      if (fence) await requireEpoch(transaction, fence);
      return transaction.query<Outage>(
        `SELECT from_ms AS "fromMs", to_ms AS "toMs" FROM detection_outages ORDER BY from_ms`,
      );
    });
  }

  /** Must run in a transaction that excludes other commits. Returns the number of seen groups that were evicted. */
  async note(transaction: PostgresQueries, { upTo, matches, seen }: DetectionProgress, nowMs: number): Promise<number> {
    await transaction.run("UPDATE detection SET up_to = $1, alive_at = $2", [plainText(upTo), nowMs]);
    await this.#matches.add(transaction, matches, nowMs);
    if (seen.length === 0) return 0;
    // The last of several sightings of a group counts.
    const rows = new Map(seen.map((row) => [JSON.stringify([row.ruleId, row.group]), row]));
    const given = Array.from(rows.values(), ({ ruleId, group, atMs, last }) => ({
      rule_id: plainText(ruleId),
      value: plainText(group),
      at_ms: atMs,
      last: last && JSON.stringify(last),
    }));
    await transaction.run(
      `INSERT INTO rule_seen(rule_id, value, at_ms, last)
       SELECT rule_id, value, at_ms, last FROM json_to_recordset($1::json) AS given(rule_id text, value text, at_ms int8, last text)
       ON CONFLICT (rule_id, value) DO UPDATE SET at_ms = excluded.at_ms, last = excluded.last`,
      [JSON.stringify(given)],
    );
    return this.#evictSeen(transaction, seen.length);
  }

  async #evictSeen(transaction: PostgresQueries, added: number): Promise<number> {
    // Assume that all are new. Counting, which reads every row, is needed only when that exceeds the limit.
    if (this.#seenAtMost !== undefined && this.#seenAtMost + added <= SEEN_MAX) {
      this.#seenAtMost += added;
      return 0;
    }
    const [row] = await transaction.query<{ count: number }>("SELECT count(*) AS count FROM rule_seen");
    const excess = Math.max(0, row!.count - SEEN_MAX);
    if (excess > 0) {
      await transaction.run(
        `DELETE FROM rule_seen WHERE (rule_id, value) IN
           (SELECT rule_id, value FROM rule_seen ORDER BY at_ms, rule_id, value LIMIT $1)`,
        [excess],
      );
    }
    this.#seenAtMost = row!.count - excess;
    return excess;
  }
}
