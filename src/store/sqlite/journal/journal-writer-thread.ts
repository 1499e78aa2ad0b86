import { workerData } from "node:worker_threads";
import { parseExact } from "../../../lib/exact-json.ts";
import { serveThread } from "../../../lib/thread.ts";
import type { JsonObject } from "../../../model/event.ts";
import { isBusy, isStorageFailure, onFile } from "../../files/store-failure.ts";
import { FileIdentity, goneAmong, SqliteIdentity, type GoneFile } from "../../files/file-identity.ts";
import { addedWords } from "../../search/indexed-words.ts";
import { dayFile, listDays, type Layout } from "../../files/layout.ts";
import { openDayForWriting, removeDayFile } from "./day-file.ts";
import { DayWriter } from "./day-writer.ts";
import { amendedText } from "../../files/event-text.ts";
import type { DayGroup } from "./commit-group.ts";

// The only thread that writes events, one group of one day at a time.

/** Additions to the enrichment of events of one day, as JSON. */
export interface DayAmendments {
  readonly day: number;
  readonly seqs: readonly number[];
  readonly ids: readonly string[];
  readonly added: readonly string[];
  /** The result has the new texts of events after this one. */
  readonly textsAfter: number;
}

export interface AmendedDay {
  /** The number of the day's last amendment. */
  readonly lastAmendment: number;
  readonly count: number;
  readonly texts: readonly { readonly seq: number; readonly text: string }[];
}

interface OpenDay {
  readonly writer: DayWriter;
  readonly identity: SqliteIdentity;
}

const OPEN_MAX = 8;
const layout = workerData as Layout;
const open = new Map<number, OpenDay>();
/** Every day that has a file. A file that vanishes must not be created again as if the day had been empty. */
const known = new Map(listDays(layout).map((day) => [day, new FileIdentity(dayFile(layout, day))]));

function openDay(day: number): OpenDay {
  let entry = open.get(day);
  if (entry) open.delete(day);
  else {
    if (open.size >= OPEN_MAX) closeDay(open.keys().next().value!);
    known.get(day)?.verify();
    const writer = new DayWriter(openDayForWriting(layout, day));
    entry = { writer, identity: new SqliteIdentity(dayFile(layout, day)) };
    if (!known.has(day)) known.set(day, new FileIdentity(dayFile(layout, day)));
  }
  open.set(day, entry);
  return entry;
}

/** Leaves no log, unless a reader still has the day open; then the next start removes it. */
function closeDay(day: number): void {
  const entry = open.get(day);
  open.delete(day);
  if (!entry) return;
  const { identity } = entry;
  const { db } = entry.writer;
  try {
    db.exec("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (error) {
    // The log still holds pages that could not be moved. A missing file has nothing left to save.
    if (!isStorageFailure(error) && !isBusy(error) && identity.faults.length === 0) throw error;
  } finally {
    db.close();
  }
}

/** Numbers each amendment, so that the columns can tell which ones they have. */
function amendDay({ day, seqs, ids, added, textsAfter }: DayAmendments): AmendedDay {
  const { db, begin, commit, rollback, insertWords, merger } = openDay(day).writer;
  const texts: { seq: number; text: string }[] = [];
  const words: { seq: number; text: string }[] = [];
  let count = 0;
  begin.run();
  try {
    const select = db.prepare("SELECT body FROM events WHERE seq = ?");
    const update = db.prepare("UPDATE events SET body = ? WHERE seq = ?");
    const note = db.prepare("INSERT INTO amendments(seq) VALUES (?)");
    const foreign = db.prepare("SELECT seq FROM ids WHERE id = ?");
    for (const [i, given] of seqs.entries()) {
      const seq = (foreign.get(ids[i]!) as { seq: number } | undefined)?.seq ?? given;
      const body = (select.get(seq) as { body: string } | undefined)?.body;
      if (body === undefined || !body.startsWith(`{"id":"${ids[i]!}"`)) continue;
      const enrichment = parseExact(added[i]!) as JsonObject;
      const text = amendedText(body, enrichment);
      update.run(text, seq);
      note.run(seq);
      words.push({ seq, text: addedWords(enrichment) });
      count++;
      if (seq > textsAfter) texts.push({ seq, text });
    }
    // FTS5 accepts more words for an existing row. In rising order, because otherwise it would start a segment for each.
    for (const { seq, text } of words.sort((a, b) => a.seq - b.seq)) insertWords.run(seq, text);
    merger.run(words.map(({ text }) => text));
    const row = db.prepare("SELECT coalesce(max(number), 0) AS number FROM amendments").get();
    commit.run();
    return { lastAmendment: (row as { number: number }).number, count, texts };
  } catch (error) {
    if (db.isTransaction) rollback.run();
    throw error;
  }
}

const api = {
  /** Durable when it returns. Returns the duration in milliseconds. */
  commit(group: DayGroup): number {
    const started = performance.now();
    onFile(dayFile(layout, group.day), () =>
      openDay(group.day).identity.during(() => openDay(group.day).writer.write(group)),
    );
    return performance.now() - started;
  },

  /** Durable when it returns. Ids of no event are ignored. */
  amend(amendments: DayAmendments): AmendedDay {
    const { day } = amendments;
    return onFile(dayFile(layout, day), () => openDay(day).identity.during(() => amendDay(amendments)));
  },

  /** Migrates the file of a day to the newest schema. */
  upgrade(day: number): void {
    onFile(dayFile(layout, day), () => openDay(day));
  },

  /** Files of days that are no longer those that were opened or found at the start. */
  gone(): GoneFile[] {
    const closed = [...known].filter(([day]) => !open.has(day)).map(([, file]) => file);
    return [...goneAmong(closed), ...[...open.values()].flatMap(({ identity }) => identity.faults)];
  },

  /** Moves the write-ahead log into the day's file. Returns the log's size in pages. */
  checkpoint(day: number): number {
    const entry = open.get(day);
    if (!entry) return 0;
    const row = entry.writer.db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get() as { log: number };
    return row.log;
  },

  remove(day: number): void {
    closeDay(day);
    known.delete(day);
    removeDayFile(layout, day);
  },

  close(): void {
    for (const day of open.keys()) closeDay(day);
  },
};

export type WriterApi = typeof api;

serveThread(api);
