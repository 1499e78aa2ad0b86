import { knownPlan, knownScopes, type ApiKey } from "../../model/key.ts";
import type { KeyStore, KeyUsage, SharedUsage } from "../ports/key-store.ts";
import { ALL, NoticedCache } from "./noticed-cache.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";
import type { PostgresListener } from "./postgres-listener.ts";
import { sharedUsage } from "./postgres-usage.ts";

export const KEYS_SCHEMA = `
CREATE TABLE keys(id text COLLATE "C" PRIMARY KEY, name text NOT NULL, scopes text NOT NULL, plan text NOT NULL,
  created_at int8 NOT NULL, expires_at int8, revoked_at int8, secret_hash bytea NOT NULL);
CREATE TABLE previous_secrets(key_id text COLLATE "C" NOT NULL REFERENCES keys ON DELETE CASCADE, hash bytea NOT NULL,
  until int8 NOT NULL, PRIMARY KEY(key_id, hash));
CREATE TABLE usage(key_id text COLLATE "C" PRIMARY KEY, last_used_at int8 NOT NULL, day int8 NOT NULL, day_count int8 NOT NULL,
  minute_ends_at int8 NOT NULL, minute_count int8 NOT NULL);
`;

/** What the last `take` of the key was granted, for its RETURNING. */
export const KEY_GRANTS_SCHEMA = "ALTER TABLE usage ADD COLUMN granted int8 NOT NULL DEFAULT 0;";

const CACHED_MAX = 10_000;

interface StoredKeyRow {
  readonly id: string;
  readonly name: string;
  readonly scopes: string;
  readonly plan: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly secret_hash: Uint8Array;
  /** Of the previous secrets. */
  readonly hashes: readonly string[];
  readonly untils: readonly string[];
}

export class PostgresKeys implements KeyStore {
  readonly wereLost = false;
  readonly #database: PostgresDatabase;
  readonly #cache: NoticedCache<ApiKey>;
  /** Sessions end with their key. */
  readonly #forgetSessions: () => void;
  readonly shared: SharedUsage;

  constructor(database: PostgresDatabase, listener: PostgresListener, forgetSessions: () => void) {
    this.#database = database;
    this.#cache = new NoticedCache(listener, "tocsin_keys", CACHED_MAX);
    this.#forgetSessions = forgetSessions;
    this.shared = sharedUsage(database, listener);
  }

  find(id: string): Promise<ApiKey | undefined> {
    return this.#cache.find(id, async () => {
      const [key] = await readKeys(this.#database, "WHERE id = $1", [id]);
      return key;
    });
  }

  list(): Promise<ApiKey[]> {
    return readKeys(this.#database);
  }

  async put(key: ApiKey): Promise<void> {
    await this.#database.transact((transaction) => writeKey(transaction, key));
    this.#cache.forget(key.id);
  }

  async change(id: string, alter: (key: ApiKey) => ApiKey): Promise<ApiKey | undefined> {
    const changed = await this.#database.transact(async (transaction) => {
      const [key] = await readKeys(transaction, "WHERE id = $1 FOR UPDATE", [id]);
      if (!key) return undefined;
      const altered = alter(key);
      await writeKey(transaction, altered);
      return altered;
    });
    this.#cache.forget(id);
    return changed;
  }

  async remove(ids: readonly string[]): Promise<readonly string[]> {
    if (ids.length === 0) return ids;
    await this.#database.transact(async (transaction) => {
      await transaction.run("DELETE FROM sessions WHERE key_id = ANY($1)", [ids]);
      await transaction.run("DELETE FROM usage WHERE key_id = ANY($1)", [ids]);
      await transaction.run("DELETE FROM keys WHERE id = ANY($1)", [ids]);
      await transaction.query("SELECT pg_notify('tocsin_keys', $1), pg_notify('tocsin_sessions', $1)", [ALL]);
    });
    this.#cache.forget(ALL);
    this.#forgetSessions();
    return ids;
  }

  async usage(): Promise<KeyUsage[]> {
    return this.#database.query<KeyUsage>(
      `SELECT key_id AS "keyId", last_used_at AS "lastUsedAt", day, day_count AS "dayCount",
         minute_ends_at AS "minuteEndsAt", minute_count AS "minuteCount" FROM usage ORDER BY key_id`,
    );
  }

  async saveUsage(usage: readonly KeyUsage[]): Promise<void> {
    if (usage.length === 0) return;
    const column = (read: (used: KeyUsage) => number) => usage.map(read);
    await this.#database.transact(
      (transaction) =>
        transaction.run(
          `INSERT INTO usage(key_id, last_used_at, day, day_count, minute_ends_at, minute_count)
           SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[]) AS given(id, a, b, c, d, e)
           ORDER BY id
           ON CONFLICT (key_id) DO UPDATE SET last_used_at = excluded.last_used_at, day = excluded.day,
             day_count = excluded.day_count, minute_ends_at = excluded.minute_ends_at, minute_count = excluded.minute_count`,
          [
            usage.map(({ keyId }) => keyId),
            column(({ lastUsedAt }) => lastUsedAt),
            column(({ day }) => day),
            column(({ dayCount }) => dayCount),
            column(({ minuteEndsAt }) => minuteEndsAt),
            column(({ minuteCount }) => minuteCount),
          ],
        ),
      // Written every second: a power failure may cost the last counts.
      { isDurable: false },
    );
  }
}

/** One statement, so that a key and its previous secrets are of one moment. */
async function readKeys(queries: PostgresQueries, where = "", values: readonly string[] = []): Promise<ApiKey[]> {
  const previous = (column: string) =>
    `ARRAY(SELECT ${column} FROM previous_secrets WHERE key_id = keys.id
       ORDER BY previous_secrets.until, previous_secrets.hash)`;
  const rows = await queries.query<StoredKeyRow>(
    `SELECT *, ${previous("encode(hash, 'hex')")} AS hashes, ${previous("until::text")} AS untils
     FROM keys ${where || "ORDER BY id"}`,
    values,
  );
  return rows.map(toKey);
}

async function writeKey(transaction: PostgresQueries, key: ApiKey): Promise<void> {
  const { id, name, scopes, plan, createdAt, expiresAt, revokedAt, secretHash, previous } = key;
  await transaction.run(
    `INSERT INTO keys(id, name, scopes, plan, created_at, expires_at, revoked_at, secret_hash)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (id) DO UPDATE SET name = $2, scopes = $3, plan = $4, created_at = $5, expires_at = $6, revoked_at = $7,
       secret_hash = $8`,
    [id, name, scopes.join(" "), plan, createdAt, expiresAt, revokedAt, secretHash],
  );
  await transaction.run("DELETE FROM previous_secrets WHERE key_id = $1", [id]);
  for (const { hash, until } of previous) {
    await transaction.run("INSERT INTO previous_secrets(key_id, hash, until) VALUES ($1, $2, $3)", [id, hash, until]);
  }
  await transaction.query("SELECT pg_notify('tocsin_keys', $1)", [id]);
}

function toKey(row: StoredKeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    scopes: knownScopes(row.scopes.split(" ")),
    plan: knownPlan(row.plan),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    secretHash: row.secret_hash,
    previous: row.hashes.map((hash, i) => ({
      hash: new Uint8Array(Buffer.from(hash, "hex")),
      until: Number(row.untils[i]),
    })),
  };
}
