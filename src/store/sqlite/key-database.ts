import type { DatabaseSync, StatementSync } from "node:sqlite";
import { knownPlan, knownScopes, type ApiKey, type PreviousSecret } from "../../model/key.ts";
import type { KeyStore, KeyUsage } from "../ports/key-store.ts";
import { writing } from "../files/store-failure.ts";
import { SqliteIdentity, type GoneFile } from "../files/file-identity.ts";
import { keysFile } from "../files/layout.ts";
import type { Migrations } from "./migrations.ts";
import { SESSIONS_SCHEMA, SessionTable } from "./session-table.ts";
import { openChecked } from "./sqlite.ts";

export const KEYS_MIGRATIONS: Migrations = [
  `
CREATE TABLE IF NOT EXISTS keys(id TEXT PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, plan TEXT NOT NULL, created_at INTEGER NOT NULL,
  expires_at INTEGER, revoked_at INTEGER, secret_hash BLOB NOT NULL, previous_hash BLOB, previous_until INTEGER) STRICT;
CREATE TABLE IF NOT EXISTS previous_secrets(key_id TEXT NOT NULL, hash BLOB NOT NULL, until INTEGER NOT NULL, PRIMARY KEY(key_id, hash)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage(key_id TEXT PRIMARY KEY, last_used_at INTEGER NOT NULL, day INTEGER NOT NULL, day_count INTEGER NOT NULL) STRICT;
`,
  `ALTER TABLE usage ADD COLUMN minute_ends_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN minute_count INTEGER NOT NULL DEFAULT 0;
`,
  SESSIONS_SCHEMA,
];

interface KeyRow {
  id: string;
  name: string;
  scopes: string;
  plan: string;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  secret_hash: Uint8Array;
  /** The only previous secret, as an older version stored it. */
  previous_hash: Uint8Array | null;
  previous_until: number | null;
}

interface KeyDatabaseOptions {
  /** True if the file was lost: see KeyStore. */
  readonly wereLost?: boolean;
}

export async function openKeyDatabase(dataDir: string, options?: KeyDatabaseOptions): Promise<KeyDatabase> {
  return new KeyDatabase(dataDir, options);
}

/**
 * Keys and sessions in a file of their own, so that the command line can change them while the server runs. A look-up reads the file's
 * data version, which shows whether another process has written; only then is the cache dropped.
 */
export class KeyDatabase implements KeyStore {
  readonly wereLost: boolean;
  readonly sessions: SessionTable;
  readonly #db: DatabaseSync;
  readonly #identity: SqliteIdentity;
  readonly #version: StatementSync;
  readonly #select: StatementSync;
  readonly #selectPrevious: StatementSync;
  readonly #cache = new Map<string, ApiKey>();
  #seenVersion = -1;
  #isChecked = false;

  constructor(dataDir: string, { wereLost = false }: KeyDatabaseOptions = {}) {
    this.wereLost = wereLost;
    this.#db = openChecked(keysFile(dataDir), KEYS_MIGRATIONS);
    this.#identity = new SqliteIdentity(keysFile(dataDir));
    this.#version = this.#db.prepare("PRAGMA data_version");
    this.#select = this.#db.prepare("SELECT * FROM keys WHERE id = ?");
    this.#selectPrevious = this.#db.prepare(
      "SELECT hash, until FROM previous_secrets WHERE key_id = ? ORDER BY until, hash",
    );
    this.sessions = new SessionTable({
      db: this.#db,
      inTransaction: (work) => this.#inTransaction(work),
      dropStaleCache: () => this.#dropStaleCache(),
    });
  }

  async find(id: string): Promise<ApiKey | undefined> {
    this.#dropStaleCache();
    const cached = this.#cache.get(id);
    if (cached) return cached;
    const row = this.#select.get(id) as KeyRow | undefined;
    if (!row) return undefined;
    const key = this.#toKey(row);
    this.#cache.set(id, key);
    return key;
  }

  /** Requests in one turn of the event loop share one check: any change that they can know of was written before it. */
  #dropStaleCache(): void {
    if (this.#isChecked) return;
    this.#isChecked = true;
    setImmediate(() => {
      this.#isChecked = false;
    });
    const version = (this.#version.get() as { data_version: number }).data_version;
    if (version === this.#seenVersion) return;
    this.#cache.clear();
    this.sessions.forget();
    this.#seenVersion = version;
  }

  async list(): Promise<ApiKey[]> {
    const rows = this.#db.prepare("SELECT * FROM keys ORDER BY id").all() as unknown as KeyRow[];
    return rows.map((row) => this.#toKey(row));
  }

  async put(key: ApiKey): Promise<void> {
    writing(() => this.#inTransaction(() => this.#write(key)));
    this.#cache.delete(key.id);
  }

  async change(id: string, alter: (key: ApiKey) => ApiKey): Promise<ApiKey | undefined> {
    const changed = writing(() =>
      this.#inTransaction(() => {
        const row = this.#select.get(id) as KeyRow | undefined;
        const key = row && alter(this.#toKey(row));
        if (key) this.#write(key);
        return key;
      }),
    );
    this.#cache.delete(id);
    return changed;
  }

  async remove(ids: readonly string[]): Promise<readonly string[]> {
    if (ids.length === 0) return ids;
    writing(() =>
      this.#inTransaction(() => {
        for (const table of [
          "previous_secrets WHERE key_id",
          "usage WHERE key_id",
          "sessions WHERE key_id",
          "keys WHERE id",
        ]) {
          const remove = this.#db.prepare(`DELETE FROM ${table} = ?`);
          for (const id of ids) remove.run(id);
        }
      }),
    );
    for (const id of ids) this.#cache.delete(id);
    this.sessions.forget();
    return ids;
  }

  #write(key: ApiKey): void {
    const { id, name, scopes, plan, createdAt, expiresAt, revokedAt, secretHash } = key;
    this.#db
      .prepare(
        `INSERT OR REPLACE INTO keys(id, name, scopes, plan, created_at, expires_at, revoked_at, secret_hash)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(id, name, scopes.join(" "), plan, createdAt, expiresAt, revokedAt, secretHash);
    this.#db.prepare("DELETE FROM previous_secrets WHERE key_id = ?").run(id);
    const insert = this.#db.prepare("INSERT INTO previous_secrets(key_id, hash, until) VALUES (?, ?, ?)");
    for (const { hash, until } of key.previous) insert.run(id, hash, until);
  }

  /** Runs the work in one transaction. */
  #inTransaction<Value>(work: () => Value): Value {
    return this.#identity.during(() => {
      this.#db.exec("BEGIN IMMEDIATE");
      try {
        const value = work();
        this.#db.exec("COMMIT");
        return value;
      } catch (error) {
        if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
        throw error;
      }
    });
  }

  /** The file, if it was removed or replaced since it was opened. */
  get goneFiles(): GoneFile[] {
    return this.#identity.faults;
  }

  #toKey(row: KeyRow): ApiKey {
    const previous = this.#selectPrevious.all(row.id) as unknown as { hash: Uint8Array; until: number }[];
    if (row.previous_hash !== null && row.previous_until !== null) {
      previous.push({ hash: row.previous_hash, until: row.previous_until });
    }
    return toKey(row, previous);
  }

  async usage(): Promise<KeyUsage[]> {
    const rows = this.#db
      .prepare(
        `SELECT key_id AS keyId, last_used_at AS lastUsedAt, day, day_count AS dayCount,
           minute_ends_at AS minuteEndsAt, minute_count AS minuteCount FROM usage`,
      )
      .all() as unknown as KeyUsage[];
    return rows.map((row) => ({ ...row }));
  }

  async saveUsage(usage: readonly KeyUsage[]): Promise<void> {
    // Counts survive a killed process without an fsync every second.
    this.#db.exec("PRAGMA synchronous = NORMAL");
    try {
      this.#inTransaction(() => {
        const upsert = this.#db.prepare(
          `INSERT OR REPLACE INTO usage(key_id, last_used_at, day, day_count, minute_ends_at, minute_count)
           VALUES (?, ?, ?, ?, ?, ?)`,
        );
        for (const { keyId, lastUsedAt, day, dayCount, minuteEndsAt, minuteCount } of usage) {
          upsert.run(keyId, lastUsedAt, day, dayCount, minuteEndsAt, minuteCount);
        }
      });
    } finally {
      this.#db.exec("PRAGMA synchronous = FULL");
    }
  }

  close(): void {
    this.#db.close();
  }
}

function toKey(row: KeyRow, previous: readonly PreviousSecret[]): ApiKey {
  return {
    id: row.id,
    name: row.name,
    scopes: knownScopes(row.scopes.split(" ")),
    plan: knownPlan(row.plan),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    secretHash: row.secret_hash,
    previous: previous.map(({ hash, until }) => ({ hash, until })),
  };
}
