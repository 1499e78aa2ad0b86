import { DatabaseSync } from "node:sqlite";
import { DamagedFile, onFile } from "../files/store-failure.ts";
import { migrate, type Migrations } from "./migrations.ts";

/** A small file of tables: several processes may have it open at once. */
export function openSmall(path: string, migrations: Migrations, pragmas = ""): DatabaseSync {
  return onFile(path, () => {
    const db = new DatabaseSync(path);
    try {
      // The patience comes first: the write-ahead mode needs the file for itself for a moment.
      db.exec("PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
      db.exec(pragmas);
      migrate(db, path, migrations);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

/** For a file so small that all of it can be looked at: damage is told now, and not by whoever meets it later. */
export function openWhole(path: string, migrations: Migrations): DatabaseSync {
  const db = openSmall(path, migrations);
  try {
    const [fault] = onFile(path, () => db.prepare("PRAGMA quick_check(1)").all()) as { quick_check: string }[];
    if (fault && fault.quick_check !== "ok") throw new DamagedFile(path, fault.quick_check.split("\n").at(-1)!);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
