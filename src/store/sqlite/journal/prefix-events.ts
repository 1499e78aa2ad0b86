import type { Term } from "../../search/text-search.ts";
import { PREFIX_END } from "../../search/words.ts";
import { SEQ_PARAMETER, type DayReader } from "./day-file.ts";
import { addListed, intersect, type SeqSet } from "./seq-set.ts";

// The events that contain a prefix which very many words start with. FTS5 would merge the posting lists of all those words
// within one statement that nothing interrupts, again for each statement. Here the lists are read one after another, some
// thousand entries at a time, into a set; the search can stop between two reads.

/** Index entries that one statement reads, in some tens of milliseconds. */
const ENTRIES_AT_ONCE_MAX = 20_000;
/** Range of sequence numbers that one statement reads of a very frequent word. */
const SEQS_AT_ONCE = 2 ** 16;
const SEQ_MAX = 2 ** 41;

/** Progress of collecting the events of all prefixes. */
export interface PrefixProgress {
  /** For each prefix, its spellings: an event needs a word that starts with one of them. */
  readonly prefixes: readonly (readonly Term[])[];
  /** The index of the prefix that is being read, the index of its spelling, and the word to continue from. */
  readonly prefix: number;
  readonly spelling: number;
  readonly word: string | undefined;
  /** Within a word of very many events: the sequence number to continue from. */
  readonly seq: number | undefined;
  /** Events of the prefix that is being read. */
  readonly found: SeqSet;
  /** Events with all prefixes before it; undefined during the first one. */
  readonly all: SeqSet | undefined;
}

export function startGathering(prefixes: PrefixProgress["prefixes"]): PrefixProgress {
  return {
    prefixes,
    prefix: 0,
    spelling: 0,
    word: undefined,
    seq: undefined,
    found: new Map(),
    all: undefined,
  };
}

/** The events with all prefixes; undefined while they are being collected. */
export function gathered({ prefixes, prefix, all }: PrefixProgress): SeqSet | undefined {
  return prefix === prefixes.length ? all : undefined;
}

/** Collects until `isOver` returns true. */
export function gather(reader: DayReader, soFar: PrefixProgress, isOver: () => boolean): PrefixProgress {
  let state = soFar;
  while (gathered(state) === undefined) {
    state = state.seq === undefined ? readEntries(reader, state) : readWord(reader, state, state.seq);
    if (isOver()) break;
  }
  return state;
}

interface PrefixEntries {
  readonly first: string | null;
  readonly last: string | null;
  readonly entries: number;
  readonly seqs: string | null;
}

/** The next entries of the index, which are ordered by word. */
function readEntries(reader: DayReader, state: PrefixProgress): PrefixProgress {
  const { word: start, isPrefix } = state.prefixes[state.prefix]![state.spelling]!;
  reader.ensurePostings();
  const { first, last, entries, seqs } = reader
    .sql(
      `SELECT min(term) AS first, max(term) AS last, count(*) AS entries, group_concat(doc) AS seqs FROM
       (SELECT term, doc FROM temp.postings WHERE term >= ? AND term <= ? LIMIT ${ENTRIES_AT_ONCE_MAX})`,
    )
    .get(state.word ?? start, isPrefix ? start + PREFIX_END : start) as unknown as PrefixEntries;
  addListed(state.found, seqs);
  if (entries < ENTRIES_AT_ONCE_MAX) return nextSpelling(state);
  // The last word may have more entries. If it is the only one, reading from it again would never advance.
  return first === last ? { ...state, word: last!, seq: 0 } : { ...state, word: last! };
}

/** The next events of one word, from this sequence number. */
function readWord(reader: DayReader, state: PrefixProgress, seq: number): PrefixProgress {
  const { word } = state as { readonly word: string };
  const at = reader
    .sql(`SELECT rowid AS seq FROM words WHERE words MATCH ? AND rowid >= ${SEQ_PARAMETER} ORDER BY rowid LIMIT 1`)
    .get(`"${word}"`, seq) as { readonly seq: number } | undefined;
  if (at === undefined || at.seq > SEQ_MAX) return { ...state, word: `${word}\0`, seq: undefined };
  const end = at.seq + SEQS_AT_ONCE;
  const { seqs } = reader
    .sql(
      `SELECT group_concat(rowid) AS seqs FROM words WHERE words MATCH ? AND rowid BETWEEN ${SEQ_PARAMETER} AND ${SEQ_PARAMETER}`,
    )
    .get(`"${word}"`, at.seq, end - 1) as { readonly seqs: string | null };
  addListed(state.found, seqs);
  return { ...state, seq: end };
}

function nextSpelling(state: PrefixProgress): PrefixProgress {
  const { prefixes, prefix, spelling, found, all } = state;
  const next = { ...state, word: undefined };
  if (spelling + 1 < prefixes[prefix]!.length) return { ...next, spelling: spelling + 1 };
  const both = all ? intersect(all, found) : found;
  // No event has all prefixes: the remaining ones need not be read.
  const isDecided = both.size === 0;
  return {
    ...next,
    prefix: isDecided ? prefixes.length : prefix + 1,
    spelling: 0,
    found: new Map(),
    all: both,
  };
}
