import type { PostgresDatabase, PostgresQueries } from "./postgres-database.ts";

// The schema has its version in the table `schema_version`. A list of migrations leads there: the first turns an empty
// database into version 1, the second into version 2, and so on. A released migration is never changed; new ones are
// appended.

export type PostgresMigration = string | ((transaction: PostgresQueries) => Promise<void>);

/** Any number, the same in all versions: nodes that start at once migrate one after the other. */
const MIGRATION_LOCK = 7_846_017;
/** Large tables take time. */
const MIGRATION_MS_MAX = 3_600_000;
const SERVER_VERSION_MIN = 140_000;

/** A newer version has changed the database. The message is for the operator. */
export class NewerSchema extends Error {
  constructor(found: number, known: number) {
    super(
      `The PostgreSQL database was changed by a newer version of Tocsin: its schema version is ${found}, and this version knows up to ${known}.\n` +
        "Nothing was changed. Start the newer version, or restore the backup that was made before the upgrade, " +
        "or name another database in postgres.url.",
    );
    this.name = "NewerSchema";
  }
}

/** The server or the database is not fit for the service. The message is for the operator. */
class UnfitDatabase extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UnfitDatabase";
  }
}

/** Brings the schema to the newest version in one transaction, so that a crash leaves it unchanged. */
export async function migratePostgres(
  database: PostgresDatabase,
  migrations: readonly PostgresMigration[],
): Promise<void> {
  await requireFit(database);
  if ((await versionOf(database, migrations.length)) === migrations.length) return;
  await database.transact(
    async (transaction) => {
      await transaction.query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
      // Another node may have migrated it while this one waited.
      const version = await versionOf(transaction, migrations.length);
      for (const step of migrations.slice(version)) {
        if (typeof step === "string") await transaction.query(step);
        else await step(transaction);
      }
      await transaction.run(
        "CREATE TABLE IF NOT EXISTS schema_version(only_row bool PRIMARY KEY CHECK (only_row), version int NOT NULL)",
      );
      await transaction.run(
        "INSERT INTO schema_version(only_row, version) VALUES (true, $1) ON CONFLICT (only_row) DO UPDATE SET version = $1",
        [migrations.length],
      );
    },
    { statementMs: MIGRATION_MS_MAX },
  );
}

async function versionOf(queries: PostgresQueries, known: number): Promise<number> {
  // to_regclass would answer from the connection's cache, which may predate the lock.
  const [table] = await queries.query<{ exists: boolean }>(
    `SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables
       WHERE schemaname = current_schema() AND tablename = 'schema_version') AS exists`,
  );
  if (!table?.exists) return 0;
  const [row] = await queries.query<{ version: number }>("SELECT version FROM schema_version");
  const found = row?.version ?? 0;
  if (found > known) throw new NewerSchema(found, known);
  return found;
}

async function requireFit(queries: PostgresQueries): Promise<void> {
  const [server] = await queries.query<{ version: number; name: string; encoding: string }>(
    `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS name,
       current_setting('server_encoding') AS encoding`,
  );
  const { version, name, encoding } = server!;
  if (version < SERVER_VERSION_MIN) {
    throw new UnfitDatabase(
      `PostgreSQL ${name} is too old: version ${SERVER_VERSION_MIN / 10_000} or newer is needed.`,
    );
  }
  if (encoding !== "UTF8") {
    throw new UnfitDatabase(
      `The PostgreSQL database has the encoding ${encoding}: create it with ENCODING 'UTF8', or name another in postgres.url.`,
    );
  }
}
