import { DatabaseSync } from "node:sqlite";

/** A small file of tables: several processes may have it open at once. */
export function openSmall(path: string, schema: string): DatabaseSync {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000;");
  db.exec(schema);
  return db;
}
