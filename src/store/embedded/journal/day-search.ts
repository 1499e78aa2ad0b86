import { parseExact } from "../../../lib/exact-json.ts";
import { holdsPhrases, independentWords, matchOf, spellings, type Term, type TextSearch } from "../text-search.ts";
import { AFTER_ALL } from "../words.ts";
import { BLOCK_SHIFT, type DayReader } from "./day-file.ts";
import { newestFirst, type ListPlace } from "./list-place.ts";

// A full-text search of one day. Nothing interrupts SQLite within a statement, so a search is a walk over ranges of
// sequence numbers: each call does a part of it and says where the next one goes on. Between two parts the search may be
// stopped, and others have their turn.

/**
 * A place in the index of words. A number is bound as one that may have a fraction, which the index takes for no bound at all:
 * it looks at every match, or takes any for the one that was asked for.
 */
export const PLACE = "CAST(? AS INTEGER)";

/** A part ends with the first statement that ends after this. */
const PART_MS = 200;
/** Blocks that one statement looks at. */
const BLOCKS_TOGETHER_MAX = 64;
const TEXT_CHUNK = 256;
/** A beginning that more words have is counted event by event. */
const VOCABULARY_WORDS_MAX = 64;

/** Half-open range of times within the day. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface Row extends ListPlace {
  readonly body: string;
}

export interface CountPart {
  readonly count: number;
  /** How many rows the day had when the walk began. */
  readonly rows: number;
  /** The sequence number to go on from; undefined at the end. */
  readonly next: number | undefined;
}

export interface PagePart {
  readonly places: ListPlace[];
  /** As above; for a search without phrases, which walks back, the number to stay below. */
  readonly next: number | undefined;
}

interface Block {
  readonly block: number;
  readonly min_ts: number;
  readonly max_ts: number;
  readonly rows: number;
}

/** Consecutive blocks: wholly within the span (no time need be looked at) or only partly. */
interface Section {
  readonly low: number;
  high: number;
  readonly whole: boolean;
  blocks: number;
}

interface Resolved {
  readonly match: string;
  /** How many events match, where the index knows. */
  readonly events: number | undefined;
  /** A beginning of very many words: the index merges their lists anew for each statement. */
  readonly isMerged: boolean;
}

export function rowsOfDay(reader: DayReader): number {
  return blocksOf(reader).reduce((sum, block) => sum + block.rows, 0);
}

function blocksOf(reader: DayReader): Block[] {
  return reader.sql("SELECT block, min_ts, max_ts, rows FROM blocks ORDER BY block").all() as unknown as Block[];
}

const firstSeq = (block: Block) => block.block * 2 ** BLOCK_SHIFT;

function sections(blocks: readonly Block[], span: Span, from: number, { isMerged }: Resolved): Section[] {
  const found: Section[] = [];
  for (const block of blocks) {
    if (block.max_ts < span.from || block.min_ts >= span.to) continue;
    const whole = block.min_ts >= span.from && block.max_ts < span.to;
    const last = found.at(-1);
    const low = firstSeq(block);
    const high = low + 2 ** BLOCK_SHIFT - 1;
    if (high < from) continue;
    const joins = last && last.whole === whole && last.high + 1 === low;
    if (joins && (isMerged || last.blocks < BLOCKS_TOGETHER_MAX)) {
      last.high = high;
      last.blocks++;
    } else found.push({ low: Math.max(low, from), high, whole, blocks: 1 });
  }
  return found;
}

/** Tells when a part has taken its time. */
function clock(ms: number): () => boolean {
  const until = performance.now() + ms;
  return () => performance.now() > until;
}

export function countPart(
  reader: DayReader,
  search: TextSearch,
  span: Span,
  soFar: CountPart | undefined,
  partMs = PART_MS,
): CountPart {
  const isOver = clock(partMs);
  const blocks = blocksOf(reader);
  let { count, rows } = soFar ?? { count: 0, rows: rowsOfDay(reader) };
  const resolved = resolve(reader, search.terms);
  if (!resolved) return { count, rows, next: undefined };
  const parts = sections(blocks, span, soFar?.next ?? 0, resolved);
  // The index knows how many events have a word: that is many times faster than counting them, where one word is all.
  const isKnown = search.phrases.length === 0 && !soFar && parts.every(({ whole }) => whole);
  if (isKnown && resolved.events !== undefined) return { count: resolved.events, rows, next: undefined };
  for (const section of parts) {
    if (search.phrases.length === 0) count += countSection(reader, resolved, span, section);
    else {
      for (const row of matchesOf(reader, resolved, span, section)) {
        if (holdsAll(row, search)) count++;
        if (isOver()) return { count, rows, next: row.seq + 1 };
      }
    }
    if (isOver()) return { count, rows, next: section.high + 1 };
  }
  return { count, rows, next: undefined };
}

function countSection(reader: DayReader, { match }: Resolved, span: Span, { low, high, whole }: Section): number {
  const counted = whole
    ? reader
        .sql(`SELECT count(*) AS n FROM words WHERE words MATCH ? AND rowid BETWEEN ${PLACE} AND ${PLACE}`)
        .get(match, low, high)
    : reader
        .sql(
          `SELECT count(*) AS n FROM words JOIN events ON events.seq = words.rowid
           WHERE words MATCH ? AND words.rowid BETWEEN ${PLACE} AND ${PLACE} AND ts >= ? AND ts < ?`,
        )
        .get(match, low, high, span.from, span.to);
  return (counted as { n: number }).n;
}

/** Events of a section that have the words, in the order of arrival. */
function matchesOf(reader: DayReader, { match }: Resolved, span: Span, { low, high }: Section): Iterable<Row> {
  return reader
    .sql(
      `SELECT words.rowid AS seq, ts, body FROM words JOIN events ON events.seq = words.rowid
       WHERE words MATCH ? AND words.rowid BETWEEN ${PLACE} AND ${PLACE} AND ts >= ? AND ts < ? ORDER BY words.rowid`,
    )
    .iterate(match, low, high, span.from, span.to) as unknown as Iterable<Row>;
}

function holdsAll({ body }: Row, { phrases }: TextSearch): boolean {
  return holdsPhrases(parseExact(body) as { [key: string]: unknown }, phrases);
}

/** The newest matches of a day below a place. */
export function pagePart(
  reader: DayReader,
  search: TextSearch,
  range: { readonly span: Span; readonly after: ListPlace | undefined },
  limit: number,
  soFar: PagePart | undefined,
  partMs = PART_MS,
): PagePart {
  const resolved = resolve(reader, search.terms);
  if (!resolved) return { places: soFar?.places ?? [], next: undefined };
  const found = new Newest(limit, range.after, soFar?.places);
  const walk = search.phrases.length > 0 ? verifiedPage : indexedPage;
  return {
    next: walk(reader, resolved, search, { span: range.span, found, next: soFar?.next, isOver: clock(partMs) }),
    places: found.places(),
  };
}

/** The newest of the places that are put in. */
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

  /** No row of this time or an earlier one can be among the first ones. */
  isSettled(newestLeft: number): boolean {
    if (this.#found.length < this.#limit) return false;
    return this.places()[this.#limit - 1]!.ts > newestLeft;
  }
}

interface Page {
  readonly span: Span;
  readonly found: Newest;
  /** Where to go on. */
  readonly next: number | undefined;
  readonly isOver: () => boolean;
}

type Walk = (reader: DayReader, resolved: Resolved, search: TextSearch, page: Page) => number | undefined;

const verifiedPage: Walk = (reader, resolved, search, { span, found, next, isOver }) => {
  for (const section of sections(blocksOf(reader), span, next ?? 0, resolved)) {
    for (const row of matchesOf(reader, resolved, span, section)) {
      if (holdsAll(row, search)) found.add(row);
      if (isOver()) return row.seq + 1;
    }
    if (isOver()) return section.high + 1;
  }
  return undefined;
};

/** Matches come in order of arrival, which is nearly the order of time. */
const indexedPage: Walk = (reader, resolved, _search, { span, found, next, isOver }) => {
  const blocks = blocksOf(reader);
  // No row up to block i is newer than latest[i].
  const latest: number[] = [];
  for (const block of blocks) latest.push(Math.max(block.max_ts, latest.at(-1) ?? 0));
  const select = reader.sql(
    `SELECT words.rowid AS seq, ts FROM words JOIN events ON events.seq = words.rowid
     WHERE words MATCH ? AND words.rowid BETWEEN ${PLACE} AND ${PLACE} ORDER BY words.rowid DESC LIMIT ${TEXT_CHUNK}`,
  );
  let below = next ?? 2 ** 41;
  let index = blocks.length - 1;
  // Skip what is wholly newer than asked for, without looking at it.
  const top = found.after ? found.after.ts : span.to;
  while (index >= 0 && blocks[index]!.min_ts > top) below = Math.min(below, firstSeq(blocks[index--]!));
  for (;;) {
    while (index >= 0 && firstSeq(blocks[index]!) >= below) index--;
    if (index < 0 || latest[index]! < span.from || found.isSettled(latest[index]!)) return undefined;
    const low = resolved.isMerged ? 0 : firstSeq(blocks[Math.max(0, index - BLOCKS_TOGETHER_MAX + 1)]!);
    const chunk = select.all(resolved.match, low, below - 1) as unknown as ListPlace[];
    for (const row of chunk) if (row.ts >= span.from && row.ts < span.to) found.add(row);
    below = chunk.length < TEXT_CHUNK ? low : chunk.at(-1)!.seq;
    if (isOver()) return below;
  }
};

/**
 * What to ask the index of a day. A beginning is replaced by the words that it stands for there, since the index would
 * put their lists together before it gives the first match. Undefined when some word does not occur at all.
 */
function resolve(reader: DayReader, terms: readonly Term[]): Resolved | undefined {
  reader.needVocabulary();
  const select = reader.sql(
    `SELECT term, doc FROM temp.vocabulary WHERE term >= ? AND term <= ? LIMIT ${VOCABULARY_WORDS_MAX}`,
  );
  let events: number | undefined;
  let isMerged = false;
  const choices: (readonly Term[])[] = [];
  for (const term of terms) {
    const spelled = spellings(term);
    const found = spelled.flatMap(({ word, goesOn }) => {
      return select.all(word, goesOn ? word + AFTER_ALL : word) as { term: string; doc: number }[];
    });
    if (found.length === 0) return undefined;
    if (found.length >= VOCABULARY_WORDS_MAX) {
      choices.push(spelled);
      isMerged = true;
    } else {
      const words = independentWords(found.map((row) => row.term));
      choices.push(words.map((word) => ({ word, goesOn: false })));
      if (terms.length === 1 && words.length === 1) events = found.find((row) => row.term === words[0])!.doc;
    }
  }
  return { match: matchOf(choices), events, isMerged };
}
