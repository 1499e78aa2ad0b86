import { existsSync } from "node:fs";
import { parseExact } from "../../../lib/exact-json.ts";
import { startOfDay } from "../../../lib/time.ts";
import type { Event } from "../../../model/event.ts";
import type {
  ArchiveCursor,
  ArchivedEvent,
  ArrivalOrder,
  ArrivedEvent,
  DayRows,
  EventArchive,
} from "../../ports/archive.ts";
import { makeEventPlace, readEventId } from "../../files/event-id.ts";
import { eventsFolder, listDays, type Layout } from "../../files/layout.ts";
import { eventWords } from "../../search/indexed-words.ts";
import { idOfText, placeOfRow, type ArrivedRow } from "../journal/arrived-row.ts";
import type { ForeignId } from "../journal/commit-group.ts";
import { DayReaders, openDayForWriting } from "../journal/day-file.ts";
import { DayWriter } from "../journal/day-writer.ts";

// The events of a data folder, read and written without the journal's threads.

/** Sequence numbers that are read at once, of all days. */
const WINDOW = 2000;
const DAY_PAGE_ROWS = 1000;
const OPEN_WRITERS_MAX = 8;

interface StoredRow extends ArrivedRow {
  readonly token: string | null;
}

/** The last event that was written: its sequence number, its place and the time of that. */
interface FolderCursor {
  readonly seq: number;
  readonly place: string;
  readonly arrivedMs: number;
}

const ROWS = "SELECT events.seq AS seq, body, token, arrived FROM events LEFT JOIN ids ON ids.seq = events.seq";

export class FolderEvents implements EventArchive {
  readonly #layout: Layout;
  readonly #readers: DayReaders;
  readonly #writers = new Map<number, DayWriter>();

  constructor(layout: Layout) {
    this.#layout = layout;
    this.#readers = new DayReaders(layout);
    // Older files are brought up to date, as the service does when it starts.
    for (const day of this.#listDays()) openDayForWriting(layout, day).close();
  }

  #listDays(): number[] {
    return existsSync(eventsFolder(this.#layout.dataDir)) ? listDays(this.#layout) : [];
  }

  async days(): Promise<readonly DayRows[]> {
    return this.#listDays().flatMap((day) => {
      const reader = this.#readers.get(day);
      const row = reader?.sql("SELECT coalesce(sum(rows), 0) AS rows FROM blocks").get() as
        | { rows: number }
        | undefined;
      return row && row.rows > 0 ? [{ day, rows: row.rows }] : [];
    });
  }

  async *read(
    after: ArchiveCursor,
  ): AsyncIterable<{ readonly events: readonly ArrivedEvent[]; readonly cursor: ArchiveCursor }> {
    const spans = this.#listDays().flatMap((day) => {
      const sql = "SELECT (SELECT min(seq) FROM events) AS first, (SELECT max(seq) FROM events) AS last";
      const row = this.#readers.get(day)?.sql(sql).get() as { first: number | null; last: number } | undefined;
      return row && row.first !== null ? [{ day, first: row.first, last: row.last }] : [];
    });
    let seq = after === null ? 0 : (after as unknown as { seq: number }).seq;
    for (;;) {
      const ahead = spans.filter(({ last }) => last > seq);
      if (ahead.length === 0) return;
      // A gap is left by retention.
      seq = Math.max(seq, Math.min(...ahead.map(({ first }) => first)) - 1);
      const end = seq + WINDOW;
      const rows = ahead
        .filter(({ first }) => first <= end)
        .flatMap(({ day }) => this.#rows(day, "events.seq > ? AND events.seq <= ? ORDER BY events.seq", seq, end))
        .sort((a, b) => a.seq - b.seq);
      if (rows.length > 0)
        yield { events: rows.map((row) => ({ ...eventOf(row), place: placeOfRow(row) })), cursor: { seq: end } };
      seq = end;
    }
  }

  async *readDay(day: number): AsyncIterable<readonly ArchivedEvent[]> {
    for (let seq = 0; ;) {
      const rows = this.#rows(day, `events.seq > ? ORDER BY events.seq LIMIT ${DAY_PAGE_ROWS}`, seq);
      if (rows.length === 0) return;
      yield rows.map(eventOf);
      seq = rows.at(-1)!.seq;
    }
  }

  #rows(day: number, where: string, ...values: number[]): StoredRow[] {
    return (this.#readers
      .get(day)
      ?.sql(`${ROWS} WHERE ${where}`)
      .all(...values) ?? []) as unknown as StoredRow[];
  }

  async write(events: readonly ArchivedEvent[], after: ArchiveCursor): Promise<ArchiveCursor> {
    let { seq, place, arrivedMs } = (after as unknown as FolderCursor | null) ?? { seq: 0, place: "", arrivedMs: 0 };
    const numbered = events.map((event) => {
      const own = readEventId(event.id)!;
      seq++;
      const isOwn = own.seq === seq && own.arrivedMs >= arrivedMs;
      arrivedMs = Math.max(arrivedMs, own.arrivedMs);
      const foreign: ForeignId | undefined = isOwn ? undefined : { id: event.id, arrivedMs };
      place = isOwn ? event.id : makeEventPlace(arrivedMs, { seq, day: own.day });
      const parsed = parseExact(event.text) as Event;
      const ts = Date.parse(parsed.timestamp);
      return { ...event, seq, ts, foreign, words: eventWords(parsed, ts).text };
    });
    for (const [day, part] of Map.groupBy(numbered, ({ ts }) => startOfDay(ts))) {
      const writer = this.#writer(day);
      const { last } = writer.db.prepare("SELECT coalesce(max(seq), 0) AS last FROM events").get() as { last: number };
      // An attempt before this one has written the day.
      if (last >= part[0]!.seq) continue;
      writer.write({
        day,
        seqs: part.map((event) => event.seq),
        times: part.map(({ ts }) => ts),
        bodies: part.map(({ text }) => text),
        words: part.map(({ words }) => words),
        tokens: part.map(({ token }) => token),
        foreign: part.map(({ foreign }) => foreign),
      });
    }
    return { seq, place, arrivedMs };
  }

  #writer(day: number): DayWriter {
    let writer = this.#writers.get(day);
    if (writer) this.#writers.delete(day);
    else {
      if (this.#writers.size >= OPEN_WRITERS_MAX) this.#closeWriter(this.#writers.keys().next().value!);
      writer = new DayWriter(openDayForWriting(this.#layout, day));
    }
    this.#writers.set(day, writer);
    return writer;
  }

  #closeWriter(day: number): void {
    const { db } = this.#writers.get(day)!;
    this.#writers.delete(day);
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
  }

  async mark(after: ArchiveCursor): Promise<ArchiveCursor> {
    return after;
  }

  async finish({ marks }: ArrivalOrder): Promise<readonly string[]> {
    for (const day of this.#writers.keys()) this.#closeWriter(day);
    return marks.map(({ mark, atMs }) => {
      const cursor = mark as unknown as FolderCursor | null;
      return cursor?.place ?? makeEventPlace(atMs, { seq: 0, day: 0 });
    });
  }

  close(): void {
    this.#readers.closeAll();
    for (const day of this.#writers.keys()) this.#closeWriter(day);
  }
}

function eventOf({ body, token }: StoredRow): ArchivedEvent {
  return { id: idOfText(body), text: body, token };
}
