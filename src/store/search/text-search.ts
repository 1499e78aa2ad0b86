import { findText } from "../../lib/find-text.ts";
import { FINAL_SIGMA, SIGMA } from "../../lib/text.ts";
import type { EventDraft } from "../../model/event.ts";
import type { EventFilter } from "../ports/event-engine.ts";
import { readEventId } from "../files/event-id.ts";
import {
  filterWord,
  foldText,
  isTimePrefix,
  isWordEdge,
  kindOf,
  LETTER,
  piecesOf,
  START_MARKS,
  TIME_WORD_CHARACTERS,
  timeWord,
  trimEnd,
  visitRuns,
  wholeWord,
  WORD_CHARACTERS_MAX,
  wordsOfRun,
} from "./words.ts";

// Parses a typed search into words of the index, and phrases that only the event's own text can decide.

const SEARCH_CHARACTERS_MAX = 1000;
const SEARCH_TERMS_MAX = 32;
/** Pairs of characters of one run that are looked up in the index; the event's own text decides about the rest. */
const PAIRS_MAX = 8;

/** A word of a search, or a prefix that stands for every word that starts with it. */
export interface Term {
  readonly word: string;
  readonly isPrefix: boolean;
  /** Alternatives. */
  readonly or?: readonly Term[];
}

export interface TextSearch {
  /** Words of the search and of the filters. All must occur. */
  readonly terms: readonly Term[];
  /** The event's own text must contain these; the index alone cannot decide. */
  readonly phrases: readonly Phrase[];
  /** Event ids among the words: each finds its event, and events that contain it as a word. */
  readonly ids: readonly string[];
}

interface Phrase {
  readonly text: string;
  /** True if the phrase must end at the end of a word. */
  readonly whole: boolean;
}

export function parseSearch(
  search: string,
  filter: Pick<EventFilter, "source" | "severity" | "class" | "type">,
): TextSearch | { fault: string } {
  if (search.length > SEARCH_CHARACTERS_MAX) return { fault: `at most ${SEARCH_CHARACTERS_MAX} characters` };
  const terms: Term[] = [];
  const phrases: Phrase[] = [];
  const ids: string[] = [];
  for (const [, quoted, bare] of search.matchAll(/"([^"]*)"?|([^\s"]+)/g)) {
    const id = bare ?? quoted!.trim();
    if (readEventId(id)) ids.push(id);
    else if (bare !== undefined) addBareTerm(foldText(bare), terms, phrases);
    else addPhrase(foldText(quoted!), terms, phrases);
  }
  if (terms.length + ids.length === 0) return { fault: "has no word to search for" };
  if (terms.length > SEARCH_TERMS_MAX) return { fault: `at most ${SEARCH_TERMS_MAX} words` };
  for (const field of ["type", "source", "severity", "class"] as const) {
    const [first, ...or] = [filter[field] ?? []].flat().map((value) => filterTerm(field, value));
    if (first) terms.push(or.length === 0 ? first : { ...first, or });
  }
  return { terms, phrases, ids };
}

function filterTerm(field: Parameters<typeof filterWord>[0], value: string): Term {
  return { word: filterWord(field, value), isPrefix: false };
}

export function searchFault(words: string): string | undefined {
  const search = parseSearch(words, {});
  return "fault" in search ? search.fault : undefined;
}

/** The term for an id that occurs as a word. */
export function idTerm(id: string): Term {
  return { word: id, isPrefix: true };
}

function addBareTerm(word: string, terms: Term[], phrases: Phrase[]): void {
  visitRuns(word, (run) => {
    const whole = wholeWord(run);
    if (whole !== undefined) return void terms.push({ word: whole, isPrefix: false });
    const trimmed = trimEnd(run.slice(firstLetter(run)));
    if (trimmed === "") return;
    const code = trimmed.charCodeAt(0);
    if (trimmed.length === 1 && code < 128) return void terms.push({ word: START_MARKS[code]!, isPrefix: false });
    const special = specialTerms(trimmed);
    terms.push(...(special?.terms ?? [prefixOf(trimmed)]));
    if (special ? !special.isSettled : trimmed.length > WORD_CHARACTERS_MAX)
      phrases.push({ text: trimmed, whole: false });
  });
}

/** Terms of a run that is a time or in a script without spaces. `isSettled`: the index alone decides. */
function specialTerms(run: string): { terms: Term[]; isSettled: boolean } | undefined {
  if (isTimePrefix(run)) {
    const own = { word: timeWord(run), isPrefix: run.length < TIME_WORD_CHARACTERS };
    return { terms: [{ ...prefixOf(run), or: [own] }], isSettled: run.length <= TIME_WORD_CHARACTERS };
  }
  const pieces = piecesOf(run);
  if (pieces === undefined) return undefined;
  // Events of older versions have the run itself as a word.
  const or = [prefixOf(run)];
  const terms = pieces.flatMap(({ text, isUnspaced }): Term[] => {
    if (isUnspaced) return pairTerms(text).map((term) => ({ ...term, or }));
    const trimmed = trimEnd(text.slice(firstLetter(text)));
    return trimmed === "" ? [] : [{ ...prefixOf(trimmed), or }];
  });
  return { terms, isSettled: pieces.length === 1 && [...run].length <= 2 };
}

/** Adjacent pairs, and the last one. A single character is the prefix of a pair, or the last of its run. */
function pairTerms(piece: string): Term[] {
  const characters = [...piece];
  if (characters.length === 1) return [{ word: piece, isPrefix: true }];
  const pairs: string[] = [];
  for (let i = 0; i + 1 < characters.length && pairs.length < PAIRS_MAX; i += 2) {
    pairs.push(characters[i]! + characters[i + 1]!);
  }
  pairs.push(characters.slice(-2).join(""));
  return [...new Set(pairs)].map((word) => ({ word, isPrefix: false }));
}

function prefixOf(run: string): Term {
  return { word: trimEnd(run.slice(0, WORD_CHARACTERS_MAX)), isPrefix: true };
}

function addPhrase(phrase: string, terms: Term[], phrases: Phrase[]): void {
  const runs: string[] = [];
  visitRuns(phrase, (run) => runs.push(run));
  for (const run of runs) {
    const whole = wholeWord(run);
    const trimmed = trimEnd(run.slice(firstLetter(run)));
    if (whole !== undefined) terms.push({ word: whole, isPrefix: false });
    else if (trimmed !== "") {
      const special = specialTerms(trimmed);
      if (special) {
        terms.push(...special.terms);
        if (runs.length === 1) phrases.push({ text: trimmed, whole: true });
        continue;
      }
      const isWord = !/[^\p{L}\p{N}]/u.test(trimmed) && trimmed.length <= WORD_CHARACTERS_MAX;
      terms.push(isWord ? { word: trimmed, isPrefix: false } : prefixOf(trimmed));
      if (runs.length === 1 && !isWord) phrases.push({ text: trimmed, whole: true });
    }
  }
  if (runs.length > 1) phrases.push({ text: collapse(phrase), whole: true });
}

const WORD_END_SIGMA = new RegExp(`${SIGMA}(?![\\p{L}\\p{N}])`, "gu");

/** A word as it is indexed now, and as older versions indexed it, without folding a final sigma. */
export function spellings(term: Term): readonly Term[] {
  if (term.or !== undefined) return [term, ...term.or].flatMap(({ word, isPrefix }) => spellings({ word, isPrefix }));
  if (!term.word.includes(SIGMA)) return [term];
  const before = term.word.replace(WORD_END_SIGMA, FINAL_SIGMA);
  return before === term.word ? [term] : [term, { ...term, word: before }];
}

/** The text to look for in spaced words. Well-formed like those, even if it is cut within a character. */
export function spacedTerm({ word, isPrefix }: Term): string {
  return (isPrefix ? ` ${word}` : ` ${word} `).toWellFormed();
}

/** The FTS5 query of a search. Words contain no quotes, which are separators. */
export function matchOf(terms: readonly (readonly Term[])[]): string {
  const one = ({ word, isPrefix }: Term) => `"${word}"${isPrefix ? "*" : ""}`;
  return terms
    .map((choices) => (choices.length === 1 ? one(choices[0]!) : `(${choices.map(one).join(" OR ")})`))
    .join(" AND ");
}

/**
 * The words without those that another of them implies: the index never has a run without its first part. Given the words of
 * a prefix, the rest find the same events.
 */
export function independentWords(words: readonly string[]): string[] {
  const all = new Set(words);
  return words.filter((word) => {
    const end = FIRST_CONNECTOR.exec(word)?.index ?? 0;
    return end === 0 || !all.has(word.slice(0, end)) || wordsOfRun(word).length === 1;
  });
}
const FIRST_CONNECTOR = /[._\-:@/\\]/;

function firstLetter(run: string): number {
  let i = 0;
  while (i < run.length && kindOf(run.charCodeAt(i)) !== LETTER) i++;
  return i;
}

function collapse(text: string): string {
  return text.trim().replace(/\s+/g, " ");
}

/** True if every phrase occurs in one of the event's values. */
export function containsPhrases(
  event: EventDraft | { readonly [key: string]: unknown },
  phrases: readonly Phrase[],
): boolean {
  if (phrases.length === 0) return true;
  const missing = new Set(phrases);
  const walk = (value: unknown): void => {
    if (missing.size === 0 || value === null) return;
    if (typeof value === "string" || typeof value === "bigint") {
      const text = collapse(foldText(String(value)));
      for (const phrase of missing) if (containsPhrase(text, phrase)) missing.delete(phrase);
    } else if (typeof value === "object") for (const inner of Object.values(value!)) walk(inner);
  };
  walk(event);
  return missing.size === 0;
}

function containsPhrase(text: string, phrase: Phrase): boolean {
  for (let at = findText(text, phrase.text); at >= 0; at = findText(text, phrase.text, at + 1)) {
    if (isWordEdge(text, at) && (!phrase.whole || isWordEdge(text, at + phrase.text.length))) return true;
  }
  return false;
}
