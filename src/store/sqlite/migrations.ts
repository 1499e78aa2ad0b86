import type { DatabaseSync } from "node:sqlite";
import { NewerFile } from "../../lib/newer-file.ts";

// Every SQLite file carries the version of its schema in `user_version`. Each kind of file has a list of migrations: the
// first one makes version 1 out of a new file, or out of one from before there were versions (0), the second one makes
// version 2, and so on. A migration that has been released is never changed; what comes next is appended to the list.

type Migration = string | ((db: DatabaseSync) => void);
export type Migrations = readonly Migration[];

/** Brings the file to the newest version: in one transaction, so that a crash leaves it as it was. */
export function migrate(db: DatabaseSync, path: string, migrations: Migrations): void {
  if (versionOf(db, path, migrations) === migrations.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have done it while this one waited for the file.
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
