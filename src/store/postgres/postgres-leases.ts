import { LeaseLost, type Fence, type Lease, type LeaseState, type LeaseStore } from "../ports/lease-store.ts";
import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";
import type { PostgresListener } from "./postgres-listener.ts";

// A released lease keeps its row, without a holder, so that epochs never repeat. Only the clock of the database counts: nodes
// may disagree about the time.

export const LEASES_SCHEMA = `
CREATE TABLE leases(name text COLLATE "C" PRIMARY KEY, holder text, epoch int8 NOT NULL, ttl_ms int8 NOT NULL,
  expires_at timestamptz NOT NULL);
`;

export const LEASE_STATUS_SCHEMA = "ALTER TABLE leases ADD COLUMN status text;";

/** The time to live in milliseconds is the third parameter. */
const EXPIRY = "clock_timestamp() + $3 * interval '1 millisecond'";
/**
 * A lease that expires later than its time to live allows was written by another clock, that of a primary whose standby was
 * promoted. Waiting for it could take hours.
 */
const IS_OVER = `leases.expires_at <= clock_timestamp()
  OR leases.expires_at > clock_timestamp() + leases.ttl_ms * interval '1 millisecond'`;

export function postgresLeases(database: PostgresDatabase, listener: PostgresListener): LeaseStore {
  return {
    acquire: async (name, holder, ttlMs): Promise<Lease | undefined> => {
      const [row] = await database.query<{ epoch: number }>(
        `INSERT INTO leases(name, holder, ttl_ms, epoch, expires_at) VALUES ($1, $2, $3::int8, 1, ${EXPIRY})
         ON CONFLICT (name) DO UPDATE SET holder = $2, ttl_ms = $3, epoch = leases.epoch + 1, expires_at = ${EXPIRY}, status = NULL
         WHERE leases.holder IS NULL OR leases.holder = $2 OR ${IS_OVER}
         RETURNING epoch`,
        [name, holder, ttlMs],
      );
      return row && { name, holder, epoch: row.epoch };
    },
    renew: async ({ name, epoch }, ttlMs, status = null) => {
      const rows = await database.run(
        `UPDATE leases SET ttl_ms = $3::int8, expires_at = ${EXPIRY}, status = $4 WHERE name = $1 AND epoch = $2 AND holder IS NOT NULL`,
        [name, epoch, ttlMs, status],
      );
      return rows > 0;
    },
    release: async ({ name, epoch }) => {
      await database.query(
        `WITH released AS (UPDATE leases SET holder = NULL WHERE name = $1 AND epoch = $2 AND holder IS NOT NULL RETURNING name)
         SELECT pg_notify('tocsin_leases', name) FROM released`,
        [name, epoch],
      );
    },
    current: async (name): Promise<LeaseState | undefined> => {
      const [row] = await database.query<LeaseState>(
        `SELECT name, holder, epoch, status, CASE WHEN ${IS_OVER} THEN 0
           ELSE ceil(extract(epoch FROM expires_at - clock_timestamp()) * 1000) END::float8 AS "expiresInMs"
         FROM leases WHERE name = $1 AND holder IS NOT NULL`,
        [name],
      );
      return row;
    },
    check: (fence) => database.transact((transaction) => requireEpoch(transaction, fence)),
    onRelease: (handler) => listener.on("tocsin_leases", handler),
  };
}

/**
 * Rejects with LeaseLost unless the epoch is the current one. Nobody can acquire the lease until the transaction has ended, so
 * whatever it commits was written under the lease.
 */
export async function requireEpoch(transaction: PostgresQueries, fence: Fence): Promise<void> {
  const rows = await transaction.query(
    "SELECT 1 FROM leases WHERE name = $1 AND epoch = $2 AND holder IS NOT NULL FOR SHARE",
    [fence.name, fence.epoch],
  );
  if (rows.length === 0) throw new LeaseLost(fence);
}
