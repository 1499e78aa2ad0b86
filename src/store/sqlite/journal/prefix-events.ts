import type { Term } from "../../search/text-search.ts";
import { AFTER_ALL } from "../../search/words.ts";
import { PLACE, type DayReader } from "./day-file.ts";
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
  /** For each beginning, its spellings: an event needs a word of one of them. */
  readonly beginnings: readonly (readonly Term[])[];
  /** The beginning that is being read, its spelling, and the word to go on from. */
  readonly beginning: number;
  readonly spelling: number;
  readonly word: string | undefined;
  /** Within a word that very many events have: the sequence number to go on from. */
  readonly seq: number | undefined;
  /** Events of the beginning that is being read. */
  readonly found: SeqSet;
  /** Events that have all beginnings before it; undefined before the second one. */
  readonly all: SeqSet | undefined;
}

export function startGathering(beginnings: PrefixProgress["beginnings"]): PrefixProgress {
  return {
    beginnings,
    beginning: 0,
    spelling: 0,
    word: undefined,
    seq: undefined,
    found: new Map(),
    all: undefined,
  };
}

/** The events that have all beginnings; undefined while they are being gathered. */
export function gathered({ beginnings, beginning, all }: PrefixProgress): SeqSet | undefined {
  return beginning === beginnings.length ? all : undefined;
}

/** Goes on for a while. */
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
  const { word: start, goesOn } = state.beginnings[state.beginning]![state.spelling]!;
  reader.needPostings();
  const { first, last, entries, seqs } = reader
    .sql(
      `SELECT min(term) AS first, max(term) AS last, count(*) AS entries, group_concat(doc) AS seqs FROM
       (SELECT term, doc FROM temp.postings WHERE term >= ? AND term <= ? LIMIT ${ENTRIES_AT_ONCE_MAX})`,
    )
    .get(state.word ?? start, goesOn ? start + AFTER_ALL : start) as unknown as PrefixEntries;
  addListed(state.found, seqs);
  if (entries < ENTRIES_AT_ONCE_MAX) return nextSpelling(state);
  // The last word may go on. If it is the only one it would never end this way.
  return first === last ? { ...state, word: last!, seq: 0 } : { ...state, word: last! };
}

/** The next events of one word, from this number on. */
function readWord(reader: DayReader, state: PrefixProgress, seq: number): PrefixProgress {
  const { word } = state as { readonly word: string };
  const at = reader
    .sql(`SELECT rowid AS seq FROM words WHERE words MATCH ? AND rowid >= ${PLACE} ORDER BY rowid LIMIT 1`)
    .get(`"${word}"`, seq) as { readonly seq: number } | undefined;
  if (at === undefined || at.seq > SEQ_MAX) return { ...state, word: `${word}\0`, seq: undefined };
  const end = at.seq + SEQS_AT_ONCE;
  const { seqs } = reader
    .sql(`SELECT group_concat(rowid) AS seqs FROM words WHERE words MATCH ? AND rowid BETWEEN ${PLACE} AND ${PLACE}`)
    .get(`"${word}"`, at.seq, end - 1) as { readonly seqs: string | null };
  addListed(state.found, seqs);
  return { ...state, seq: end };
}

function nextSpelling(state: PrefixProgress): PrefixProgress {
  const { beginnings, beginning, spelling, found, all } = state;
  const next = { ...state, word: undefined };
  if (spelling + 1 < beginnings[beginning]!.length) return { ...next, spelling: spelling + 1 };
  const both = all ? intersect(all, found) : found;
  // No event has all beginnings: the others need not be read.
  const isDecided = both.size === 0;
  return {
    ...next,
    beginning: isDecided ? beginnings.length : beginning + 1,
    spelling: 0,
    found: new Map(),
    all: both,
  };
}
