import { DatabaseSync } from "node:sqlite";
import { DamagedFile, onFile } from "../files/store-failure.ts";
import { migrate, type Migrations } from "./migrations.ts";

/** Opens a database file that several processes may use at once. */
export function openShared(path: string, migrations: Migrations, pragmas = ""): DatabaseSync {
  return onFile(path, () => {
    const db = new DatabaseSync(path);
    try {
      // The timeout comes first, because the switch to WAL needs exclusive access for a moment.
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

/** Like `openShared`, for a file small enough to check as a whole: damage is reported now instead of by a later query. */
export function openChecked(path: string, migrations: Migrations): DatabaseSync {
  const db = openShared(path, migrations);
  try {
    const [fault] = onFile(path, () => db.prepare("PRAGMA quick_check(1)").all()) as { quick_check: string }[];
    if (fault && fault.quick_check !== "ok") throw new DamagedFile(path, fault.quick_check.split("\n").at(-1)!);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
