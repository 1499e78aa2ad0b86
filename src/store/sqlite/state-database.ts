import type { DatabaseSync } from "node:sqlite";
import { parseExact } from "../../lib/exact-json.ts";
import type { JsonObject } from "../../model/event.ts";
import type { ExportJob } from "../../model/export.ts";
import { DAY_MS } from "../../lib/time.ts";
import type { ReputationStore } from "../ports/reputation-store.ts";
import type { RetentionNotes } from "../ports/retention-store.ts";
import type { MissingDay } from "../ports/store.ts";
import { writing } from "../files/store-failure.ts";
import { SqliteIdentity, type GoneFile } from "../files/file-identity.ts";
import { stateFile, type Layout } from "../files/layout.ts";
import type { Migrations } from "./migrations.ts";
import { LIST_TABLES, listTables } from "./list-tables.ts";
import { openChecked } from "./sqlite.ts";
import type { ListStore } from "../ports/list-store.ts";
import type { ExportStore } from "../ports/export-store.ts";

export const STATE_MIGRATIONS: Migrations = [
  `
CREATE TABLE IF NOT EXISTS facts(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS words(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS reputations(address TEXT PRIMARY KEY, checked_at INTEGER NOT NULL, report TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS reputations_checked_at ON reputations(checked_at);
CREATE TABLE IF NOT EXISTS lookups(day INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS exports(id TEXT PRIMARY KEY, job TEXT NOT NULL) STRICT;
`,
  `
CREATE TABLE days(kind TEXT NOT NULL, prefix TEXT NOT NULL, day INTEGER NOT NULL, rows INTEGER NOT NULL, missing INTEGER NOT NULL,
  removed_at INTEGER, PRIMARY KEY(kind, prefix, day)) STRICT, WITHOUT ROWID;
`,
  LIST_TABLES,
];

export interface Used {
  readonly seq: number;
  readonly arrivedMs: number;
}

/** The manifest entry of one day of events or flows. */
export interface DayEntry {
  readonly kind: MissingDay["kind"];
  readonly day: number;
  readonly rows: number;
  /** Rows that were stored and are gone, in addition to `rows`. */
  readonly missing: number;
  /** When retention removed it. */
  readonly removedAt: number | null;
}

/** How long entries of removed days are kept. */
const REMOVED_KEPT_MS = 400 * DAY_MS;

export async function openStateDatabase(layout: Layout): Promise<StateDatabase> {
  return new StateDatabase(layout);
}

/** Small tables: sequence numbers, the manifest, exports, reputations, managed lists, notes of retention. */
export class StateDatabase {
  readonly #db: DatabaseSync;
  readonly #identity: SqliteIdentity;

  readonly #prefix: string;
  readonly lists: ListStore;

  constructor({ dataDir, indexPrefix }: Layout) {
    this.#prefix = indexPrefix;
    this.#db = openChecked(stateFile(dataDir), STATE_MIGRATIONS);
    this.#identity = new SqliteIdentity(stateFile(dataDir));
    this.lists = listTables(this.#db, (work) => this.#transact(work));
  }

  /** The file, if it was removed or replaced since it was opened. */
  get goneFiles(): GoneFile[] {
    return this.#identity.faults;
  }

  /** Returns the number of changed rows once the write survives a power failure; otherwise throws. */
  #runDurably(sql: string, ...values: (string | number)[]): number {
    return writing(() => this.#identity.during(() => Number(this.#db.prepare(sql).run(...values).changes)));
  }

  /** The last used sequence number and time of arrival, including those of events that retention removed. */
  get used(): Used {
    const rows = this.#db.prepare("SELECT name, value FROM facts").all() as { name: string; value: number }[];
    const fact = (name: string) => rows.find((row) => row.name === name)?.value ?? 0;
    return { seq: fact("used_seq"), arrivedMs: fact("used_arrival") };
  }

  set used({ seq, arrivedMs }: Used) {
    this.#runDurably(
      "INSERT OR REPLACE INTO facts(name, value) VALUES ('used_seq', ?), ('used_arrival', ?)",
      seq,
      arrivedMs,
    );
  }

  /** The platform word that stored sources begin with, empty while there are none; undefined before the first check. */
  get platform(): string | undefined {
    const row = this.#db.prepare("SELECT value FROM words WHERE name = 'platform'").get();
    return (row as { value: string } | undefined)?.value;
  }

  set platform(word: string | undefined) {
    this.#runDurably("INSERT OR REPLACE INTO words(name, value) VALUES ('platform', ?)", word ?? "");
  }

  /** Read from the file each time, because the command line writes it too. */
  get retention(): RetentionNotes {
    const rows = this.#db.prepare("SELECT name, value FROM facts WHERE name LIKE 'retention_%'").all();
    const facts = new Map((rows as { name: string; value: number }[]).map(({ name, value }) => [name, value]));
    const fact = (name: string) => facts.get(`retention_${name}`) ?? null;
    return {
      ranAt: fact("ran_at"),
      heldAt: fact("held_at"),
      confirmedAt: fact("confirmed_at"),
      before: { events: fact("events"), flows: fact("flows"), alerts: fact("alerts") },
    };
  }

  saveRetention({ ranAt, heldAt, confirmedAt, before }: Partial<RetentionNotes>): void {
    const facts = { ran_at: ranAt, held_at: heldAt, confirmed_at: confirmedAt, ...before };
    for (const [name, value] of Object.entries(facts)) {
      if (value === undefined) continue;
      if (value === null) this.#runDurably("DELETE FROM facts WHERE name = ?", `retention_${name}`);
      else this.#runDurably("INSERT OR REPLACE INTO facts(name, value) VALUES (?, ?)", `retention_${name}`, value);
    }
  }

  /** Accepts that the missing rows are lost. Returns how many there were. */
  acceptLosses(): number {
    const { rows } = this.#db.prepare("SELECT coalesce(sum(missing), 0) AS rows FROM days").get() as { rows: number };
    this.#runDurably("UPDATE days SET missing = 0");
    return rows;
  }

  days(): DayEntry[] {
    const rows = this.#db
      .prepare("SELECT kind, day, rows, missing, removed_at AS removedAt FROM days WHERE prefix = ?")
      .all(this.#prefix);
    return rows as unknown as DayEntry[];
  }

  saveDays(entries: readonly DayEntry[]): void {
    this.#transact(() => {
      const put = this.#db.prepare("INSERT OR REPLACE INTO days VALUES (?, ?, ?, ?, ?, ?)");
      for (const { kind, day, rows, missing, removedAt } of entries)
        put.run(kind, this.#prefix, day, rows, missing, removedAt);
      const newest = entries.reduce((most, { removedAt }) => Math.max(most, removedAt ?? 0), 0);
      this.#db.prepare("DELETE FROM days WHERE removed_at < ?").run(newest - REMOVED_KEPT_MS);
    });
  }

  /** Returns once all of the work survives a power failure; otherwise throws, and none of it is done. */
  #transact(work: () => void): void {
    writing(() =>
      this.#identity.during(() => {
        this.#db.exec("BEGIN IMMEDIATE");
        try {
          work();
          this.#db.exec("COMMIT");
        } catch (error) {
          if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
          throw error;
        }
      }),
    );
  }

  readonly exports: ExportStore = {
    list: async () => {
      const rows = this.#db.prepare("SELECT job FROM exports ORDER BY id").all() as { job: string }[];
      return rows.map(({ job }) => parseExact(job) as ExportJob);
    },
    get: async (id) => {
      const row = this.#db.prepare("SELECT job FROM exports WHERE id = ?").get(id) as { job: string } | undefined;
      return row && (parseExact(row.job) as ExportJob);
    },
    put: async (job) =>
      void this.#runDurably("INSERT OR REPLACE INTO exports(id, job) VALUES (?, ?)", job.id, JSON.stringify(job)),
    update: async (job) => this.#runDurably("UPDATE exports SET job = ? WHERE id = ?", JSON.stringify(job), job.id) > 0,
    remove: async (id) => void this.#runDurably("DELETE FROM exports WHERE id = ?", id),
  };

  readonly reputations: ReputationStore = {
    since: async (ms, limit) => {
      const rows = this.#db
        .prepare(
          "SELECT address, checked_at, report FROM reputations WHERE checked_at >= ? ORDER BY checked_at DESC LIMIT ?",
        )
        .all(ms, limit) as unknown as { address: string; checked_at: number; report: string }[];
      return rows.map(({ address, checked_at: checkedAt, report }) => ({
        address,
        checkedAt,
        report: parseExact(report) as JsonObject,
      }));
    },
    put: async ({ address, checkedAt, report }) =>
      this.#runFast(
        "INSERT OR REPLACE INTO reputations(address, checked_at, report) VALUES (?, ?, ?)",
        address,
        checkedAt,
        JSON.stringify(report),
      ),
    removeBefore: async (ms) => this.#runFast("DELETE FROM reputations WHERE checked_at < ?", ms),
    lookups: async (day) => {
      const row = this.#db.prepare("SELECT count FROM lookups WHERE day = ?").get(day);
      return (row as { count: number } | undefined)?.count ?? 0;
    },
    saveLookups: async (day, count) => {
      this.#runFast("INSERT OR REPLACE INTO lookups(day, count) VALUES (?, ?)", day, count);
      this.#runFast("DELETE FROM lookups WHERE day < ?", day);
    },
  };

  /** Writes without an fsync. The write survives a killed process; rows lost in a power failure can be looked up again. */
  #runFast(sql: string, ...values: (string | number)[]): void {
    this.#db.exec("PRAGMA synchronous = NORMAL");
    try {
      this.#db.prepare(sql).run(...values);
    } finally {
      this.#db.exec("PRAGMA synchronous = FULL");
    }
  }

  close(): void {
    this.#db.close();
  }
}
