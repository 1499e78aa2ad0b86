import type { DuckDBConnection } from "@duckdb/node-api";

// The schema version of a DuckDB file: a table with one number, as `user_version` in SQLite. A file without the table is new,
// or older than versions: 0.

const TABLE = "schema_version";

/** `database` is the name under which the file is attached. */
export async function readSchemaVersion(connection: DuckDBConnection, database: string): Promise<number> {
  const rowsOf = async (sql: string) => (await connection.runAndReadAll(sql)).getRows();
  const tables = await rowsOf(
    `SELECT 1 FROM duckdb_tables() WHERE database_name = '${database}' AND table_name = '${TABLE}'`,
  );
  if (tables.length === 0) return 0;
  const [row] = await rowsOf(`SELECT max(version)::INTEGER FROM ${database}.${TABLE}`);
  return Number(row?.[0] ?? 0);
}

export async function writeSchemaVersion(
  connection: DuckDBConnection,
  database: string,
  version: number,
): Promise<void> {
  await connection.run(`CREATE OR REPLACE TABLE ${database}.${TABLE} AS SELECT ${version}::INTEGER AS version`);
}
