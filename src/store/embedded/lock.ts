import { readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { ofFile } from "./failure.ts";
import { FileIdentity } from "./file-identity.ts";
import { lockFile } from "./layout.ts";

export class DataFolderInUse extends Error {
  constructor(dataDir: string, holder: string) {
    super(
      `The data folder ${dataDir} is in use by another tocsin${holder}. Stop that one first, or choose another folder with --data-dir.`,
    );
    this.name = "DataFolderInUse";
  }
}

/**
 * Holds the data folder until closed. The lock is the operating system's, taken through SQLite: it goes with the
 * process, however that ends, and leaves no stale file to clean up.
 */
export function lockDataFolder(dataDir: string): { readonly identity: FileIdentity; close(): void } {
  const path = lockFile(dataDir);
  const db = new DatabaseSync(path);
  try {
    db.exec("PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;");
  } catch (error) {
    db.close();
    if (/locked|busy/i.test(error instanceof Error ? error.message : ""))
      throw new DataFolderInUse(dataDir, holderOf(path));
    throw ofFile(path, error);
  }
  writeFileSync(`${path}.holder`, String(process.pid));
  return {
    identity: new FileIdentity(path),
    close: () => {
      db.exec("ROLLBACK");
      db.close();
    },
  };
}

function holderOf(path: string): string {
  try {
    return ` (process ${readFileSync(`${path}.holder`, "utf8")})`;
  } catch {
    // Only a kindness in a message: without the file there is no number to give.
    return "";
  }
}
