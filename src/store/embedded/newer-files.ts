import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { NewerFile } from "../../lib/newer-file.ts";
import { CASES_MIGRATIONS } from "../sqlite/cases/case-migrations.ts";
import { DAY_MIGRATIONS } from "../sqlite/journal/day-file.ts";
import { KEYS_MIGRATIONS } from "../sqlite/key-database.ts";
import { casesFile, eventsFolder, isDayFile, keysFile, stateFile } from "../files/layout.ts";
import { STATE_MIGRATIONS } from "../sqlite/state-database.ts";

// Whether a newer version has written to the data folder. The bytes of the files are read as they are: SQLite itself would
// make files beside them, recover logs, and so change a folder that is not to be touched.

const MAGIC = Buffer.from("SQLite format 3\0");
const HEADER_BYTES = 100;
const USER_VERSION_AT = 60;
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const SALT_AT = { log: 16, frame: 8 };
const SALT_BYTES = 8;

/** Throws NewerFile, and changes nothing. Nobody in this process may have one of the files open: closing a file drops its locks. */
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

/** Of a damaged file nothing can be said: whoever opens it says so. */
function versionInHeader(header: Buffer): number {
  return header.subarray(0, MAGIC.length).equals(MAGIC) ? header.readUInt32BE(USER_VERSION_AT) : 0;
}

/** A migration that was committed a moment before a crash stands in the log alone: as the newest first page there. */
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
      // Frames of an earlier round are behind those of this one.
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

/** Undefined where the file is not there, or too short to say anything. */
function withFile<Value>(
  path: string,
  bytesMin: number,
  look: (read: ReadBytes, bytes: number) => Value,
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
    return look(read, bytes);
  } finally {
    closeSync(file);
  }
}
