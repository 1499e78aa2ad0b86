import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { ofFile } from "../files/store-failure.ts";
import { FileIdentity } from "../files/file-identity.ts";
import { lockFile } from "../files/layout.ts";

export class DataFolderInUse extends Error {
  constructor(dataDir: string, holder: string) {
    super(
      `The data folder ${dataDir} is in use by another tocsin${holder}. Stop that one first, or choose another folder with --data-dir.`,
    );
    this.name = "DataFolderInUse";
  }
}

export interface Lock {
  readonly identity: FileIdentity;
  /** Writes the holder's process id. Separate from locking, because a folder of a newer version must stay unchanged. */
  sign(): void;
  close(): void;
}

/**
 * Holds the data folder until closed. The operating system keeps the lock, taken through SQLite, and releases it when the
 * process ends for any reason, so that no stale lock remains.
 */
export function lockDataFolder(dataDir: string): Lock {
  const path = lockFile(dataDir);
  const isNew = !existsSync(path);
  let isSigned = false;
  const db = new DatabaseSync(path);
  try {
    db.exec("PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;");
  } catch (error) {
    db.close();
    if (/locked|busy/i.test(error instanceof Error ? error.message : ""))
      throw new DataFolderInUse(dataDir, holderOf(path));
    throw ofFile(path, error);
  }
  return {
    identity: new FileIdentity(path),
    sign: () => {
      writeFileSync(`${path}.holder`, String(process.pid));
      isSigned = true;
    },
    close: () => {
      db.exec("ROLLBACK");
      db.close();
      if (isNew && !isSigned) rmSync(path, { force: true });
    },
  };
}

function holderOf(path: string): string {
  try {
    return ` (process ${readFileSync(`${path}.holder`, "utf8")})`;
  } catch {
    // The process id only makes the message more helpful; without the file the message omits it.
    return "";
  }
}
