import { workerData } from "node:worker_threads";
import { timeOfId } from "../../../lib/id.ts";
import { DigestCache } from "../../../lib/digest-cache.ts";
import { serveThread } from "../../../lib/thread.ts";
import { DamagedFile, namingFiles } from "../../files/store-failure.ts";
import { dayFile, type Layout } from "../../files/layout.ts";
import type { Term, TextSearch } from "../../search/text-search.ts";
import { DAY_MIGRATIONS, DayReaders } from "./day-file.ts";
import {
  countPart,
  hasWords,
  pagePart,
  rowsOfDay,
  type CountPart,
  type PagePart,
  type FoundRow,
  type DaySpan,
} from "./day-search.ts";
import { isEventText } from "../../files/event-text.ts";
import { placeOfRow, type ArrivedRow } from "./arrived-row.ts";
import type { ListPlace } from "./list-position.ts";

// A thread that reads the journal. Each call reads one day; the caller iterates over days.

export interface ReaderData extends Layout {
  /** Reads through mapped memory, which is faster for searches, because they read the same pages repeatedly. */
  readonly mapped: boolean;
}

export interface Arrived {
  readonly seq: number;
  readonly place: string;
}

const ARRIVED = "events.seq AS seq, body, arrived FROM events LEFT JOIN ids ON ids.seq = events.seq";

const COUNTS_MAX = 5000;
const layout = workerData as ReaderData;
const days = new DayReaders(layout);
const counts = new DigestCache<CountPart>(COUNTS_MAX);

/** Plain bounds on the time, so that the index by time is entered at the right position. */
const BELOW = "ts >= ? AND ts <= ? AND (ts < ? OR seq < ?)";

function boundsOf(span: DaySpan, after: ListPlace | undefined): { from: number; to: number; below: number } {
  if (after && after.ts < span.to) return { from: span.from, to: after.ts, below: after.seq };
  return { from: span.from, to: span.to, below: 0 };
}

const api = {
  /** The newest rows of a day below a place. Stops once they exceed `charactersMax`. */
  page(
    day: number,
    span: DaySpan,
    after: ListPlace | undefined,
    { offset, limit, charactersMax }: { offset: number; limit: number; charactersMax: number },
  ): { rows: FoundRow[]; isAll: boolean } {
    const { from, to, below } = boundsOf(span, after);
    const rows: FoundRow[] = [];
    let characters = 0;
    const statement = days
      .get(day)
      ?.sql(`SELECT seq, ts, body FROM events WHERE ${BELOW} ORDER BY ts DESC, seq DESC LIMIT ? OFFSET ?`);
    for (const row of statement?.iterate(from, to, to, below, limit, offset) ?? []) {
      rows.push(row as unknown as FoundRow);
      characters += rows.at(-1)!.body.length;
      if (characters > charactersMax) return { rows, isAll: false };
    }
    return { rows, isAll: true };
  },

  countSpan(day: number, span: DaySpan, after: ListPlace | undefined): number {
    const { from, to, below } = boundsOf(span, after);
    const row = days.get(day)?.sql(`SELECT count(*) AS n FROM events WHERE ${BELOW}`).get(from, to, to, below);
    return (row as { n: number } | undefined)?.n ?? 0;
  },

  /** The texts of these events. Stops once they exceed `charactersMax`. */
  bodies(day: number, seqs: readonly number[], charactersMax: number): (string | undefined)[] {
    const statement = days.get(day)?.sql("SELECT body FROM events WHERE seq = ?");
    const texts: (string | undefined)[] = [];
    let characters = 0;
    for (const seq of seqs) {
      const body = (statement?.get(seq) as { body: string } | undefined)?.body;
      texts.push(body);
      characters += body?.length ?? 0;
      if (characters > charactersMax) break;
    }
    return texts;
  },

  /** The next events of a day in the order of arrival, up to the given limits. */
  arrivals(
    day: number,
    after: number,
    upTo: number,
    eventsMax: number,
    charactersMax: number,
  ): { rows: ArrivedRow[]; isAll: boolean } {
    const rows: ArrivedRow[] = [];
    let characters = 0;
    const statement = days
      .get(day)
      ?.sql(`SELECT ${ARRIVED} WHERE events.seq > ? AND events.seq <= ? ORDER BY events.seq LIMIT ?`);
    for (const row of statement?.iterate(after, upTo, eventsMax) ?? []) {
      rows.push(row as unknown as ArrivedRow);
      characters += rows.at(-1)!.body.length;
      if (characters >= charactersMax) return { rows, isAll: false };
    }
    return { rows, isAll: rows.length < eventsMax };
  },

  /** The same for these events. Stops once they exceed `charactersMax`; events that are gone count as read. */
  arrived(day: number, seqs: readonly number[], charactersMax: number): { rows: ArrivedRow[]; read: number } {
    const statement = days.get(day)?.sql(`SELECT ${ARRIVED} WHERE events.seq = ?`);
    const rows: ArrivedRow[] = [];
    let characters = 0;
    let read = 0;
    for (const seq of seqs) {
      const row = statement?.get(seq) as ArrivedRow | undefined;
      if (row) rows.push(row);
      read++;
      characters += row?.body.length ?? 0;
      if (characters > charactersMax) break;
    }
    return { rows, read };
  },

  /** Arrival times rise with the sequence, so this is a binary search. */
  lastArrivalBefore(day: number, ms: number): Arrived | undefined {
    const reader = days.get(day);
    // With min and max in one SELECT, the engine would read every row.
    const ends = reader
      ?.sql("SELECT (SELECT min(seq) FROM events) AS low, (SELECT max(seq) FROM events) AS high")
      .get();
    let { low, high } = (ends ?? { low: null, high: null }) as { low: number | null; high: number | null };
    if (!reader || low === null || high === null) return undefined;
    const upTo = reader.sql(`SELECT ${ARRIVED} WHERE events.seq <= ? ORDER BY events.seq DESC LIMIT 1`);
    let last: Arrived | undefined;
    for (let at = high; low <= high; at = Math.floor((low + high) / 2)) {
      const row = upTo.get(at) as unknown as ArrivedRow;
      const found = { seq: row.seq, place: placeOfRow(row) };
      if (timeOfId(found.place) < ms) {
        last = found;
        low = at + 1;
      } else high = found.seq - 1;
    }
    return last;
  },

  find(day: number, seq: number): FoundRow | undefined {
    return days.get(day)?.sql("SELECT seq, ts, body FROM events WHERE seq = ?").get(seq) as FoundRow | undefined;
  },

  /** The event of an id that does not tell the sequence number. */
  findForeign(day: number, id: string): FoundRow | undefined {
    return days
      .get(day)
      ?.sql("SELECT seq, ts, body FROM events WHERE seq = (SELECT seq FROM ids WHERE id = ?)")
      .get(id) as FoundRow | undefined;
  },

  findToken(day: number, token: string): string | undefined {
    const reader = days.get(day);
    const row = reader?.sql("SELECT body FROM events WHERE token = ? ORDER BY seq DESC LIMIT 1").get(token);
    // A client that retries takes the answer as an acknowledgement.
    if (row) reader?.identity.verify();
    return (row as { body: string } | undefined)?.body;
  },

  /** Events whose token continues with a number, newest last. */
  findTokens(day: number, prefix: string): { number: number; id: string }[] {
    const reader = days.get(day);
    const rows = reader
      ?.sql(
        `SELECT CAST(substr(token, ?3) AS INTEGER) AS number, json_extract(body, '$.id') AS id FROM events
         WHERE token >= ?1 AND token < ?2 ORDER BY seq`,
      )
      .all(`${prefix}0`, `${prefix}:`, prefix.length + 1);
    if (rows && rows.length > 0) reader?.identity.verify();
    return (rows ?? []) as { number: number; id: string }[];
  },

  /** The row count of a day, its last sequence number and the number of its last amendment. */
  summary(day: number): {
    rows: number;
    lastSeq: number;
    /** The place of the last event. */
    lastPlace: string | undefined;
    lastAmendment: number;
    /** True if the file has the current schema version. */
    isCurrent: boolean;
  } {
    const reader = days.get(day);
    if (!reader) return { rows: 0, lastSeq: 0, lastPlace: undefined, lastAmendment: 0, isCurrent: true };
    const { version } = reader.sql("SELECT user_version AS version FROM pragma_user_version").get() as {
      version: number;
    };
    const { rows } = reader.sql("SELECT coalesce(sum(rows), 0) AS rows FROM blocks").get() as { rows: number };
    const isCurrent = version === DAY_MIGRATIONS.length;
    const columns = isCurrent ? ARRIVED : "seq, body, NULL AS arrived FROM events";
    const last = reader.sql(`SELECT ${columns} ORDER BY events.seq DESC LIMIT 1`).get() as ArrivedRow | undefined;
    if (last && !isEventText(last.body)) throw new DamagedFile(dayFile(layout, day), "its last event is unreadable");
    return {
      rows,
      lastSeq: last?.seq ?? 0,
      lastPlace: last && placeOfRow(last),
      lastAmendment: reader.lastAmendment(),
      isCurrent,
    };
  },

  /** Continues the count of a day from the previous part. */
  textCount(day: number, search: TextSearch, span: DaySpan, soFar: CountPart | undefined): CountPart {
    const reader = days.get(day);
    if (!reader) return { count: 0, rows: 0, next: undefined };
    const rows = rowsOfDay(reader);
    // Events and amendments of a day are only added: with the same numbers of both, the count is the same.
    const key = `${day} ${reader.lastAmendment()} ${span.from} ${span.to} ${JSON.stringify([search.terms, search.phrases])}`;
    const known = counts.get(key);
    if (known?.rows === rows) return known;
    const part = countPart(reader, search, span, soFar);
    if (part.next === undefined && part.rows === rows) counts.set(key, part);
    return part;
  },

  /** Continues to find the newest matches of a day below a place. */
  textPage(
    day: number,
    search: TextSearch,
    range: { readonly span: DaySpan; readonly after: ListPlace | undefined },
    limit: number,
    soFar: PagePart | undefined,
  ): PagePart {
    const reader = days.get(day);
    return reader ? pagePart(reader, search, range, limit, soFar) : { places: [], next: undefined };
  },

  /** True if the event contains the words. */
  textHas(day: number, terms: readonly Term[], seq: number): boolean {
    const reader = days.get(day);
    return reader !== undefined && hasWords(reader, terms, seq);
  },

  /** Called before a day is removed. */
  closeDay(day: number): void {
    days.close(day);
  },

  close(): void {
    days.closeAll();
  },
};

export type ReaderApi = typeof api;

serveThread(namingFiles(api, (day) => dayFile(layout, day)));
