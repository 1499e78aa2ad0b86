import { existsSync, rmSync, statSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { isBusy, isStorageFailure } from "../../files/store-failure.ts";
import { FileIdentity } from "../../files/file-identity.ts";
import { dayFile, listDays, type Layout } from "../../files/layout.ts";
import { migrate, type Migrations } from "../migrations.ts";
import { CONNECTORS, FILTER_MARK } from "../../search/words.ts";

// One SQLite file holds the events of one UTC day of event time: the book of record.

/**
 * A place in the index of words, for SQL. A number is bound as one that may have a fraction, which the index takes for no bound
 * at all: it looks at every match, or takes any for the one that was asked for.
 */
export const PLACE = "CAST(? AS INTEGER)";

/** Blocks of this many sequence numbers carry the least and greatest time of their events. */
export const BLOCK_SHIFT = 10;

// Words are cut as words.ts says: its connectors are letters here.
export const WORDS_TABLE = `CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='', detail=none, columnsize=0,
  tokenize="ascii tokenchars '${CONNECTORS}${FILTER_MARK}'")`;

/** So many segments of one size become one of the next: fewer make searches faster and writing slower. */
const SEGMENTS_PER_LEVEL = 16;
/** Beyond it the index merges a whole level within a commit, for seconds: the merging by the way must be far ahead of it. */
const SEGMENTS_PER_LEVEL_MAX = 64;
const MERGING = { automerge: 0, usermerge: SEGMENTS_PER_LEVEL, crisismerge: SEGMENTS_PER_LEVEL_MAX };
/** Words that call for one page of merging; measured, about twice what keeps up. */
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
    setMerging(db);
  },
];

/** What a log that begins anew keeps of its size: a burst must not take room for as long as the day is kept. */
export const LOG_BYTES_KEPT = 32 * 1024 * 1024;

/** Makes the file where there is none; one whose making fails is not left behind. */
export function openDayForWriting(layout: Layout, day: number): DatabaseSync {
  const path = dayFile(layout, day);
  const isNew = !existsSync(path);
  const db = new DatabaseSync(path);
  try {
    // The patience comes first: the write-ahead mode needs the file for itself for a moment.
    // FULL: each commit is on the disk before it is acknowledged; NORMAL would only promise an intact file.
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

/** How the index merges is kept in the file: one from before it was tuned has other figures. */
function setMerging(db: DatabaseSync): void {
  const known = db.prepare("SELECT v FROM words_config WHERE k = ?");
  for (const [name, value] of Object.entries(MERGING)) {
    if ((known.get(name) as { v: number } | undefined)?.v === value) continue;
    // As text: bound, a number would be one with a fraction, which the index refuses.
    db.exec(`INSERT INTO words(words, rank) VALUES ('${name}', ${value})`);
  }
}

/** Whoever only reads a day makes a log beside it, and may not remove it. Nobody may have a day open any more. */
export function removeEmptyLogs(layout: Layout): void {
  for (const day of listDays(layout)) {
    const path = dayFile(layout, day);
    if (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size !== 0) continue;
    const db = new DatabaseSync(path);
    try {
      // The last one to close a day removes its log, if it has looked at it.
      db.exec("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(PASSIVE)");
    } catch (error) {
      // It stays there, empty, which is no harm.
      if (!isStorageFailure(error) && !isBusy(error)) throw error;
    } finally {
      db.close();
    }
  }
}

/** Nobody may have it open any more. */
export function removeDayFile(layout: Layout, day: number): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(dayFile(layout, day) + suffix, { force: true });
}

/**
 * Merges the index's segments, a little with each group, in proportion to what it brings. Left to itself the index does a
 * tenth of a second of it within one commit in fifty.
 */
export class WordsMerger {
  readonly #merge: StatementSync;
  #pages = 0;

  constructor(db: DatabaseSync) {
    this.#merge = db.prepare("INSERT INTO words(words, rank) VALUES ('merge', ?)");
  }

  /** Within the group's transaction, after its words are in. */
  run(words: readonly string[]): void {
    let characters = 0;
    for (const text of words) characters += text.length;
    // Each group makes a segment, however small.
    this.#pages += 1 + characters / CHARACTERS_PER_PAGE;
    if (this.#pages < MERGE_PAGES_MIN) return;
    this.#merge.run(Math.min(Math.floor(this.#pages), MERGE_PAGES_MAX));
    this.#pages = 0;
  }
}

/** Read-only connections to day files, opened when needed, the least recently used closed. */
export class DayReaders {
  static readonly OPEN_MAX = 32;
  readonly #layout: Layout & { readonly mapped?: boolean };
  readonly #open = new Map<number, DayReader>();

  constructor(layout: Layout & { readonly mapped?: boolean }) {
    this.#layout = layout;
  }

  /** Undefined when the day has no file (any more), or one that is still being made or was never finished. */
  get(day: number): DayReader | undefined {
    let reader = this.#open.get(day);
    if (reader) this.#open.delete(day);
    else {
      const path = this.pathOf(day);
      if (!existsSync(path)) return undefined;
      reader = new DayReader(path, this.#layout.mapped ?? false);
      if (!isMade(reader)) return undefined;
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

/** The words were the last table to be made, also by versions that made one after the other: without it there is no event. */
function isMade(reader: DayReader): boolean {
  let isMade = false;
  try {
    isMade = reader.sql("SELECT 1 FROM sqlite_master WHERE name = 'words'").get() !== undefined;
  } finally {
    if (!isMade) reader.close();
  }
  return isMade;
}

/** A connection with its prepared statements. */
export class DayReader {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly identity: FileIdentity;

  constructor(path: string, mapped: boolean) {
    this.identity = new FileIdentity(path);
    this.#db = new DatabaseSync(path, { readOnly: true });
    // Mapped pages count as memory of the process for as long as the system leaves them: an export would map everything.
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

  /** The number of the last change to an event of the day; 0 where there was none, or the file is older than such changes. */
  lastAmendment(): number {
    this.#hasAmendments ||= this.sql("SELECT 1 FROM sqlite_master WHERE name = 'amendments'").get() !== undefined;
    if (!this.#hasAmendments) return 0;
    const row = this.sql("SELECT coalesce(max(number), 0) AS number FROM amendments").get();
    return (row as { number: number }).number;
  }
  #hasAmendments = false;

  /** The words of the index with the number of events that have them: `temp.vocabulary(term, doc)`. */
  needVocabulary(): void {
    if (this.#hasVocabulary) return;
    this.#db.exec("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, row)");
    this.#hasVocabulary = true;
  }
  #hasVocabulary = false;

  /** Each word of the index with each event that has it, in the order of words: `temp.postings(term, doc)`. */
  needPostings(): void {
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
