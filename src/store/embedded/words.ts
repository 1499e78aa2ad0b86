import { isIP } from "node:net";
import { LRUCache } from "lru-cache";
import { canonicalAddress } from "../../lib/ip.ts";
import { foldCase } from "../../lib/text.ts";
import type { EventClass, EventDraft, JsonValue, Severity } from "../../model/event.ts";
import { readEventId } from "./event-id.ts";

// Full text: which words an event is found by, and what a typed search asks for. Both sides cut text the same way:
// a *run* is letters, digits and the connectors within them (`www.example.com`, `login_failure`, `/usr/bin/id`); its
// *parts* are what stands between connectors. A run is findable from the beginning of each of its parts. An
// address or a MAC address is one word, in one spelling; so are numbers with connectors between them, such as dates.

/** At most this many words of an event are taken from runs with connectors and text beyond ASCII. */
const EVENT_WORDS_MAX = 10_000;
/** A word is kept up to this length; a longer one that is searched is compared with the event itself. */
const WORD_CHARACTERS_MAX = 40;
const SEARCH_CHARACTERS_MAX = 1000;
const SEARCH_TERMS_MAX = 32;

/** In the index a letter, in every text a separator. */
export const FILTER_MARK = "\x01";
/** The characters besides letters and digits that the index leaves in a word. */
export const CONNECTORS = "._-:@/\\";

const SEPARATOR = 0;
const LETTER = 1;
const CONNECTOR = 2;
const SPACE = 32;
const KINDS = new Uint8Array(128);
for (let code = 0; code < 128; code++) {
  if (/[a-z0-9]/i.test(String.fromCharCode(code))) KINDS[code] = LETTER;
}
for (const char of CONNECTORS) KINDS[char.charCodeAt(0)] = CONNECTOR;

function kindOf(code: number): number {
  if (code < 128) return KINDS[code]!;
  const isPunctuation =
    code === 0xa0 ||
    (code >= 0x2000 && code <= 0x206f) ||
    (code >= 0x3000 && code <= 0x303f) ||
    code === 0xfeff ||
    code === 0x1680;
  return isPunctuation ? SEPARATOR : LETTER;
}

const MAC = /^(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}$/;
const CISCO_MAC = /^[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}$/;
const INNER_IPV4 = /(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])/;

/** An address or MAC address in the one spelling that it is indexed under. */
function wholeWord(run: string): string | undefined {
  if (run.length < 2 || run.length > 45) return undefined;
  const first = run.charCodeAt(0);
  const isDigit = first >= 48 && first <= 57;
  if (!isDigit && first !== 58 && !(first >= 97 && first <= 102)) return undefined;
  if (run.includes(":")) {
    if (run.length === 17 && MAC.test(run)) return run;
    // The pattern for IPv6 is long: only what has two colons gets there.
    return run.indexOf(":") !== run.lastIndexOf(":") ? canonicalAddress(run) : undefined;
  }
  if (run.length === 17 && MAC.test(run)) return run.replaceAll("-", ":");
  if (run.length === 14 && CISCO_MAC.test(run)) return run.replaceAll(".", "").match(/../g)!.join(":");
  return isDigit && isIpv4(run) ? run : undefined;
}

/** As net.isIPv4, without a regular expression: every address of every event comes by here. */
function isIpv4(text: string): boolean {
  if (text.length > 15) return false;
  let dots = 0;
  let value = -1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 46) {
      if (value < 0 || ++dots > 3) return false;
      value = -1;
    } else if (code < 48 || code > 57 || value === 0) return false;
    else {
      value = Math.max(0, value) * 10 + code - 48;
      if (value > 255) return false;
    }
  }
  return dots === 3 && value >= 0;
}

/** Calls back with every run of a folded text. */
function visitRuns(text: string, visit: (run: string) => void): void {
  let start = -1;
  for (let i = 0; i <= text.length; i++) {
    const inRun = i < text.length && kindOf(text.charCodeAt(i)) !== SEPARATOR;
    if (inRun) {
      if (start < 0) start = i;
    } else if (start >= 0) {
      visit(text.slice(start, i));
      start = -1;
    }
  }
}

/** Dates, times, versions, amounts: numbers with connectors between them are one word. */
const NUMBERS = /^[0-9][0-9t]*(?:[._\-:/][0-9t]+)+z?$/;

/** The words that a run is found by. */
function wordsOfRun(run: string): string[] {
  const whole = wholeWord(run);
  if (whole !== undefined) return [whole];
  if (NUMBERS.test(run) && !INNER_IPV4.test(run)) return [run.slice(0, WORD_CHARACTERS_MAX)];
  const words: string[] = [];
  let partStart = -1;
  let connectors = 0;
  for (let i = 0; i <= run.length && words.length < EVENT_WORDS_MAX; i++) {
    const isLetter = i < run.length && kindOf(run.charCodeAt(i)) === LETTER;
    if (isLetter && partStart < 0) partStart = i;
    if (isLetter) continue;
    if (partStart >= 0) {
      const part = run.slice(partStart, Math.min(i, partStart + WORD_CHARACTERS_MAX));
      const onwards = trimEnd(run.slice(partStart, partStart + WORD_CHARACTERS_MAX));
      words.push(part);
      if (onwards !== part) words.push(onwards);
    }
    partStart = -1;
    connectors++;
  }
  // 10.0.0.1:443 and 10.0.0.1/24 hold an address too.
  if (connectors > 4) {
    const address = INNER_IPV4.exec(run)?.[0];
    if (address && isIP(address)) words.push(address);
  }
  return words;
}

function trimEnd(run: string): string {
  let end = run.length;
  while (end > 0 && kindOf(run.charCodeAt(end - 1)) === CONNECTOR) end--;
  return end === run.length ? run : run.slice(0, end);
}

/** Digits and lower-case letters have this bit; it makes an upper-case letter a lower-case one. */
const LOWER = 32;
const starts = new Uint8Array(128);
/**
 * One letter stands for thousands of words. Every event therefore also has a word for each letter that its words begin
 * with: a search for one letter asks for that.
 */
const START_MARKS = Array.from({ length: 128 }, (_, code) => `${FILTER_MARK}starts:${String.fromCharCode(code)}`);
const RUNS_MAX = 10_000;
const RUN_CHARACTERS_MAX = 64;
/** What runs with connectors are found by: names of fields and hosts, addresses come again and again. */
const runs = new Map<string, RunWords>();

interface RunWords {
  readonly text: string;
  readonly count: number;
  /** The characters that its words begin with. */
  readonly starts: readonly number[];
}

function runWords(run: string): RunWords {
  const known = runs.get(run);
  if (known) return known;
  const words = wordsOfRun(run.toLowerCase());
  const starts = [...new Set(words.map((word) => word.charCodeAt(0)))].filter(
    (code) => code < 128 && KINDS[code] === LETTER,
  );
  const made = { text: ` ${words.join(" ")} `, count: words.length, starts };
  if (runs.size >= RUNS_MAX) runs.clear();
  if (run.length <= RUN_CHARACTERS_MAX) runs.set(run, made);
  return made;
}

/**
 * The words of an event as one text, with those that the list's filters look for. The index cuts plain text at the same
 * places as visitRuns and folds it, so only runs with connectors, and text beyond ASCII, are taken apart here.
 */
export function eventWords(event: EventDraft): { text: string; truncated: boolean } {
  const { line } = event.raw;
  return gatherWords(filterWords(event.type, event.source, event.severity, event.class), (addText) => {
    // Most of what a reader has found in a line stands there as it is, and would be the same words again.
    const add = (value: string) => {
      if (typeof line !== "string" || value === line || !standsIn(line, value)) addText(value);
    };
    const walk = (value: JsonValue | undefined): void => {
      if (typeof value === "string") add(value);
      else if (typeof value === "number" || typeof value === "boolean") add(String(value));
      else if (Array.isArray(value)) for (const element of value) walk(element);
      else if (value) for (const key of Object.keys(value)) walk(value[key]);
    };
    addText(event.type);
    addText(event.source);
    addText(event.severity);
    addText(event.class);
    walk(event.raw);
    walk(event.enrichment);
  });
}

const OCCURRENCES_MAX = 4;

/** Whether the text stands in the line between separators, so that its words are words of the line. Rather no than long. */
function standsIn(line: string, text: string): boolean {
  let at = line.indexOf(text);
  for (let n = 0; at >= 0 && n < OCCURRENCES_MAX; n++) {
    if (isSeparator(line, at - 1) && isSeparator(line, at + text.length)) return true;
    at = line.indexOf(text, at + 1);
  }
  return false;
}

function isSeparator(text: string, at: number): boolean {
  return at < 0 || at >= text.length || kindOf(text.charCodeAt(at)) === SEPARATOR;
}

/** The different words of these texts, to be found by the same searches: cut where the index of events would cut them. */
export function textWords(texts: readonly string[]): Set<string> {
  const { text } = gatherWords("", (addText) => texts.forEach(addText));
  const words = new Set<string>();
  for (const [word] of foldCase(text).matchAll(WORD)) words.add(word.slice(0, TEXT_WORD_CHARACTERS_MAX));
  return words;
}
const WORD = new RegExp(`[a-z0-9._\\-:@/\\\\${FILTER_MARK}\\u0080-\\u{10ffff}]+`, "gu");
/** More than a search asks for, so that a word that is as long as a search can be is still told from a longer one. */
const TEXT_WORD_CHARACTERS_MAX = 64;

function gatherWords(first: string, eachText: (addText: (value: string) => void) => void) {
  let text = first;
  let count = 0;
  starts.fill(0);
  const addRun = (run: string): void => {
    if (count >= EVENT_WORDS_MAX) return;
    const words = runWords(run);
    count += words.count;
    text += words.text;
    for (const code of words.starts) starts[code] = 1;
  };
  const addText = (value: string): void => {
    text += " ";
    // Up to here the text stands in the words.
    let done = 0;
    let start = -1;
    let hasConnector = false;
    for (let i = 0; i <= value.length; i++) {
      const code = i < value.length ? value.charCodeAt(i) : SPACE;
      if (code > 126 || (code < SPACE && code !== 9 && code !== 10 && code !== 13)) {
        visitRuns(foldCase(value.slice(done)), addRun);
        return;
      }
      const kind = KINDS[code]!;
      if (kind !== SEPARATOR) {
        if (start < 0) start = i;
        if (kind === CONNECTOR) hasConnector = true;
      } else if (start >= 0) {
        if (hasConnector) {
          text += value.slice(done, start);
          addRun(value.slice(start, i));
          done = i;
        } else starts[value.charCodeAt(start) | LOWER] = 1;
        start = -1;
        hasConnector = false;
      }
    }
    text += done === 0 ? value : value.slice(done);
  };
  eachText(addText);
  for (let code = 0; code < starts.length; code++) if (starts[code] === 1) text += ` ${START_MARKS[code]}`;
  return { text, truncated: count >= EVENT_WORDS_MAX };
}

const FILTERS_MAX = 1000;
const filters = new LRUCache<string, string>({ max: FILTERS_MAX });

/** The same few combinations come again and again. */
function filterWords(type: string, source: string, severity: Severity, eventClass: EventClass): string {
  const name = `${type} ${source} ${severity} ${eventClass}`;
  let words = filters.get(name);
  if (words === undefined) {
    words = [
      filterWord("type", type),
      filterWord("source", source),
      filterWord("severity", severity),
      filterWord("class", eventClass),
    ].join(" ");
    filters.set(name, words);
  }
  return words;
}

/** Begins with a character that no text of an event brings into a word. */
function filterWord(field: string, value: string): string {
  const plain = /^[a-z0-9_.-]*$/.test(value)
    ? value
    : value.replace(/[^a-z0-9_.-]/gu, (char) => `/${char.codePointAt(0)!.toString(16)}/`);
  return `${FILTER_MARK}${field}:${plain}`;
}

/** A word of a search; one that goes on stands for every word that begins with it. */
export interface Term {
  readonly word: string;
  readonly goesOn: boolean;
}

export interface TextSearch {
  /** Every one must be found: the words of the search, and of the filters. */
  readonly terms: readonly Term[];
  /** What the index cannot decide alone: the event's own text must hold these. */
  readonly phrases: readonly Phrase[];
  /** An event id among the words. */
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
    if (bare !== undefined && readEventId(bare)) ids.push(bare);
    else if (bare !== undefined) addBareTerm(foldCase(bare), terms, phrases);
    else addPhrase(foldCase(quoted!), terms, phrases);
  }
  if (terms.length + ids.length === 0) return { fault: "has no word to search for" };
  if (terms.length > SEARCH_TERMS_MAX) return { fault: `at most ${SEARCH_TERMS_MAX} words` };
  for (const field of ["type", "source", "severity", "class"] as const) {
    if (filter[field] !== undefined) terms.push({ word: filterWord(field, filter[field]), goesOn: false });
  }
  return { terms, phrases, ids };
}

function addBareTerm(word: string, terms: Term[], phrases: Phrase[]): void {
  visitRuns(word, (run) => {
    const whole = wholeWord(run);
    if (whole !== undefined) return void terms.push({ word: whole, goesOn: false });
    const trimmed = trimEnd(run.slice(firstLetter(run)));
    if (trimmed === "") return;
    const code = trimmed.charCodeAt(0);
    if (trimmed.length === 1 && code < 128) return void terms.push({ word: START_MARKS[code]!, goesOn: false });
    terms.push(beginningOf(trimmed));
    if (trimmed.length > WORD_CHARACTERS_MAX) phrases.push({ text: trimmed, whole: false });
  });
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
      const isWord = !/[^\p{L}\p{N}]/u.test(trimmed) && trimmed.length <= WORD_CHARACTERS_MAX;
      terms.push(isWord ? { word: trimmed, goesOn: false } : beginningOf(trimmed));
      if (runs.length === 1 && !isWord) phrases.push({ text: trimmed, whole: true });
    }
  }
  if (runs.length > 1) phrases.push({ text: collapse(phrase), whole: true });
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
export function holdsPhrases(event: EventDraft | { [key: string]: unknown }, phrases: readonly Phrase[]): boolean {
  const missing = new Set(phrases);
  const walk = (value: unknown): void => {
    if (missing.size === 0 || value === null) return;
    if (typeof value === "string") {
      const text = collapse(foldCase(value));
      for (const phrase of missing) if (holdsPhrase(text, phrase)) missing.delete(phrase);
    } else if (typeof value === "object") for (const inner of Object.values(value!)) walk(inner);
  };
  walk(event);
  return missing.size === 0;
}

function holdsPhrase(text: string, phrase: Phrase): boolean {
  const isLetterAt = (i: number) => i >= 0 && i < text.length && kindOf(text.charCodeAt(i)) === LETTER;
  for (let at = text.indexOf(phrase.text); at >= 0; at = text.indexOf(phrase.text, at + 1)) {
    const end = at + phrase.text.length;
    const startsWord = !isLetterAt(at) || !isLetterAt(at - 1);
    const endsWord = !phrase.whole || !isLetterAt(end - 1) || !isLetterAt(end);
    if (startsWord && endsWord) return true;
  }
  return false;
}
