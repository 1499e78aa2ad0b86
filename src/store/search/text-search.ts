import { findText } from "../../lib/find-text.ts";
import { FINAL_SIGMA, SIGMA } from "../../lib/text.ts";
import type { EventClass, EventDraft, Severity } from "../../model/event.ts";
import { readEventId } from "../files/event-id.ts";
import {
  filterWord,
  foldText,
  isTimeBeginning,
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

// What a typed search asks for: words of the index, and what only the event's own text can tell.

const SEARCH_CHARACTERS_MAX = 1000;
const SEARCH_TERMS_MAX = 32;
/** Pairs of characters of one run that the index is asked for; the event's own text decides about the rest. */
const PAIRS_MAX = 8;

/** A word of a search; one that goes on stands for every word that begins with it. */
export interface Term {
  readonly word: string;
  readonly goesOn: boolean;
  /** Words that do as well. */
  readonly or?: readonly Term[];
}

export interface TextSearch {
  /** Every one must be found: the words of the search, and of the filters. */
  readonly terms: readonly Term[];
  /** What the index cannot decide alone: the event's own text must hold these. */
  readonly phrases: readonly Phrase[];
  /** Event ids among the words: each finds its event, and those that it is a word of. */
  readonly ids: readonly string[];
}

interface Phrase {
  readonly text: string;
  /** Ends where a word ends; otherwise it may go on. */
  readonly whole: boolean;
}

export function parseSearch(
  search: string,
  filter: {
    source?: string | undefined;
    severity?: Severity | undefined;
    class?: EventClass | undefined;
    type?: string | undefined;
  },
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
    if (filter[field] !== undefined) terms.push({ word: filterWord(field, filter[field]), goesOn: false });
  }
  return { terms, phrases, ids };
}

export function searchFault(words: string): string | undefined {
  const search = parseSearch(words, {});
  return "fault" in search ? search.fault : undefined;
}

/** What finds an id where it is a word like any other. */
export function idTerm(id: string): Term {
  return { word: id, goesOn: true };
}

function addBareTerm(word: string, terms: Term[], phrases: Phrase[]): void {
  visitRuns(word, (run) => {
    const whole = wholeWord(run);
    if (whole !== undefined) return void terms.push({ word: whole, goesOn: false });
    const trimmed = trimEnd(run.slice(firstLetter(run)));
    if (trimmed === "") return;
    const code = trimmed.charCodeAt(0);
    if (trimmed.length === 1 && code < 128) return void terms.push({ word: START_MARKS[code]!, goesOn: false });
    const particular = particularTerms(trimmed);
    terms.push(...(particular?.terms ?? [beginningOf(trimmed)]));
    if (particular ? !particular.isSettled : trimmed.length > WORD_CHARACTERS_MAX)
      phrases.push({ text: trimmed, whole: false });
  });
}

/** For a run that is not simply a word: a time, or a script without spaces. `isSettled`: the index alone decides. */
function particularTerms(run: string): { terms: Term[]; isSettled: boolean } | undefined {
  if (isTimeBeginning(run)) {
    const own = { word: timeWord(run), goesOn: run.length < TIME_WORD_CHARACTERS };
    return { terms: [{ ...beginningOf(run), or: [own] }], isSettled: run.length <= TIME_WORD_CHARACTERS };
  }
  const pieces = piecesOf(run);
  if (pieces === undefined) return undefined;
  // Events that were stored before have the run itself for a word.
  const or = [beginningOf(run)];
  const terms = pieces.flatMap(({ text, isUnspaced }): Term[] => {
    if (isUnspaced) return pairTerms(text).map((term) => ({ ...term, or }));
    const trimmed = trimEnd(text.slice(firstLetter(text)));
    return trimmed === "" ? [] : [{ ...beginningOf(trimmed), or }];
  });
  return { terms, isSettled: pieces.length === 1 && [...run].length <= 2 };
}

/** Pairs that stand side by side, and the last one: a single character begins pairs, or is the last of its run. */
function pairTerms(piece: string): Term[] {
  const characters = [...piece];
  if (characters.length === 1) return [{ word: piece, goesOn: true }];
  const pairs: string[] = [];
  for (let i = 0; i + 1 < characters.length && pairs.length < PAIRS_MAX; i += 2) {
    pairs.push(characters[i]! + characters[i + 1]!);
  }
  pairs.push(characters.slice(-2).join(""));
  return [...new Set(pairs)].map((word) => ({ word, goesOn: false }));
}

function beginningOf(run: string): Term {
  return { word: trimEnd(run.slice(0, WORD_CHARACTERS_MAX)), goesOn: true };
}

function addPhrase(phrase: string, terms: Term[], phrases: Phrase[]): void {
  const runs: string[] = [];
  visitRuns(phrase, (run) => runs.push(run));
  for (const run of runs) {
    const whole = wholeWord(run);
    const trimmed = trimEnd(run.slice(firstLetter(run)));
    if (whole !== undefined) terms.push({ word: whole, goesOn: false });
    else if (trimmed !== "") {
      const particular = particularTerms(trimmed);
      if (particular) {
        terms.push(...particular.terms);
        if (runs.length === 1) phrases.push({ text: trimmed, whole: true });
        continue;
      }
      const isWord = !/[^\p{L}\p{N}]/u.test(trimmed) && trimmed.length <= WORD_CHARACTERS_MAX;
      terms.push(isWord ? { word: trimmed, goesOn: false } : beginningOf(trimmed));
      if (runs.length === 1 && !isWord) phrases.push({ text: trimmed, whole: true });
    }
  }
  if (runs.length > 1) phrases.push({ text: collapse(phrase), whole: true });
}

const WORD_END_SIGMA = new RegExp(`${SIGMA}(?![\\p{L}\\p{N}])`, "gu");

/** A word as it is indexed, and as it was while the sigma at its end was another letter: what was written then is still there. */
export function spellings(term: Term): readonly Term[] {
  if (term.or !== undefined) return [term, ...term.or].flatMap(({ word, goesOn }) => spellings({ word, goesOn }));
  if (!term.word.includes(SIGMA)) return [term];
  const before = term.word.replace(WORD_END_SIGMA, FINAL_SIGMA);
  return before === term.word ? [term] : [term, { ...term, word: before }];
}

/** A word to be looked for in words between spaces; well-formed as they are, also where it is cut within a character. */
export function spacedTerm({ word, goesOn }: Term): string {
  return (goesOn ? ` ${word}` : ` ${word} `).toWellFormed();
}

/** The index's own words for a search. A word has no quote in it: text is cut at them. */
export function matchOf(terms: readonly (readonly Term[])[]): string {
  const one = ({ word, goesOn }: Term) => `"${word}"${goesOn ? "*" : ""}`;
  return terms
    .map((choices) => (choices.length === 1 ? one(choices[0]!) : `(${choices.map(one).join(" OR ")})`))
    .join(" AND ");
}

/**
 * Of the words in the index that a beginning stands for, those that are not found by another one of them anyway: a run
 * is never there without its first part.
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

/** Whether an event's own values hold every phrase. */
export function holdsPhrases(
  event: EventDraft | { readonly [key: string]: unknown },
  phrases: readonly Phrase[],
): boolean {
  if (phrases.length === 0) return true;
  const missing = new Set(phrases);
  const walk = (value: unknown): void => {
    if (missing.size === 0 || value === null) return;
    if (typeof value === "string" || typeof value === "bigint") {
      const text = collapse(foldText(String(value)));
      for (const phrase of missing) if (holdsPhrase(text, phrase)) missing.delete(phrase);
    } else if (typeof value === "object") for (const inner of Object.values(value!)) walk(inner);
  };
  walk(event);
  return missing.size === 0;
}

function holdsPhrase(text: string, phrase: Phrase): boolean {
  for (let at = findText(text, phrase.text); at >= 0; at = findText(text, phrase.text, at + 1)) {
    if (isWordEdge(text, at) && (!phrase.whole || isWordEdge(text, at + phrase.text.length))) return true;
  }
  return false;
}
