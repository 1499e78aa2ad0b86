import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { USAGE_SKEW_MS, type KeyUsage, type SharedUsage, type TakenRequests } from "../ports/key-store.ts";
import type { PostgresDatabase } from "./postgres-database.ts";
import type { PostgresListener } from "./postgres-listener.ts";

// Counts of requests that several nodes share. Each call is one statement, so the row's lock makes it exact. Nothing waits for the
// disk: a power failure may cost the last counts.

const MINUTE_MS = 60_000;
const COLUMNS = `key_id AS "keyId", last_used_at AS "lastUsedAt", day, day_count AS "dayCount", minute_ends_at AS "minuteEndsAt",
  minute_count AS "minuteCount"`;
/** Evaluated in the statement's transaction, whose commit it concerns. */
const WITHOUT_DISK = "(SELECT set_config('synchronous_commit', 'off', true)) AS without_disk";

/** $2 is the time, $3 the number of requests, $4 and $5 the limits, $6 the day. */
const IS_OVER = `(used.minute_ends_at <= $2 OR used.minute_ends_at - $2 > ${MINUTE_MS + USAGE_SKEW_MS})`;
const MINUTE_COUNT = `(CASE WHEN ${IS_OVER} THEN 0 ELSE used.minute_count END)`;
/** Around midnight some nodes count for the next day already. */
const DAY = `(CASE WHEN used.day = $6 + ${DAY_MS} THEN used.day ELSE $6 END)`;
const DAY_COUNT = `(CASE WHEN used.day = ${DAY} THEN used.day_count ELSE 0 END)`;
const GRANTED = `greatest(0, least($3, $4 - ${MINUTE_COUNT}, $5 - ${DAY_COUNT}))`;
const TAKE = `
INSERT INTO usage AS used (key_id, last_used_at, day, day_count, minute_ends_at, minute_count, granted)
SELECT $1, $2::int8, $6::int8, given.granted, $2 + ${MINUTE_MS}, given.granted, given.granted
FROM (SELECT least($3::int8, $4::int8, $5::int8) AS granted) AS given, ${WITHOUT_DISK}
ON CONFLICT (key_id) DO UPDATE SET
  minute_ends_at = CASE WHEN ${IS_OVER} THEN $2 + ${MINUTE_MS} ELSE used.minute_ends_at END,
  minute_count = ${MINUTE_COUNT} + ${GRANTED},
  day = ${DAY},
  day_count = ${DAY_COUNT} + ${GRANTED},
  last_used_at = CASE WHEN ${GRANTED} > 0 THEN greatest(used.last_used_at, $2) ELSE used.last_used_at END,
  granted = ${GRANTED}
RETURNING ${COLUMNS}, granted`;

const GIVEN =
  "unnest($1::text[], $2::int8[], $3::int8[], $4::int8[], $5::int8[]) AS given(id, used_at, day, minute, unused)";
/** A key that was only used while limits are not enforced has no row yet; one that was removed gets none. */
const GIVE_BACK = `
WITH changed AS (UPDATE usage AS used SET last_used_at = greatest(used.last_used_at, given.used_at),
    minute_count = used.minute_count - CASE WHEN used.minute_ends_at = given.minute THEN given.unused ELSE 0 END,
    day_count = used.day_count - CASE WHEN used.day = given.day THEN given.unused ELSE 0 END
  FROM ${GIVEN}, ${WITHOUT_DISK} WHERE used.key_id = given.id RETURNING key_id)
INSERT INTO usage(key_id, last_used_at, day, day_count, minute_ends_at, minute_count)
SELECT given.id, used_at, given.day, 0, minute, 0 FROM ${GIVEN} JOIN keys ON keys.id = given.id
WHERE given.id NOT IN (SELECT key_id FROM changed)
ON CONFLICT DO NOTHING`;

export function sharedUsage(database: PostgresDatabase, listener: PostgresListener): SharedUsage {
  return {
    get clockOffsetMs() {
      return listener.clockOffsetMs;
    },
    find: async (keyId) => {
      const [row] = await database.query<KeyUsage>(`SELECT ${COLUMNS} FROM usage WHERE key_id = $1`, [keyId]);
      return row;
    },
    take: async (keyId, wanted, { perMinute, perDay }, now) => {
      const limits = [perMinute, perDay ?? Number.MAX_SAFE_INTEGER];
      const [row] = await database.query<TakenRequests>(TAKE, [keyId, now, wanted, ...limits, startOfDay(now)]);
      return row!;
    },
    giveBack: async (unused) => {
      if (unused.length === 0) return;
      await database.run(GIVE_BACK, [
        unused.map(({ keyId }) => keyId),
        unused.map(({ lastUsedAt }) => lastUsedAt),
        unused.map(({ day }) => day),
        unused.map(({ minuteEndsAt }) => minuteEndsAt),
        unused.map(({ count }) => count),
      ]);
    },
  };
}
