import { existsSync, rmSync, statSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { isBusy, isStorageFailure } from "../../files/store-failure.ts";
import { FileIdentity } from "../../files/file-identity.ts";
import { dayFile, listDays, type Layout } from "../../files/layout.ts";
import { migrate, type Migrations } from "../migrations.ts";
import { CONNECTORS, FILTER_MARK } from "../../search/words.ts";

// One SQLite file holds the events of one UTC day of event time. These files are the system of record.

/**
 * A bound sequence number in a query of the full-text index. JavaScript numbers are bound as REAL, which FTS5 ignores as a
 * bound on rowid: it would read every match, or return a wrong one.
 */
export const SEQ_PARAMETER = "CAST(? AS INTEGER)";

/** Blocks of 2 ** BLOCK_SHIFT sequence numbers store the earliest and latest time of their events. */
export const BLOCK_SHIFT = 10;

// The tokenizer splits text as words.ts does: its connectors are letters here.
export const WORDS_TABLE = `CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='', detail=none, columnsize=0,
  tokenize="ascii tokenchars '${CONNECTORS}${FILTER_MARK}'")`;

/** Segments of one level that are merged into one of the next. Fewer make searches faster and writes slower. */
const SEGMENTS_PER_LEVEL = 16;
/** Past this limit FTS5 merges a whole level within a commit, which takes seconds; incremental merging stays far below it. */
const SEGMENTS_PER_LEVEL_MAX = 64;
const MERGE_SETTINGS = { automerge: 0, usermerge: SEGMENTS_PER_LEVEL, crisismerge: SEGMENTS_PER_LEVEL_MAX };
/** Characters of new words per page of merging: measured, about twice the work needed to keep up. */
const CHARACTERS_PER_PAGE = 8192;
const MERGE_PAGES_MIN = 8;
const MERGE_PAGES_MAX = 64;

const SCHEMA = `
CREATE TABLE IF NOT EXISTS events(seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, body TEXT NOT NULL, token TEXT) STRICT;
CREATE INDEX IF NOT EXISTS events_ts ON events(ts);
CREATE INDEX IF NOT EXISTS events_token ON events(token) WHERE token IS NOT NULL;
CREATE TABLE IF NOT EXISTS blocks(block INTEGER PRIMARY KEY, min_ts INTEGER NOT NULL, max_ts INTEGER NOT NULL, rows INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS amendments(number INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
${WORDS_TABLE};
`;

export const DAY_MIGRATIONS: Migrations = [
  (db) => {
    db.exec(SCHEMA);
    setMergeSettings(db);
  },
  // Ids of events from another store, which do not tell the sequence number.
  "CREATE TABLE IF NOT EXISTS ids(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, arrived INTEGER NOT NULL) STRICT",
];

/** The size to which a log is truncated when it restarts: a burst must not take up disk space as long as the day is kept. */
export const LOG_BYTES_KEPT = 32 * 1024 * 1024;

/** Creates the file if it is missing. A file whose creation fails is removed. */
export function openDayForWriting(layout: Layout, day: number): DatabaseSync {
  const path = dayFile(layout, day);
  const isNew = !existsSync(path);
  const db = new DatabaseSync(path);
  try {
    // The timeout comes first, because the switch to WAL needs exclusive access for a moment.
    // FULL: each commit is on disk before it is acknowledged; NORMAL would only guarantee an intact file.
    db.exec(`PRAGMA busy_timeout = 5000; PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
      PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${LOG_BYTES_KEPT};`);
    migrate(db, path, DAY_MIGRATIONS);
    return db;
  } catch (error) {
    db.close();
    if (isNew) removeDayFile(layout, day);
    throw error;
  }
}

/** Sets how the index merges. The settings are stored in the file, and older files have other values. */
function setMergeSettings(db: DatabaseSync): void {
  const known = db.prepare("SELECT v FROM words_config WHERE k = ?");
  for (const [name, value] of Object.entries(MERGE_SETTINGS)) {
    if ((known.get(name) as { v: number } | undefined)?.v === value) continue;
    // As text: a bound number would be a REAL, which FTS5 refuses.
    db.exec(`INSERT INTO words(words, rank) VALUES ('${name}', ${value})`);
  }
}

/** Removes the empty logs that readers create and cannot remove. No connection to a day may be open. */
export function removeEmptyLogs(layout: Layout): void {
  for (const day of listDays(layout)) {
    const path = dayFile(layout, day);
    if (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size !== 0) continue;
    const db = new DatabaseSync(path);
    try {
      // The last connection to close removes the log, if it has used it.
      db.exec("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(PASSIVE)");
    } catch (error) {
      // The log stays, empty and harmless.
      if (!isStorageFailure(error) && !isBusy(error)) throw error;
    } finally {
      db.close();
    }
  }
}

/** No connection to the file may be open. */
export function removeDayFile(layout: Layout, day: number): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(dayFile(layout, day) + suffix, { force: true });
}

/**
 * Merges segments of the full-text index incrementally, in proportion to the words of each group. Automatic merging would
 * add a tenth of a second to one commit in fifty.
 */
export class WordsMerger {
  readonly #merge: StatementSync;
  #pages = 0;

  constructor(db: DatabaseSync) {
    this.#merge = db.prepare("INSERT INTO words(words, rank) VALUES ('merge', ?)");
  }

  /** Must run in the group's transaction, after its words are inserted. */
  run(words: readonly string[]): void {
    let characters = 0;
    for (const text of words) characters += text.length;
    // Each group creates a segment, even the smallest.
    this.#pages += 1 + characters / CHARACTERS_PER_PAGE;
    if (this.#pages < MERGE_PAGES_MIN) return;
    this.#merge.run(Math.min(Math.floor(this.#pages), MERGE_PAGES_MAX));
    this.#pages = 0;
  }
}

/** Read-only connections to day files, opened on demand; the least recently used is closed. */
export class DayReaders {
  static readonly OPEN_MAX = 32;
  readonly #layout: Layout & { readonly mapped?: boolean };
  readonly #open = new Map<number, DayReader>();

  constructor(layout: Layout & { readonly mapped?: boolean }) {
    this.#layout = layout;
  }

  /** Undefined if the day has no file, or an incomplete one. */
  get(day: number): DayReader | undefined {
    let reader = this.#open.get(day);
    if (reader) this.#open.delete(day);
    else {
      const path = this.pathOf(day);
      if (!existsSync(path)) return undefined;
      reader = new DayReader(path, this.#layout.mapped ?? false);
      if (!isComplete(reader)) return undefined;
    }
    this.#open.set(day, reader);
    if (this.#open.size > DayReaders.OPEN_MAX) this.close(this.#open.keys().next().value!);
    return reader;
  }

  pathOf(day: number): string {
    return dayFile(this.#layout, day);
  }

  close(day: number): void {
    this.#open.get(day)?.close();
    this.#open.delete(day);
  }

  closeAll(): void {
    for (const day of this.#open.keys()) this.close(day);
  }
}

/** All versions create the full-text index last: a file without it has no events. */
function isComplete(reader: DayReader): boolean {
  let isComplete = false;
  try {
    isComplete = reader.sql("SELECT 1 FROM sqlite_master WHERE name = 'words'").get() !== undefined;
  } finally {
    if (!isComplete) reader.close();
  }
  return isComplete;
}

/** A connection with its prepared statements. */
export class DayReader {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly identity: FileIdentity;

  constructor(path: string, mapped: boolean) {
    this.identity = new FileIdentity(path);
    this.#db = new DatabaseSync(path, { readOnly: true });
    // Mapped pages count as memory of the process until the system drops them; an export would map everything.
    const [cacheKilobytes, mappedBytes] = mapped ? [512, 1 << 30] : [2048, 0];
    this.#db.exec(
      `PRAGMA busy_timeout = 5000; PRAGMA cache_size = -${cacheKilobytes}; PRAGMA mmap_size = ${mappedBytes};`,
    );
  }

  sql(text: string): StatementSync {
    let statement = this.#statements.get(text);
    if (!statement) {
      statement = this.#db.prepare(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  /** The number of the day's last amendment; 0 if there is none, or if the file has no table of amendments. */
  lastAmendment(): number {
    this.#hasAmendments ||= this.sql("SELECT 1 FROM sqlite_master WHERE name = 'amendments'").get() !== undefined;
    if (!this.#hasAmendments) return 0;
    const row = this.sql("SELECT coalesce(max(number), 0) AS number FROM amendments").get();
    return (row as { number: number }).number;
  }
  #hasAmendments = false;

  /** Creates `temp.vocabulary(term, doc)`: each word of the index with the number of events that contain it. */
  ensureVocabulary(): void {
    if (this.#hasVocabulary) return;
    this.#db.exec("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, row)");
    this.#hasVocabulary = true;
  }
  #hasVocabulary = false;

  /** Creates `temp.postings(term, doc)`: each word of the index with each event that contains it, ordered by word. */
  ensurePostings(): void {
    if (this.#hasPostings) return;
    this.#db.exec("CREATE VIRTUAL TABLE temp.postings USING fts5vocab(main, words, instance)");
    this.#hasPostings = true;
  }
  #hasPostings = false;

  close(): void {
    this.#statements.clear();
    this.#db.close();
  }
}
