import { parseExact } from "../../../lib/exact-json.ts";
import type { Event } from "../../../model/event.ts";
import { spacedEventWords } from "../../search/indexed-words.ts";
import {
  containsPhrases,
  independentWords,
  matchOf,
  spacedTerm,
  spellings,
  type Term,
  type TextSearch,
} from "../../search/text-search.ts";
import { PREFIX_END } from "../../search/words.ts";
import { gather, gathered, startGathering, type PrefixProgress } from "./prefix-events.ts";
import { BLOCK_SHIFT, SEQ_PARAMETER, type DayReader } from "./day-file.ts";
import { newestFirst, type ListPlace } from "./list-position.ts";
import { falling, has, listed, rising, type SeqSet } from "./seq-set.ts";

// A full-text search of one day. SQLite cannot be interrupted within a statement, so a search walks over ranges of sequence
// numbers: each call does a part of it and returns where the next one continues. Between two parts the search can be stopped,
// and other queries run.

/** A part ends with the first statement that ends after this. */
const PART_MS = 200;
/** Blocks that one statement covers. */
const BLOCKS_TOGETHER_MAX = 64;
const TEXT_CHUNK = 256;
/** A prefix of more words has its events collected before the walk. */
const VOCABULARY_WORDS_MAX = 64;
const SEQ_MAX = 2 ** 41;

/** Half-open range of times within the day. */
export interface DaySpan {
  readonly from: number;
  readonly to: number;
}

export interface FoundRow extends ListPlace {
  readonly body: string;
}

/** State that is passed from part to part. */
interface Walk {
  /** The query of the index; undefined if some word does not occur at all. */
  readonly resolved: Resolved | undefined;
  /** For prefixes of very many words. */
  readonly gathering: PrefixProgress | undefined;
}

export interface CountPart {
  readonly count: number;
  /** The number of rows in the day when the walk began. */
  readonly rows: number;
  /** The sequence number to continue from; undefined at the end. */
  readonly next: number | undefined;
  readonly walk?: Walk | undefined;
}

export interface PagePart {
  readonly places: ListPlace[];
  /** As above; a search without phrases walks back and continues below this number. */
  readonly next: number | undefined;
  readonly walk?: Walk | undefined;
}

interface DayBlock {
  readonly block: number;
  readonly min_ts: number;
  readonly max_ts: number;
  readonly rows: number;
}

/** Consecutive blocks, all of them wholly within the span (times need no test) or all only partly. */
interface Section {
  readonly low: number;
  high: number;
  readonly whole: boolean;
  blocks: number;
}

interface Resolved {
  /** An FTS5 query; empty if the search has only prefixes of very many words. */
  readonly match: string;
  /** The number of matching events, if the index has it. */
  readonly events: number | undefined;
  /** Spellings of each prefix of very many words. */
  readonly prefixes: readonly (readonly Term[])[];
}

/** The query that remains once the events of prefixes are collected: matches must also be in `among`. */
interface IndexQuery {
  readonly match: string;
  readonly among: SeqSet | undefined;
}

export function rowsOfDay(reader: DayReader): number {
  return blocksOf(reader).reduce((sum, block) => sum + block.rows, 0);
}

function blocksOf(reader: DayReader): DayBlock[] {
  return reader.sql("SELECT block, min_ts, max_ts, rows FROM blocks ORDER BY block").all() as unknown as DayBlock[];
}

const firstSeq = (block: DayBlock) => block.block * 2 ** BLOCK_SHIFT;

function sections(blocks: readonly DayBlock[], span: DaySpan, from: number): Section[] {
  const found: Section[] = [];
  for (const block of blocks) {
    if (block.max_ts < span.from || block.min_ts >= span.to) continue;
    const whole = block.min_ts >= span.from && block.max_ts < span.to;
    const last = found.at(-1);
    const low = firstSeq(block);
    const high = low + 2 ** BLOCK_SHIFT - 1;
    if (high < from) continue;
    const joins = last && last.whole === whole && last.high + 1 === low;
    if (joins && last.blocks < BLOCKS_TOGETHER_MAX) {
      last.high = high;
      last.blocks++;
    } else found.push({ low: Math.max(low, from), high, whole, blocks: 1 });
  }
  return found;
}

/** True if the event contains the words. */
export function hasWords(reader: DayReader, terms: readonly Term[], seq: number): boolean {
  const resolved = resolve(reader, terms);
  if (!resolved) return false;
  const { match, prefixes } = resolved;
  const find = reader.sql(`SELECT rowid FROM words WHERE words MATCH ? AND rowid = ${SEQ_PARAMETER}`);
  if (match !== "" && !find.get(match, seq)) return false;
  if (prefixes.length === 0) return true;
  // The index would read the posting lists of all those words; the event's own text has only its own.
  const row = reader.sql("SELECT ts, body FROM events WHERE seq = ?").get(seq) as unknown as FoundRow | undefined;
  if (!row) return false;
  const own = spacedEventWords(parseExact(row.body) as Event, row.ts);
  return prefixes.every((spelled) => spelled.some((term) => own.includes(spacedTerm(term))));
}

/** Returns a function that is true once the time is up. */
function deadline(ms: number): () => boolean {
  const until = performance.now() + ms;
  return () => performance.now() > until;
}

export function countPart(
  reader: DayReader,
  search: TextSearch,
  span: DaySpan,
  soFar: CountPart | undefined,
  partMs = PART_MS,
): CountPart {
  const isOver = deadline(partMs);
  let { count, rows } = soFar ?? { count: 0, rows: rowsOfDay(reader) };
  const walk = continueWalk(reader, search, soFar?.walk, isOver);
  const { resolved } = walk;
  if (!resolved) return { count, rows, next: undefined };
  const query = queryOf(walk);
  if (!query) return { count, rows, next: 0, walk };
  const parts = sections(blocksOf(reader), span, soFar?.next ?? 0);
  // The index stores how many events contain a word. For a single word that is many times faster than counting them.
  const isKnown = search.phrases.length === 0 && !soFar && parts.every(({ whole }) => whole);
  if (isKnown && resolved.events !== undefined) return { count: resolved.events, rows, next: undefined };
  for (const section of parts) {
    if (search.phrases.length === 0) count += countSection(reader, query, span, section);
    else {
      for (const row of matchesOf(reader, query, span, section)) {
        if (containsAllPhrases(row, search)) count++;
        if (isOver()) return { count, rows, next: row.seq + 1, walk };
      }
    }
    if (isOver()) return { count, rows, next: section.high + 1, walk };
  }
  return { count, rows, next: undefined };
}

/** Resolves the search and collects events of prefixes until this part ends. */
function continueWalk(reader: DayReader, search: TextSearch, before: Walk | undefined, isOver: () => boolean): Walk {
  const resolved = before ? before.resolved : resolve(reader, search.terms);
  if (!resolved || resolved.prefixes.length === 0) return { resolved, gathering: undefined };
  return { resolved, gathering: gather(reader, before?.gathering ?? startGathering(resolved.prefixes), isOver) };
}

/** Undefined while events of prefixes are being collected. */
function queryOf({ resolved, gathering }: Walk): IndexQuery | undefined {
  const { match } = resolved!;
  if (!gathering) return { match, among: undefined };
  const among = gathered(gathering);
  return among && { match, among };
}

/** The collected events of a section that also contain the other words, in the order of arrival. */
function* gatheredOf(reader: DayReader, { match, among }: IndexQuery, low: number, high: number): Iterable<number> {
  if (match === "") return yield* rising(among!, low, high);
  const { seqs } = reader
    .sql(
      `SELECT group_concat(rowid) AS seqs FROM
       (SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ${SEQ_PARAMETER} AND ${SEQ_PARAMETER} ORDER BY rowid)`,
    )
    .get(match, low, high) as { readonly seqs: string | null };
  for (const seq of listed(seqs)) if (has(among!, seq)) yield seq;
}

function countSection(reader: DayReader, query: IndexQuery, span: DaySpan, section: Section): number {
  const { match, among } = query;
  const { low, high, whole } = section;
  if (among) {
    const timeOf = reader.sql("SELECT ts FROM events WHERE seq = ?");
    let count = 0;
    for (const seq of gatheredOf(reader, query, low, high)) {
      const ts = whole ? span.from : (timeOf.get(seq) as { ts: number }).ts;
      if (ts >= span.from && ts < span.to) count++;
    }
    return count;
  }
  const counted = whole
    ? reader
        .sql(
          `SELECT count(*) AS n FROM words WHERE words MATCH ? AND rowid BETWEEN ${SEQ_PARAMETER} AND ${SEQ_PARAMETER}`,
        )
        .get(match, low, high)
    : reader
        .sql(
          `SELECT count(*) AS n FROM words JOIN events ON events.seq = words.rowid
           WHERE words MATCH ? AND words.rowid BETWEEN ${SEQ_PARAMETER} AND ${SEQ_PARAMETER} AND ts >= ? AND ts < ?`,
        )
        .get(match, low, high, span.from, span.to);
  return (counted as { n: number }).n;
}

/** Events of a section that contain the words, in the order of arrival. */
function* matchesOf(reader: DayReader, query: IndexQuery, span: DaySpan, { low, high }: Section): Iterable<FoundRow> {
  const { match, among } = query;
  if (among) {
    const find = reader.sql("SELECT seq, ts, body FROM events WHERE seq = ?");
    for (const seq of gatheredOf(reader, query, low, high)) {
      const row = find.get(seq) as unknown as FoundRow;
      if (row.ts >= span.from && row.ts < span.to) yield row;
    }
    return;
  }
  yield* reader
    .sql(
      `SELECT words.rowid AS seq, ts, body FROM words JOIN events ON events.seq = words.rowid
       WHERE words MATCH ? AND words.rowid BETWEEN ${SEQ_PARAMETER} AND ${SEQ_PARAMETER} AND ts >= ? AND ts < ? ORDER BY words.rowid`,
    )
    .iterate(match, low, high, span.from, span.to) as unknown as Iterable<FoundRow>;
}

function containsAllPhrases({ body }: FoundRow, { phrases }: TextSearch): boolean {
  return containsPhrases(parseExact(body) as { [key: string]: unknown }, phrases);
}

/** Continues to find the newest matches of a day below a place. */
export function pagePart(
  reader: DayReader,
  search: TextSearch,
  range: { readonly span: DaySpan; readonly after: ListPlace | undefined },
  limit: number,
  soFar: PagePart | undefined,
  partMs = PART_MS,
): PagePart {
  const isOver = deadline(partMs);
  const walk = continueWalk(reader, search, soFar?.walk, isOver);
  if (!walk.resolved) return { places: [], next: undefined };
  const isVerified = search.phrases.length > 0;
  const query = queryOf(walk);
  if (!query) return { places: [], next: isVerified ? 0 : SEQ_MAX, walk };
  const found = new Newest(limit, range.after, soFar?.places);
  const turnPage = isVerified ? verifiedPage : query.among ? gatheredPage : indexedPage;
  const next = turnPage(reader, query, search, { span: range.span, found, next: soFar?.next, isOver });
  return { next, places: found.places(), walk: next === undefined ? undefined : walk };
}

/** Keeps the newest of the added places. */
class Newest {
  readonly #limit: number;
  readonly after: ListPlace | undefined;
  #found: ListPlace[];

  constructor(limit: number, after: ListPlace | undefined, found: readonly ListPlace[] = []) {
    this.#limit = limit;
    this.after = after;
    this.#found = [...found];
  }

  add({ ts, seq }: ListPlace): void {
    if (this.after && newestFirst(this.after, { ts, seq }) >= 0) return;
    this.#found.push({ ts, seq });
    if (this.#found.length > this.#limit + TEXT_CHUNK) this.#found = this.places();
  }

  places(): ListPlace[] {
    return this.#found.sort(newestFirst).slice(0, this.#limit);
  }

  /** True if no row of this time or earlier can be among the newest. */
  isSettled(newestLeft: number): boolean {
    if (this.#found.length < this.#limit) return false;
    return this.places()[this.#limit - 1]!.ts > newestLeft;
  }
}

interface Page {
  readonly span: DaySpan;
  readonly found: Newest;
  /** The sequence number to continue from. */
  readonly next: number | undefined;
  readonly isOver: () => boolean;
}

type TurnPage = (reader: DayReader, query: IndexQuery, search: TextSearch, page: Page) => number | undefined;

const verifiedPage: TurnPage = (reader, query, search, { span, found, next, isOver }) => {
  for (const section of sections(blocksOf(reader), span, next ?? 0)) {
    for (const row of matchesOf(reader, query, span, section)) {
      if (containsAllPhrases(row, search)) found.add(row);
      if (isOver()) return row.seq + 1;
    }
    if (isOver()) return section.high + 1;
  }
  return undefined;
};

/** Matches come in the order of arrival, which is nearly the order of time. */
const indexedPage: TurnPage = (reader, { match }, _search, page) => {
  const select = reader.sql(
    `SELECT words.rowid AS seq, ts FROM words JOIN events ON events.seq = words.rowid
     WHERE words MATCH ? AND words.rowid BETWEEN ${SEQ_PARAMETER} AND ${SEQ_PARAMETER} ORDER BY words.rowid DESC LIMIT ${TEXT_CHUNK}`,
  );
  return walkBack(reader, page, (low, high) => {
    const places = select.all(match, low, high) as unknown as ListPlace[];
    return { places, last: places.length < TEXT_CHUNK ? undefined : places.at(-1)!.seq };
  });
};

const gatheredPage: TurnPage = (reader, query, _search, page) => {
  const timeOf = reader.sql("SELECT seq, ts FROM events WHERE seq = ?");
  return walkBack(reader, page, (low, high) => {
    const seqs: number[] = [];
    for (const seq of falling(query.among!, low, high)) if (seqs.push(seq) === TEXT_CHUNK) break;
    if (seqs.length === 0) return { places: [], last: undefined };
    const matching = query.match === "" ? seqs : [...gatheredOf(reader, query, seqs.at(-1)!, seqs[0]!)].reverse();
    const places = matching.map((seq) => timeOf.get(seq) as unknown as ListPlace);
    return { places, last: seqs.length < TEXT_CHUNK ? undefined : seqs.at(-1)! };
  });
};

/** Reads the last matches between two numbers. `last` is the lowest number that was read, undefined if all were. */
type ReadBack = (low: number, high: number) => { readonly places: ListPlace[]; readonly last: number | undefined };

function walkBack(reader: DayReader, { span, found, next, isOver }: Page, read: ReadBack): number | undefined {
  const blocks = blocksOf(reader);
  // No row up to block i is newer than latest[i].
  const latest: number[] = [];
  for (const block of blocks) latest.push(Math.max(block.max_ts, latest.at(-1) ?? 0));
  let index = blocks.length - 1;
  if (index < 0) return undefined;
  let below = Math.min(next ?? SEQ_MAX, firstSeq(blocks[index]!) + 2 ** BLOCK_SHIFT);
  // Skip blocks that are wholly newer than the range.
  const top = found.after ? found.after.ts : span.to;
  while (index >= 0 && blocks[index]!.min_ts > top) below = Math.min(below, firstSeq(blocks[index--]!));
  for (;;) {
    while (index >= 0 && firstSeq(blocks[index]!) >= below) index--;
    if (index < 0 || latest[index]! < span.from || found.isSettled(latest[index]!)) return undefined;
    const low = firstSeq(blocks[Math.max(0, index - BLOCKS_TOGETHER_MAX + 1)]!);
    const { places, last } = read(low, below - 1);
    for (const row of places) if (row.ts >= span.from && row.ts < span.to) found.add(row);
    below = last ?? low;
    if (isOver()) return below;
  }
}

/**
 * Resolves terms to a query of the day's index. A prefix is replaced by the words that start with it, since FTS5 would merge
 * their posting lists before it returns the first match. A prefix of too many words stays a prefix. Undefined if some word
 * does not occur at all.
 */
function resolve(reader: DayReader, terms: readonly Term[]): Resolved | undefined {
  reader.ensureVocabulary();
  const select = reader.sql(
    `SELECT term, doc FROM temp.vocabulary WHERE term >= ? AND term <= ? LIMIT ${VOCABULARY_WORDS_MAX}`,
  );
  let events: number | undefined;
  const prefixes: (readonly Term[])[] = [];
  const choices: (readonly Term[])[] = [];
  for (const term of terms) {
    const spelled = spellings(term);
    const found = spelled.flatMap(({ word, isPrefix }) => {
      return select.all(word, isPrefix ? word + PREFIX_END : word) as { term: string; doc: number }[];
    });
    if (found.length === 0) return undefined;
    if (found.length >= VOCABULARY_WORDS_MAX) {
      prefixes.push(spelled);
    } else {
      const words = independentWords(found.map((row) => row.term));
      choices.push(words.map((word) => ({ word, isPrefix: false })));
      if (terms.length === 1 && words.length === 1) events = found.find((row) => row.term === words[0])!.doc;
    }
  }
  return { match: matchOf(choices), events, prefixes };
}
