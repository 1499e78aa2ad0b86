import type { JsonValue } from "../../model/event.ts";
import type { CaseArchive, CaseKind, CaseRecord, MigrationNotes } from "../ports/archive.ts";
import { plainText, textOfPlain } from "./plain-text.ts";
import { readArchivedAlerts, writeArchivedAlerts } from "./postgres-archived-alerts.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";

// The cases of a database as records.

/** `plain`: a text in its plain form. */
type ArchivedColumnType = "text" | "plain" | "number" | "bytes" | "flag";

/** The fields of a record are those of the columns. */
interface ArchivedTable {
  /** What is read: a table or a query. */
  readonly from: string;
  readonly columns: Readonly<Record<string, ArchivedColumnType>>;
  /** By which pages follow each other; not all of them need to be among the columns. */
  readonly key: readonly string[];
  /** Reads the rows from `given`, which has the columns. */
  readonly insert: string;
}

const PAGE_ROWS = 1000;
/** Records that one statement writes. */
const WRITTEN_ROWS = 1000;
const SQL_TYPES = { text: "text", plain: "text", number: "int8", bytes: "bytea", flag: "bool" };

function table(
  name: string,
  columns: ArchivedTable["columns"],
  key: readonly string[],
  special: Partial<Pick<ArchivedTable, "from" | "insert">> = {},
): ArchivedTable {
  const names = Object.keys(columns);
  const changes = names.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
  const conflict = changes.length === 0 ? "NOTHING" : `UPDATE SET ${changes.join(", ")}`;
  const list = names.join(", ");
  const insert = `INSERT INTO ${name}(${list}) SELECT ${list} FROM given ON CONFLICT (${key.join(", ")}) DO ${conflict}`;
  return { from: name, columns, key, insert, ...special };
}

const counted = (name: string, columns: string) =>
  `(SELECT rule_id, ${columns} FROM ${name} JOIN rule_matches ON number = rule) AS counted`;

const TABLES: Readonly<Record<Exclude<CaseKind, "alerts">, ArchivedTable>> = {
  keys: table(
    "keys",
    {
      id: "text",
      name: "text",
      scopes: "text",
      plan: "text",
      created_at: "number",
      expires_at: "number",
      revoked_at: "number",
      secret_hash: "bytes",
    },
    ["id"],
  ),
  previous_secrets: table("previous_secrets", { key_id: "text", hash: "bytes", until: "number" }, ["key_id", "hash"]),
  key_usage: table(
    "usage",
    {
      key_id: "text",
      last_used_at: "number",
      day: "number",
      day_count: "number",
      minute_ends_at: "number",
      minute_count: "number",
    },
    ["key_id"],
  ),
  sessions: table(
    "sessions",
    { id_hash: "bytes", key_id: "text", secret_hash: "bytes", created_at: "number", last_used_at: "number" },
    ["id_hash"],
  ),
  views: table(
    "views",
    { id: "text", owner: "text", screen: "text", shared: "flag", position: "number", document: "text" },
    ["id"],
  ),
  lists: table("lists", { name: "text", document: "text" }, ["name"]),
  list_entries: table("list_entries", { list: "text", value: "text", document: "text" }, ["list", "value"]),
  exports: table("exports", { id: "text", job: "text" }, ["id"]),
  reputations: table("reputations", { address: "text", checked_at: "number", report: "text" }, ["address"]),
  reputation_lookups: table("lookups", { day: "number", count: "number" }, ["day"]),
  analysis_tokens: table("tokens", { month: "text", used: "number" }, ["month"]),
  retention_notes: table("facts", { name: "text", value: "number" }, ["name"], {
    from: "(SELECT name, value FROM facts WHERE left(name, 10) = 'retention_') AS notes",
  }),
  rule_definitions: table("alert_definitions", { id: "plain", definition: "text" }, ["id"]),
  alert_changes: table("alert_counters", { last: "number" }, ["last"], {
    from: "(SELECT last_change AS last FROM alert_counters) AS counters",
    insert: "UPDATE alert_counters SET last_change = given.last FROM given",
  }),
  notifications: table(
    "notifications",
    {
      id: "plain",
      alert_id: "plain",
      channel: "text",
      reason: "text",
      status: "text",
      delivery: "plain",
      is_repeat: "flag",
      attempts: "number",
      created_at: "number",
      queued_at: "number",
      due_at: "number",
      settled_at: "number",
      error: "plain",
      untold: "text",
    },
    ["seq"],
    {
      insert: `INSERT INTO notifications(id, alert_id, channel, reason, status, delivery, is_repeat, attempts, created_at, queued_at,
          due_at, settled_at, error, untold)
        SELECT id, alert_id, channel, reason, status, delivery, is_repeat, attempts, created_at, queued_at, due_at, settled_at,
          error, untold FROM given ORDER BY nth ON CONFLICT (id) DO NOTHING`,
    },
  ),
  rules: table("rules", { id: "plain", name: "plain", revision: "number", document: "text" }, ["id"]),
  rule_matches: table("rule_matches", { rule_id: "plain", last_ms: "number" }, ["rule_id"]),
  rule_match_hours: table("rule_hours", { rule_id: "plain", hour: "number", count: "number" }, ["rule_id", "hour"], {
    from: counted("rule_hours", "hour, count"),
    insert: `INSERT INTO rule_hours(rule, hour, count)
      SELECT number, hour, count FROM given JOIN rule_matches USING (rule_id)
      ON CONFLICT (rule, hour) DO UPDATE SET count = excluded.count`,
  }),
  rule_match_moments: table(
    "rule_moments",
    { rule_id: "plain", minute: "number", part: "number", times: "bytes" },
    ["rule_id", "minute", "part"],
    {
      from: counted("rule_moments", "minute, part, times"),
      insert: `INSERT INTO rule_moments(rule, minute, part, times)
        SELECT number, minute, part, times FROM given JOIN rule_matches USING (rule_id)
        ON CONFLICT (rule, minute, part) DO UPDATE SET times = excluded.times`,
    },
  ),
  absence_sightings: table("rule_seen", { rule_id: "plain", value: "plain", at_ms: "number", last: "text" }, [
    "rule_id",
    "value",
  ]),
  detection_outages: table("detection_outages", { from_ms: "number", to_ms: "number" }, ["from_ms"]),
  detection: table("detection", { name: "text", place: "plain", at_ms: "number" }, ["name"], {
    from: `(SELECT 'progress' AS name, up_to AS place, NULL::int8 AS at_ms FROM detection WHERE up_to IS NOT NULL UNION ALL
      SELECT 'alive', NULL, alive_at FROM detection WHERE alive_at IS NOT NULL) AS parts`,
    insert: `UPDATE detection SET up_to = coalesce((SELECT place FROM given WHERE name = 'progress'), up_to),
      alive_at = coalesce((SELECT at_ms FROM given WHERE name = 'alive'), alive_at)`,
  }),
};

export function postgresArchive(database: PostgresDatabase): CaseArchive {
  return {
    count: async (kind) => {
      const from = kind === "alerts" ? "alerts" : TABLES[kind].from;
      const [row] = await database.query<{ count: number }>(`SELECT count(*) AS count FROM ${from}`);
      return row!.count;
    },
    read: (kind) => (kind === "alerts" ? readArchivedAlerts(database) : readRecords(database, TABLES[kind])),
    write: async (kind, records) => {
      for (let at = 0; at < records.length; at += WRITTEN_ROWS) {
        const part = records.slice(at, at + WRITTEN_ROWS);
        await database.transact((transaction) =>
          kind === "alerts" ? writeArchivedAlerts(transaction, part) : writeRecords(transaction, TABLES[kind], part),
        );
      }
    },
    platformWord: async () => {
      const [row] = await database.query<{ value: string }>("SELECT value FROM words WHERE name = 'platform'");
      return row?.value;
    },
    keepPlatformWord: (word) => saveWord(database, "platform", word),
  };
}

/** Kept among the words of the database. */
export function postgresMigrationNotes(database: PostgresDatabase): MigrationNotes {
  return {
    read: async () => {
      const [row] = await database.query<{ value: string }>("SELECT value FROM words WHERE name = 'migration'");
      return row?.value;
    },
    save: (text) => saveWord(database, "migration", text),
  };
}

async function saveWord(database: PostgresDatabase, name: string, value: string): Promise<void> {
  await database.run("INSERT INTO words(name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = $2", [
    name,
    value,
  ]);
}

type ArchivedRow = Record<string, string | number | boolean | Uint8Array | null>;

async function* readRecords(
  database: PostgresDatabase,
  { from, columns, key }: ArchivedTable,
): AsyncGenerator<readonly CaseRecord[]> {
  const names = Object.keys(columns);
  const beyond = key.filter((column) => !(column in columns));
  const select = `SELECT ${[...names, ...beyond].join(", ")} FROM ${from}`;
  const order = `ORDER BY ${key.join(", ")} LIMIT ${PAGE_ROWS}`;
  const next = `${select} WHERE (${key.join(", ")}) > (${key.map((_, nth) => `$${nth + 1}`).join(", ")}) ${order}`;
  let rows = await database.query<ArchivedRow>(`${select} ${order}`);
  while (rows.length > 0) {
    yield rows.map((row) => Object.fromEntries(names.map((name) => [name, toJson(columns[name]!, row[name]!)])));
    if (rows.length < PAGE_ROWS) return;
    const last = rows.at(-1)!;
    rows = await database.query<ArchivedRow>(
      next,
      key.map((column) => last[column]!),
    );
  }
}

async function writeRecords(
  transaction: PostgresQueries,
  { columns, insert }: ArchivedTable,
  records: readonly CaseRecord[],
): Promise<void> {
  const entries = Object.entries(columns);
  // Bytes are in hexadecimal on their way.
  const typed = entries.map(([name, type]) => `${name} ${type === "bytes" ? "text" : SQL_TYPES[type]}`).join(", ");
  const list = entries
    .map(([name, type]) => (type === "bytes" ? `decode(${name}, 'hex') AS ${name}` : name))
    .join(", ");
  const rows = records.map((record, nth) => ({
    nth,
    ...Object.fromEntries(
      entries.map(([name, type]) => {
        const value = record[name]!;
        return [name, type === "plain" && value !== null ? plainText(value as string) : value];
      }),
    ),
  }));
  await transaction.run(
    `WITH given AS (SELECT nth, ${list} FROM json_to_recordset($1::json) AS given(nth int8, ${typed})) ${insert}`,
    [JSON.stringify(rows)],
  );
}

function toJson(type: ArchivedColumnType, value: ArchivedRow[string]): JsonValue {
  if (value === null || value === undefined) return null;
  if (type === "bytes") return Buffer.from(value as Uint8Array).toString("hex");
  return type === "plain" ? textOfPlain(value as string) : (value as JsonValue);
}
