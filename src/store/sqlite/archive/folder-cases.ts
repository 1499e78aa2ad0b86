import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { JsonValue } from "../../../model/event.ts";
import type { CaseArchive, CaseKind, CaseRecord } from "../../ports/archive.ts";
import { casesFile, keysFile, stateFile } from "../../files/layout.ts";
import { CASES_MIGRATIONS } from "../cases/case-migrations.ts";
import { Statements } from "../cases/prepared-statements.ts";
import { KEYS_MIGRATIONS } from "../key-database.ts";
import { openShared } from "../sqlite.ts";
import { STATE_MIGRATIONS } from "../state-database.ts";
import { readAlerts, writeAlerts } from "./folder-alerts.ts";

// The cases of a data folder as records.

type File = "cases" | "keys" | "state";
type FolderColumnType = "text" | "number" | "bytes" | "flag";

/** The fields of a record are those of the columns. */
interface FolderTable {
  readonly file: File;
  /** What is read: a table or a query. */
  readonly from: string;
  readonly columns: Readonly<Record<string, FolderColumnType>>;
  /** By which pages follow each other; not all of them need to be among the columns. */
  readonly key: readonly string[];
  /** The parameters are the columns, in their order. */
  readonly insert: string;
}

const PAGE_ROWS = 1000;

function table(
  file: File,
  name: string,
  columns: FolderTable["columns"],
  key: readonly string[],
  special: Partial<Pick<FolderTable, "from" | "insert">> = {},
): FolderTable {
  const names = Object.keys(columns);
  const insert = `INSERT OR REPLACE INTO ${name}(${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
  return { file, from: name, columns, key, insert, ...special };
}

const counted = (name: string, columns: string) =>
  `(SELECT rule_id, ${columns} FROM ${name} JOIN matched ON matched.number = ${name}.rule)`;
const RULE_NUMBER = "(SELECT number FROM matched WHERE rule_id = ?)";

const TABLES: Readonly<Record<Exclude<CaseKind, "alerts">, FolderTable>> = {
  keys: table(
    "keys",
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
  previous_secrets: table(
    "keys",
    "previous_secrets",
    { key_id: "text", hash: "bytes", until: "number" },
    ["key_id", "hash"],
    {
      // Older versions stored the only previous secret with the key.
      from: `(SELECT key_id, hash, until FROM previous_secrets UNION
        SELECT id, previous_hash, previous_until FROM keys WHERE previous_hash IS NOT NULL AND previous_until IS NOT NULL)`,
    },
  ),
  key_usage: table(
    "keys",
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
    "keys",
    "sessions",
    { id_hash: "bytes", key_id: "text", secret_hash: "bytes", created_at: "number", last_used_at: "number" },
    ["id_hash"],
  ),
  views: table(
    "cases",
    "views",
    { id: "text", owner: "text", screen: "text", shared: "flag", position: "number", document: "text" },
    ["id"],
  ),
  lists: table("state", "lists", { name: "text", document: "text" }, ["name"]),
  list_entries: table("state", "list_entries", { list: "text", value: "text", document: "text" }, ["list", "value"]),
  exports: table("state", "exports", { id: "text", job: "text" }, ["id"]),
  reputations: table("state", "reputations", { address: "text", checked_at: "number", report: "text" }, ["address"]),
  reputation_lookups: table("state", "lookups", { day: "number", count: "number" }, ["day"]),
  analysis_tokens: table("cases", "tokens", { month: "text", used: "number" }, ["month"]),
  retention_notes: table("state", "facts", { name: "text", value: "number" }, ["name"], {
    from: "(SELECT name, value FROM facts WHERE substr(name, 1, 10) = 'retention_')",
  }),
  rule_definitions: table("cases", "definitions", { id: "text", definition: "text" }, ["id"]),
  alert_changes: table("cases", "last_change", { last: "number" }, ["last"], {
    from: `(SELECT max(coalesce(max(change), 0), coalesce((SELECT change FROM last_change), 0)) AS last FROM alerts)`,
    insert: "INSERT OR REPLACE INTO last_change(only, change) VALUES (0, ?)",
  }),
  notifications: table(
    "cases",
    "notifications",
    {
      id: "text",
      alert_id: "text",
      channel: "text",
      reason: "text",
      status: "text",
      delivery: "text",
      is_repeat: "flag",
      attempts: "number",
      created_at: "number",
      queued_at: "number",
      due_at: "number",
      settled_at: "number",
      error: "text",
      untold: "text",
    },
    ["seq"],
    {
      insert: `INSERT OR IGNORE INTO notifications(id, alert_id, channel, reason, status, delivery, is_repeat, attempts, created_at,
        queued_at, due_at, settled_at, error, untold) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    },
  ),
  rules: table("cases", "rules", { id: "text", name: "text", revision: "number", document: "text" }, ["id"]),
  rule_matches: table("cases", "matched", { rule_id: "text", last_ms: "number" }, ["rule_id"], {
    insert: `INSERT INTO matched(rule_id, last_ms) VALUES (?, ?)
      ON CONFLICT(rule_id) DO UPDATE SET last_ms = excluded.last_ms`,
  }),
  rule_match_hours: table("cases", "hours", { rule_id: "text", hour: "number", count: "number" }, ["rule_id", "hour"], {
    from: counted("hours", "hour, count"),
    insert: `INSERT OR REPLACE INTO hours(rule, hour, count) VALUES (${RULE_NUMBER}, ?, ?)`,
  }),
  rule_match_moments: table(
    "cases",
    "moments",
    { rule_id: "text", minute: "number", part: "number", times: "bytes" },
    ["rule_id", "minute", "part"],
    {
      from: counted("moments", "minute, part, times"),
      insert: `INSERT OR REPLACE INTO moments(rule, minute, part, times) VALUES (${RULE_NUMBER}, ?, ?, ?)`,
    },
  ),
  absence_sightings: table("cases", "seen", { rule_id: "text", value: "text", at_ms: "number", last: "text" }, [
    "rule_id",
    "value",
  ]),
  detection_outages: table("cases", "outages", { from_ms: "number", to_ms: "number" }, ["from_ms"]),
  detection: table("cases", "progress", { name: "text", place: "text", at_ms: "number" }, ["name"], {
    from: `(SELECT 'progress' AS name, up_to AS place, NULL AS at_ms FROM progress UNION ALL
      SELECT 'alive', NULL, at_ms FROM alive)`,
    insert: "",
  }),
};

export class FolderCases implements CaseArchive {
  readonly #files: Readonly<Record<File, DatabaseSync>>;
  readonly #cases: Statements;

  constructor(dataDir: string) {
    const opened: DatabaseSync[] = [];
    const open = (path: string, migrations: typeof CASES_MIGRATIONS) => {
      const db = openShared(path, migrations);
      opened.push(db);
      return db;
    };
    try {
      this.#files = {
        cases: open(casesFile(dataDir), CASES_MIGRATIONS),
        keys: open(keysFile(dataDir), KEYS_MIGRATIONS),
        state: open(stateFile(dataDir), STATE_MIGRATIONS),
      };
    } catch (error) {
      for (const db of opened) db.close();
      throw error;
    }
    this.#cases = new Statements(this.#files.cases);
  }

  async count(kind: CaseKind): Promise<number> {
    const { file, from } = kind === "alerts" ? { file: "cases" as const, from: "alerts" } : TABLES[kind];
    const row = this.#files[file].prepare(`SELECT count(*) AS count FROM ${from}`).get();
    return (row as { count: number }).count;
  }

  async *read(kind: CaseKind): AsyncIterable<readonly CaseRecord[]> {
    if (kind === "alerts") {
      yield* readAlerts(this.#cases);
      return;
    }
    const { file, from, columns, key } = TABLES[kind];
    const names = Object.keys(columns);
    const beyond = key.filter((column) => !(column in columns));
    const select = `SELECT ${[...names, ...beyond].join(", ")} FROM ${from}`;
    const order = `ORDER BY ${key.join(", ")} LIMIT ${PAGE_ROWS}`;
    const next = this.#files[file].prepare(
      `${select} WHERE (${key.join(", ")}) > (${key.map(() => "?").join(", ")}) ${order}`,
    );
    type Row = Record<string, SQLInputValue>;
    let rows = this.#files[file].prepare(`${select} ${order}`).all() as Row[];
    while (rows.length > 0) {
      yield rows.map((row) => Object.fromEntries(names.map((name) => [name, toJson(columns[name]!, row[name]!)])));
      if (rows.length < PAGE_ROWS) return;
      const last = rows.at(-1)!;
      rows = next.all(...key.map((column) => last[column]!)) as Row[];
    }
  }

  async write(kind: CaseKind, records: readonly CaseRecord[]): Promise<void> {
    const file = kind === "alerts" ? "cases" : TABLES[kind].file;
    const db = this.#files[file];
    db.exec("BEGIN IMMEDIATE");
    try {
      if (kind === "alerts") writeAlerts(this.#cases, records);
      else if (kind === "detection") this.#writeDetection(records);
      else {
        const { columns, insert } = TABLES[kind];
        const statement = db.prepare(insert);
        const names = Object.entries(columns);
        for (const record of records) statement.run(...names.map(([name, type]) => toSql(type, record[name]!)));
      }
      db.exec("COMMIT");
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }

  #writeDetection(records: readonly CaseRecord[]): void {
    for (const { name, place, at_ms: atMs } of records) {
      if (name === "progress")
        this.#cases.run("INSERT OR REPLACE INTO progress(only, up_to) VALUES (0, ?)", place as string);
      else this.#cases.run("INSERT OR REPLACE INTO alive(only, at_ms) VALUES (0, ?)", atMs as number);
    }
  }

  async platformWord(): Promise<string | undefined> {
    const row = this.#files.state.prepare("SELECT value FROM words WHERE name = 'platform'").get();
    return (row as { value: string } | undefined)?.value;
  }

  async keepPlatformWord(word: string): Promise<void> {
    this.#files.state.prepare("INSERT OR REPLACE INTO words(name, value) VALUES ('platform', ?)").run(word);
  }

  close(): void {
    for (const db of Object.values(this.#files)) db.close();
  }
}

function toJson(type: FolderColumnType, value: SQLInputValue): JsonValue {
  if (value === null) return null;
  if (type === "bytes") return Buffer.from(value as Uint8Array).toString("hex");
  return type === "flag" ? value === 1 : (value as JsonValue);
}

function toSql(type: FolderColumnType, value: JsonValue): SQLInputValue {
  if (value === null) return null;
  if (type === "bytes") return Buffer.from(value as string, "hex");
  return type === "flag" ? Number(value as boolean) : (value as SQLInputValue);
}
