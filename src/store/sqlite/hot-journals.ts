import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { eventsFolder, lockFile } from "../files/layout.ts";
import { onFile } from "../files/store-failure.ts";

const JOURNAL = "-journal";

/**
 * Rolls back what a killed process was writing into files of a data folder, which the caller holds. Files have a write-ahead log from their creation on;
 * a journal is left of one whose creation was interrupted, and a connection that may only read would refuse it.
 */
export function rollBackHotJournals(dataDir: string): void {
  for (const folder of [dataDir, eventsFolder(dataDir)]) {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name.slice(0, -JOURNAL.length));
      // The lock is held in a transaction, which has a journal.
      if (!name.endsWith(JOURNAL) || path === lockFile(dataDir) || !existsSync(path)) continue;
      onFile(path, () => {
        const db = new DatabaseSync(path, { timeout: 5000 });
        try {
          // The first read rolls back.
          db.prepare("SELECT count(*) FROM sqlite_schema").get();
        } finally {
          db.close();
        }
      });
    }
  }
}
