import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Session } from "../../model/session.ts";
import type { SessionLimits, SessionStore } from "../ports/session-store.ts";
import { writing } from "../files/store-failure.ts";

export const SESSIONS_SCHEMA = `
CREATE TABLE sessions(id_hash BLOB PRIMARY KEY, key_id TEXT NOT NULL, secret_hash BLOB NOT NULL, created_at INTEGER NOT NULL, last_used_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_of_key ON sessions(key_id, created_at);
`;

interface SessionRow {
  id_hash: Uint8Array;
  key_id: string;
  secret_hash: Uint8Array;
  created_at: number;
  last_used_at: number;
}

export interface SessionTableOptions {
  readonly db: DatabaseSync;
  readonly inTransaction: <Value>(work: () => Value) => Value;
  /** Calls `forget` if another process has changed the file. */
  readonly dropStaleCache: () => void;
}

/** The sessions in the file of the keys. */
export class SessionTable implements SessionStore {
  readonly #db: DatabaseSync;
  readonly #inTransaction: SessionTableOptions["inTransaction"];
  readonly #dropStaleCache: () => void;
  readonly #select: StatementSync;
  readonly #cache = new Map<string, Session>();

  constructor({ db, inTransaction, dropStaleCache }: SessionTableOptions) {
    this.#db = db;
    this.#inTransaction = inTransaction;
    this.#dropStaleCache = dropStaleCache;
    this.#select = db.prepare("SELECT * FROM sessions WHERE id_hash = ?");
  }

  /** Empties the cache. */
  forget(): void {
    this.#cache.clear();
  }

  async find(idHash: Uint8Array): Promise<Session | undefined> {
    this.#dropStaleCache();
    const name = nameOf(idHash);
    const cached = this.#cache.get(name);
    if (cached) return cached;
    const row = this.#select.get(idHash) as SessionRow | undefined;
    if (!row) return undefined;
    const session = toSession(row);
    this.#cache.set(name, session);
    return session;
  }

  async add(session: Session, { perKeyMax, max }: SessionLimits): Promise<void> {
    const { idHash, keyId, secretHash, createdAt, lastUsedAt } = session;
    writing(() =>
      this.#inTransaction(() => {
        this.#db
          .prepare(
            "INSERT INTO sessions(id_hash, key_id, secret_hash, created_at, last_used_at) VALUES (?, ?, ?, ?, ?)",
          )
          .run(idHash, keyId, secretHash, createdAt, lastUsedAt);
        this.#db
          .prepare(
            `DELETE FROM sessions WHERE id_hash IN (SELECT id_hash FROM sessions WHERE key_id = ?1
               ORDER BY created_at DESC, id_hash = ?2 DESC LIMIT -1 OFFSET ?3)`,
          )
          .run(keyId, idHash, perKeyMax);
        this.#db
          .prepare(
            `DELETE FROM sessions WHERE id_hash IN (SELECT id_hash FROM sessions
               ORDER BY last_used_at DESC, id_hash = ?1 DESC LIMIT -1 OFFSET ?2)`,
          )
          .run(idHash, max);
      }),
    );
    this.forget();
  }

  async touch(idHash: Uint8Array, at: number): Promise<void> {
    // Uses survive a killed process without an fsync for each.
    this.#db.exec("PRAGMA synchronous = NORMAL");
    try {
      writing(() =>
        this.#inTransaction(() =>
          this.#db.prepare("UPDATE sessions SET last_used_at = ? WHERE id_hash = ?").run(at, idHash),
        ),
      );
    } finally {
      this.#db.exec("PRAGMA synchronous = FULL");
    }
    this.#cache.delete(nameOf(idHash));
  }

  async remove(idHash: Uint8Array): Promise<boolean> {
    const { changes } = writing(() =>
      this.#inTransaction(() => this.#db.prepare("DELETE FROM sessions WHERE id_hash = ?").run(idHash)),
    );
    this.#cache.delete(nameOf(idHash));
    return changes > 0;
  }

  async removeBefore({ usedAt, createdAt }: { usedAt: number; createdAt: number }): Promise<number> {
    const { changes } = writing(() =>
      this.#inTransaction(() =>
        this.#db.prepare("DELETE FROM sessions WHERE last_used_at < ? OR created_at < ?").run(usedAt, createdAt),
      ),
    );
    this.forget();
    return Number(changes);
  }
}

function nameOf(idHash: Uint8Array): string {
  return Buffer.from(idHash.buffer, idHash.byteOffset, idHash.length).toString("latin1");
}

function toSession(row: SessionRow): Session {
  return {
    idHash: row.id_hash,
    keyId: row.key_id,
    secretHash: row.secret_hash,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
  };
}
