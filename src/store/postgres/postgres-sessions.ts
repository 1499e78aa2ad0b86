import type { Session } from "../../model/session.ts";
import type { SessionLimits, SessionStore } from "../ports/session-store.ts";
import { ALL, NoticedCache } from "./noticed-cache.ts";
import type { PostgresDatabase } from "./postgres-database.ts";
import type { PostgresListener } from "./postgres-listener.ts";

export const POSTGRES_SESSIONS_SCHEMA = `
CREATE TABLE sessions(id_hash bytea PRIMARY KEY, key_id text COLLATE "C" NOT NULL, secret_hash bytea NOT NULL,
  created_at int8 NOT NULL, last_used_at int8 NOT NULL);
CREATE INDEX sessions_of_key ON sessions(key_id, created_at);
CREATE INDEX sessions_by_use ON sessions(last_used_at);
`;

const CACHED_MAX = 10_000;
/** Held while a session is added: two at once would each count without the other. */
const ADD_LOCK = 7_846_018;

export class PostgresSessions implements SessionStore {
  readonly #database: PostgresDatabase;
  readonly #cache: NoticedCache<Session>;

  constructor(database: PostgresDatabase, listener: PostgresListener) {
    this.#database = database;
    this.#cache = new NoticedCache(listener, "tocsin_sessions", CACHED_MAX);
  }

  /** Empties the cache. */
  forget(): void {
    this.#cache.forget(ALL);
  }

  find(idHash: Uint8Array): Promise<Session | undefined> {
    return this.#cache.find(nameOf(idHash), async () => {
      const [session] = await this.#database.query<Session>(
        `SELECT id_hash AS "idHash", key_id AS "keyId", secret_hash AS "secretHash", created_at AS "createdAt",
           last_used_at AS "lastUsedAt" FROM sessions WHERE id_hash = $1`,
        [idHash],
      );
      return session;
    });
  }

  async add(session: Session, { perKeyMax, max }: SessionLimits): Promise<void> {
    const { idHash, keyId, secretHash, createdAt, lastUsedAt } = session;
    await this.#database.transact(async (transaction) => {
      await transaction.query("SELECT pg_advisory_xact_lock($1)", [ADD_LOCK]);
      await transaction.run(
        "INSERT INTO sessions(id_hash, key_id, secret_hash, created_at, last_used_at) VALUES ($1, $2, $3, $4, $5)",
        [idHash, keyId, secretHash, createdAt, lastUsedAt],
      );
      await transaction.run(
        `DELETE FROM sessions WHERE id_hash IN (SELECT id_hash FROM sessions WHERE key_id = $1
           ORDER BY created_at DESC, (id_hash = $2) DESC OFFSET $3)`,
        [keyId, idHash, perKeyMax],
      );
      await transaction.run(
        `DELETE FROM sessions WHERE id_hash IN (SELECT id_hash FROM sessions
           ORDER BY last_used_at DESC, (id_hash = $1) DESC OFFSET $2)`,
        [idHash, max],
      );
      await transaction.query("SELECT pg_notify('tocsin_sessions', $1)", [ALL]);
    });
    this.forget();
  }

  async touch(idHash: Uint8Array, at: number): Promise<void> {
    await this.#database.transact(
      (transaction) =>
        transaction.query(
          `WITH changed AS (UPDATE sessions SET last_used_at = $2 WHERE id_hash = $1 RETURNING 1)
           SELECT pg_notify('tocsin_sessions', $3) FROM changed`,
          [idHash, at, nameOf(idHash)],
        ),
      { isDurable: false },
    );
    this.#cache.forget(nameOf(idHash));
  }

  async remove(idHash: Uint8Array): Promise<boolean> {
    const removed = await this.#database.query(
      `WITH removed AS (DELETE FROM sessions WHERE id_hash = $1 RETURNING 1)
       SELECT pg_notify('tocsin_sessions', $2) FROM removed`,
      [idHash, nameOf(idHash)],
    );
    this.#cache.forget(nameOf(idHash));
    return removed.length > 0;
  }

  async removeBefore({ usedAt, createdAt }: { usedAt: number; createdAt: number }): Promise<number> {
    const removed = await this.#database.transact(async (transaction) => {
      const count = await transaction.run("DELETE FROM sessions WHERE last_used_at < $1 OR created_at < $2", [
        usedAt,
        createdAt,
      ]);
      if (count > 0) await transaction.query("SELECT pg_notify('tocsin_sessions', $1)", [ALL]);
      return count;
    });
    this.forget();
    return removed;
  }
}

function nameOf(idHash: Uint8Array): string {
  return Buffer.from(idHash.buffer, idHash.byteOffset, idHash.length).toString("hex");
}
