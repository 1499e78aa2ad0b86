import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { MigrationNotes } from "../ports/archive.ts";

/** Says what a migration into the folder has done. */
const noteFile = (dataDir: string) => join(dataDir, "migration.json");

export function folderMigrationNotes(dataDir: string): MigrationNotes {
  const path = noteFile(dataDir);
  return {
    read: async () => (existsSync(path) ? readFileSync(path, "utf8") : undefined),
    save: async (text) => {
      const file = openSync(`${path}.new`, "w", 0o600);
      try {
        writeSync(file, text);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(`${path}.new`, path);
    },
  };
}

/** The data are not whole. The message is for the operator. */
class UnfinishedMigration extends Error {
  constructor(place: string) {
    super(
      `${place} is the target of a migration that is not complete: some of the data are missing.\n` +
        "Run the same tocsin migrate again, which goes on where it ended.",
    );
    this.name = "UnfinishedMigration";
  }
}

export async function refuseUnfinishedMigration(notes: MigrationNotes, place: string): Promise<void> {
  const text = await notes.read();
  if (text !== undefined && (JSON.parse(text) as { completedAt: number | null }).completedAt === null)
    throw new UnfinishedMigration(place);
}
