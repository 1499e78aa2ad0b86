import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { NewerFile } from "../../lib/newer-file.ts";
import { CASES_MIGRATIONS } from "../sqlite/cases/case-migrations.ts";
import { DAY_MIGRATIONS } from "../sqlite/journal/day-file.ts";
import { KEYS_MIGRATIONS } from "../sqlite/key-database.ts";
import { casesFile, eventsFolder, isDayFile, keysFile, stateFile } from "../files/layout.ts";
import { STATE_MIGRATIONS } from "../sqlite/state-database.ts";

// Detects files that a newer version has written. Reads their bytes directly, because SQLite would create files and recover
// logs, and so change a folder that must stay untouched.

const MAGIC = Buffer.from("SQLite format 3\0");
const HEADER_BYTES = 100;
const USER_VERSION_AT = 60;
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const SALT_AT = { log: 16, frame: 8 };
const SALT_BYTES = 8;

/** Throws NewerFile and changes nothing. This process must have none of the files open: closing a file drops its locks. */
export function refuseNewerFiles(dataDir: string): void {
  const days = existsSync(eventsFolder(dataDir)) ? readdirSync(eventsFolder(dataDir)).filter(isDayFile) : [];
  const files: [path: string, known: number][] = [
    [keysFile(dataDir), KEYS_MIGRATIONS.length],
    [stateFile(dataDir), STATE_MIGRATIONS.length],
    [casesFile(dataDir), CASES_MIGRATIONS.length],
    ...days.map((name): [string, number] => [join(eventsFolder(dataDir), name), DAY_MIGRATIONS.length]),
  ];
  for (const [path, known] of files) {
    const found = Math.max(versionInFile(path), versionInLog(`${path}-wal`));
    if (found > known) throw new NewerFile(path, found, known);
  }
}

function versionInFile(path: string): number {
  return withFile(path, HEADER_BYTES, (read) => versionInHeader(read(0, HEADER_BYTES))) ?? 0;
}

/** 0 for a damaged file: opening it reports the damage. */
function versionInHeader(header: Buffer): number {
  return header.subarray(0, MAGIC.length).equals(MAGIC) ? header.readUInt32BE(USER_VERSION_AT) : 0;
}

/** Just after a crash, the last committed migration may be in the log alone: in its latest copy of page 1. */
function versionInLog(path: string): number {
  const found = withFile(path, LOG_HEADER_BYTES, (read, bytes) => {
    const header = read(0, LOG_HEADER_BYTES);
    const pageBytes = header.readUInt32BE(8);
    const salt = header.subarray(SALT_AT.log, SALT_AT.log + SALT_BYTES);
    let version = 0;
    for (
      let at = LOG_HEADER_BYTES;
      at + FRAME_HEADER_BYTES + pageBytes <= bytes;
      at += FRAME_HEADER_BYTES + pageBytes
    ) {
      const frame = read(at, FRAME_HEADER_BYTES);
      // Frames with another salt are leftovers of an earlier log; the current ones come first.
      if (!frame.subarray(SALT_AT.frame, SALT_AT.frame + SALT_BYTES).equals(salt)) break;
      if (frame.readUInt32BE(0) !== 1) continue;
      const page = read(at + FRAME_HEADER_BYTES, HEADER_BYTES);
      version = versionInHeader(page);
    }
    return version;
  });
  return found ?? 0;
}

type ReadBytes = (at: number, length: number) => Buffer;

/** Undefined if the file is missing or too short. */
function withFile<Value>(
  path: string,
  bytesMin: number,
  use: (read: ReadBytes, bytes: number) => Value,
): Value | undefined {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes < bytesMin) return undefined;
  const file = openSync(path, "r");
  try {
    const read: ReadBytes = (at, length) => {
      const buffer = Buffer.alloc(length);
      readSync(file, buffer, 0, length, at);
      return buffer;
    };
    return use(read, bytes);
  } finally {
    closeSync(file);
  }
}
