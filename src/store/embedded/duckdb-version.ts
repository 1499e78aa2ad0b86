import type { DuckDBConnection } from "@duckdb/node-api";

// Which version a DuckDB file's schema has: a table of one number, where SQLite has `user_version`. A file without the table
// is from before there were versions, or new: 0.

const TABLE = "schema_version";

/** `database` is what the file is attached as. */
export async function readDuckVersion(connection: DuckDBConnection, database: string): Promise<number> {
  const rowsOf = async (sql: string) => (await connection.runAndReadAll(sql)).getRows();
  const tables = await rowsOf(
    `SELECT 1 FROM duckdb_tables() WHERE database_name = '${database}' AND table_name = '${TABLE}'`,
  );
  if (tables.length === 0) return 0;
  const [row] = await rowsOf(`SELECT max(version)::INTEGER FROM ${database}.${TABLE}`);
  return Number(row?.[0] ?? 0);
}

export async function writeDuckVersion(connection: DuckDBConnection, database: string, version: number): Promise<void> {
  await connection.run(`CREATE OR REPLACE TABLE ${database}.${TABLE} AS SELECT ${version}::INTEGER AS version`);
}
