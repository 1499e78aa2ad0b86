import type { DatabaseSync } from "node:sqlite";
import { NewerFile } from "../../lib/newer-file.ts";

// Every SQLite file has its schema version in `user_version`. Each kind of file has a list of migrations: the first turns a
// new file, or one without a version (0), into version 1, the second into version 2, and so on. A released migration is never
// changed; new ones are appended.

type Migration = string | ((db: DatabaseSync) => void);
export type Migrations = readonly Migration[];

/** Migrates the file to the newest version in one transaction, so that a crash leaves it unchanged. */
export function migrate(db: DatabaseSync, path: string, migrations: Migrations): void {
  if (versionOf(db, path, migrations) === migrations.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have migrated it while this one waited for the file.
    const version = versionOf(db, path, migrations);
    for (const step of migrations.slice(version)) {
      if (typeof step === "string") db.exec(step);
      else step(db);
    }
    db.exec(`PRAGMA user_version = ${migrations.length}; COMMIT`);
  } catch (error) {
    // A full disk may have rolled back already.
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function versionOf(db: DatabaseSync, path: string, { length: known }: Migrations): number {
  const { user_version: found } = db.prepare("PRAGMA user_version").get() as { user_version: number };
  if (found > known) throw new NewerFile(path, found, known);
  return found;
}
