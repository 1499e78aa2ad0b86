import { workerData } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import { parseExact } from "../../../lib/exact-json.ts";
import { timeOfId } from "../../../lib/id.ts";
import { serveThread } from "../../../lib/thread.ts";
import { QuestionRefused } from "../../store.ts";
import { DamagedFile, namingFiles } from "../failure.ts";
import { dayFile, type Layout } from "../layout.ts";
import { holdsPhrases, independentWords, matchOf, spellings, type Term, type TextSearch } from "../text-search.ts";
import { AFTER_ALL } from "../words.ts";
import { BLOCK_SHIFT, DAY_MIGRATIONS, DayReaders, type DayReader } from "./day-file.ts";
import { isEventText } from "./group.ts";
import { newestFirst, type ListPlace } from "./list-place.ts";

// A thread that reads the journal. Each call is about one day: the caller walks the days.

/**
 * A place in the index of words. A number is bound as one that may have a fraction, which the index takes for no bound at all:
 * it looks at every match, or takes any for the one that was asked for.
 */
const PLACE = "CAST(? AS INTEGER)";

export interface ReaderData extends Layout {
  /** Reads through mapped memory: faster for searches, which come back to the same pages again and again. */
  readonly mapped: boolean;
}

/** Half-open range of times within the day. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface Row extends ListPlace {
  readonly body: string;
}

export interface Arrived {
  readonly seq: number;
  readonly id: string;
}

interface Block {
  readonly block: number;
  readonly min_ts: number;
  readonly max_ts: number;
  readonly rows: number;
}

const TEXT_CHUNK = 256;
/** A search whose matches must be read one by one is stopped after this. */
const VERIFY_MS_MAX = 20_000;
const VERIFY_CHECK_ROWS = 1000;
/** A beginning that more words have is counted event by event. */
const VOCABULARY_WORDS_MAX = 64;
const COUNTS_MAX = 5000;
const layout = workerData as ReaderData;
const days = new DayReaders(layout);
const counts = new LRUCache<string, { readonly rows: number; readonly count: number }>({ max: COUNTS_MAX });

function blocksOf(reader: DayReader): Block[] {
  return reader.sql("SELECT block, min_ts, max_ts, rows FROM blocks ORDER BY block").all() as unknown as Block[];
}

/** Both ends as plain bounds on the time, so that the index by time is entered at the place itself. */
const BELOW = "ts >= ? AND ts <= ? AND (ts < ? OR seq < ?)";

function boundsOf(span: Span, after: ListPlace | undefined): { from: number; to: number; below: number } {
  if (after && after.ts < span.to) return { from: span.from, to: after.ts, below: after.seq };
  return { from: span.from, to: span.to, below: 0 };
}

const firstSeq = (block: Block) => block.block * 2 ** BLOCK_SHIFT;

/** Runs of blocks that lie wholly within the span (no time need be looked at) or only partly. */
function sections(blocks: readonly Block[], span: Span): { low: number; high: number; whole: boolean }[] {
  const found: { low: number; high: number; whole: boolean }[] = [];
  for (const block of blocks) {
    if (block.max_ts < span.from || block.min_ts >= span.to) continue;
    const whole = block.min_ts >= span.from && block.max_ts < span.to;
    const last = found.at(-1);
    const low = firstSeq(block);
    const high = low + 2 ** BLOCK_SHIFT - 1;
    if (last && last.whole === whole && last.high + 1 === low) last.high = high;
    else found.push({ low, high, whole });
  }
  return found;
}

const api = {
  /** The newest rows of a day below a place. */
  page(day: number, span: Span, after: ListPlace | undefined, offset: number, limit: number): Row[] {
    const { from, to, below } = boundsOf(span, after);
    const rows = days
      .get(day)
      ?.sql(`SELECT seq, ts, body FROM events WHERE ${BELOW} ORDER BY ts DESC, seq DESC LIMIT ? OFFSET ?`)
      .all(from, to, to, below, limit, offset);
    return (rows ?? []) as unknown as Row[];
  },

  countSpan(day: number, span: Span, after: ListPlace | undefined): number {
    const { from, to, below } = boundsOf(span, after);
    const row = days.get(day)?.sql(`SELECT count(*) AS n FROM events WHERE ${BELOW}`).get(from, to, to, below);
    return (row as { n: number } | undefined)?.n ?? 0;
  },

  /** The texts of these events; it stops when they come to more than so many characters. */
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

  /** The next events of a day in the order of arrival: so many, or as many as the characters allow. */
  arrivals(
    day: number,
    after: number,
    upTo: number,
    eventsMax: number,
    charactersMax: number,
  ): { rows: { seq: number; body: string }[]; isAll: boolean } {
    const rows: { seq: number; body: string }[] = [];
    let characters = 0;
    const statement = days
      .get(day)
      ?.sql("SELECT seq, body FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?");
    for (const row of statement?.iterate(after, upTo, eventsMax) ?? []) {
      rows.push(row as { seq: number; body: string });
      characters += rows.at(-1)!.body.length;
      if (characters >= charactersMax) return { rows, isAll: false };
    }
    return { rows, isAll: rows.length < eventsMax };
  },

  /** Arrival times rise with the sequence, so that a few looks find the place. */
  lastArrivalBefore(day: number, ms: number): Arrived | undefined {
    const reader = days.get(day);
    // Asked for both in one, the engine would read every row.
    const ends = reader
      ?.sql("SELECT (SELECT min(seq) FROM events) AS low, (SELECT max(seq) FROM events) AS high")
      .get();
    let { low, high } = (ends ?? { low: null, high: null }) as { low: number | null; high: number | null };
    if (!reader || low === null || high === null) return undefined;
    const upTo = reader.sql(
      "SELECT seq, json_extract(body, '$.id') AS id FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1",
    );
    let last: Arrived | undefined;
    for (let at = high; low <= high; at = Math.floor((low + high) / 2)) {
      const found = upTo.get(at) as unknown as Arrived;
      if (timeOfId(found.id) < ms) {
        last = found;
        low = at + 1;
      } else high = found.seq - 1;
    }
    return last;
  },

  find(day: number, seq: number): Row | undefined {
    return days.get(day)?.sql("SELECT seq, ts, body FROM events WHERE seq = ?").get(seq) as Row | undefined;
  },

  findToken(day: number, token: string): string | undefined {
    const reader = days.get(day);
    const row = reader?.sql("SELECT body FROM events WHERE token = ? ORDER BY seq DESC LIMIT 1").get(token);
    // Whoever sends it again takes the answer for an acknowledgement.
    if (row) reader?.identity.verify();
    return (row as { body: string } | undefined)?.body;
  },

  /** Those whose token goes on with a number, the newest last. */
  findTokens(day: number, beginning: string): { number: number; id: string }[] {
    const reader = days.get(day);
    const rows = reader
      ?.sql(
        `SELECT CAST(substr(token, ?3) AS INTEGER) AS number, json_extract(body, '$.id') AS id FROM events
         WHERE token >= ?1 AND token < ?2 ORDER BY seq`,
      )
      .all(`${beginning}0`, `${beginning}:`, beginning.length + 1);
    if (rows && rows.length > 0) reader?.identity.verify();
    return (rows ?? []) as { number: number; id: string }[];
  },

  /** How many rows a day has, the last sequence number in it and the number of the last change to one of them. */
  summary(day: number): {
    rows: number;
    lastSeq: number;
    lastBody: string | undefined;
    lastAmendment: number;
    /** Whether the file is of the version that this one writes. */
    isCurrent: boolean;
  } {
    const reader = days.get(day);
    if (!reader) return { rows: 0, lastSeq: 0, lastBody: undefined, lastAmendment: 0, isCurrent: true };
    const { version } = reader.sql("SELECT user_version AS version FROM pragma_user_version").get() as {
      version: number;
    };
    const { rows } = reader.sql("SELECT coalesce(sum(rows), 0) AS rows FROM blocks").get() as { rows: number };
    const last = reader.sql("SELECT seq, body FROM events ORDER BY seq DESC LIMIT 1").get() as
      | { seq: number; body: string }
      | undefined;
    if (last && !isEventText(last.body))
      throw new DamagedFile(dayFile(layout, day), "the text of its last event is not one");
    return {
      rows,
      lastSeq: last?.seq ?? 0,
      lastBody: last?.body,
      lastAmendment: reader.lastAmendment(),
      isCurrent: version === DAY_MIGRATIONS.length,
    };
  },

  textCount(day: number, search: TextSearch, span: Span): number {
    const reader = days.get(day);
    if (!reader) return 0;
    const blocks = blocksOf(reader);
    const rows = blocks.reduce((sum, block) => sum + block.rows, 0);
    // A day's events, and what is known about them, only ever become more: with as much as before, the count is as before.
    const question = `${day} ${reader.lastAmendment()} ${span.from} ${span.to} ${JSON.stringify([search.terms, search.phrases])}`;
    const known = counts.get(question);
    if (known?.rows === rows) return known.count;
    const count = countText(reader, blocks, search, span);
    counts.set(question, { rows, count });
    return count;
  },

  /** The newest matches of a day below a place. */
  textPage(day: number, search: TextSearch, span: Span, after: ListPlace | undefined, limit: number): ListPlace[] {
    const reader = days.get(day);
    if (!reader) return [];
    const match = resolve(reader, search.terms)?.match;
    if (match === undefined) return [];
    const isBelow = (row: ListPlace) => !after || newestFirst(after, row) < 0;
    if (search.phrases.length > 0) {
      let best: ListPlace[] = [];
      visitVerified(reader, match, search, span, (row) => {
        if (isBelow(row)) best.push({ ts: row.ts, seq: row.seq });
        if (best.length > limit + TEXT_CHUNK) best = best.sort(newestFirst).slice(0, limit);
      });
      return best.sort(newestFirst).slice(0, limit);
    }
    // Matches come in order of arrival, which is nearly the order of time. latest[i]: no row up to block i is newer.
    const blocks = blocksOf(reader);
    const latest: number[] = [];
    for (const block of blocks) latest.push(Math.max(block.max_ts, latest.at(-1) ?? 0));
    const select = reader.sql(
      `SELECT words.rowid AS seq, ts FROM words JOIN events ON events.seq = words.rowid
       WHERE words MATCH ? AND words.rowid < ${PLACE} ORDER BY words.rowid DESC LIMIT ${TEXT_CHUNK}`,
    );
    let found: ListPlace[] = [];
    let below = 2 ** 41;
    let index = blocks.length - 1;
    // Skip what is wholly newer than asked for, without looking at it.
    const top = after ? after.ts : span.to;
    while (index >= 0 && blocks[index]!.min_ts > top) below = firstSeq(blocks[index--]!);
    for (;;) {
      const chunk = select.all(match, below) as unknown as ListPlace[];
      for (const row of chunk) if (row.ts >= span.from && row.ts < span.to && isBelow(row)) found.push(row);
      if (found.length > limit + TEXT_CHUNK) found = found.sort(newestFirst).slice(0, limit);
      if (chunk.length < TEXT_CHUNK) break;
      below = chunk.at(-1)!.seq;
      while (index >= 0 && firstSeq(blocks[index]!) >= below) index--;
      const newestLeft = index >= 0 ? latest[index]! : -1;
      if (newestLeft < span.from || isSettled(found, limit, newestLeft)) break;
    }
    return found.sort(newestFirst).slice(0, limit);
  },

  /** Whether this one event has the words. */
  textHas(day: number, terms: readonly Term[], seq: number): boolean {
    const match = matchOf(terms.map(spellings));
    const found = days
      .get(day)
      ?.sql(`SELECT rowid FROM words WHERE words MATCH ? AND rowid = ${PLACE}`)
      .get(match, seq);
    return found !== undefined;
  },

  /** Before a day is removed. */
  forget(day: number): void {
    days.close(day);
  },

  close(): void {
    days.closeAll();
  },
};

function countText(reader: DayReader, blocks: readonly Block[], search: TextSearch, span: Span): number {
  const resolved = resolve(reader, search.terms);
  if (!resolved) return 0;
  let count = 0;
  if (search.phrases.length > 0) {
    visitVerified(reader, resolved.match, search, span, () => count++);
    return count;
  }
  const parts = sections(blocks, span);
  // The index knows how many events have a word: that is many times faster than counting them, where one word is all.
  if (resolved.events !== undefined && parts.every(({ whole }) => whole)) return resolved.events;
  for (const { low, high, whole } of parts) {
    const counted = whole
      ? reader
          .sql(`SELECT count(*) AS n FROM words WHERE words MATCH ? AND rowid BETWEEN ${PLACE} AND ${PLACE}`)
          .get(resolved.match, low, high)
      : reader
          .sql(
            `SELECT count(*) AS n FROM words JOIN events ON events.seq = words.rowid
             WHERE words MATCH ? AND words.rowid BETWEEN ${PLACE} AND ${PLACE} AND ts >= ? AND ts < ?`,
          )
          .get(resolved.match, low, high, span.from, span.to);
    count += (counted as { n: number }).n;
  }
  return count;
}

/**
 * What to ask the index of a day. A beginning is replaced by the words that it stands for there, since the index would
 * put their lists together before it gives the first match. Undefined when some word does not occur at all.
 */
function resolve(reader: DayReader, terms: readonly Term[]): { match: string; events: number | undefined } | undefined {
  reader.needVocabulary();
  const select = reader.sql(
    `SELECT term, doc FROM temp.vocabulary WHERE term >= ? AND term <= ? LIMIT ${VOCABULARY_WORDS_MAX}`,
  );
  let events: number | undefined;
  const choices: (readonly Term[])[] = [];
  for (const term of terms) {
    const spelled = spellings(term);
    const found = spelled.flatMap(({ word, goesOn }) => {
      return select.all(word, goesOn ? word + AFTER_ALL : word) as { term: string; doc: number }[];
    });
    if (found.length === 0) return undefined;
    if (found.length >= VOCABULARY_WORDS_MAX) choices.push(spelled);
    else {
      const words = independentWords(found.map((row) => row.term));
      choices.push(words.map((word) => ({ word, goesOn: false })));
      if (terms.length === 1 && words.length === 1) events = found.find((row) => row.term === words[0])!.doc;
    }
  }
  return { match: matchOf(choices), events };
}

/** Visits matches whose own text, too, holds what is searched. */
function visitVerified(
  reader: DayReader,
  match: string,
  search: TextSearch,
  span: Span,
  visit: (row: Row) => void,
): void {
  const matches = reader
    .sql(
      `SELECT words.rowid AS seq, ts, body FROM words JOIN events ON events.seq = words.rowid
       WHERE words MATCH ? AND ts >= ? AND ts < ?`,
    )
    .iterate(match, span.from, span.to) as unknown as Iterable<Row>;
  const until = performance.now() + VERIFY_MS_MAX;
  let looked = 0;
  for (const row of matches) {
    if (++looked % VERIFY_CHECK_ROWS === 0 && performance.now() > until) {
      throw new QuestionRefused(
        "search",
        `took longer than ${VERIFY_MS_MAX / 1000} s: narrow the range of time, or add a word`,
      );
    }
    if (holdsPhrases(parseExact(row.body) as { [key: string]: unknown }, search.phrases)) visit(row);
  }
}

/** No row that is still to come can be among the first ones. */
function isSettled(found: ListPlace[], limit: number, newestLeft: number): boolean {
  if (found.length < limit) return false;
  return found.sort(newestFirst)[limit - 1]!.ts > newestLeft;
}

export type ReaderApi = typeof api;

serveThread(namingFiles(api, (day) => dayFile(layout, day)));
