import type { EventDraft, JsonObject, JsonValue } from "../../model/event.ts";
import {
  CONNECTOR,
  EVENT_WORDS_MAX,
  FILTER_MARK,
  filterWord,
  foldText,
  KINDS,
  kindOf,
  LETTER,
  SEPARATOR,
  START_MARKS,
  timeWordAt,
  visitRuns,
  WORD_CHARACTERS_MAX,
  wordsOfRun,
} from "./words.ts";

// The words of an event as one text for the index. FTS5 splits ASCII text where words.ts splits it, and folds case, so that
// most of an event is passed as it is. Only runs that yield more words than themselves, and text outside ASCII, are split
// here. Every event passes through this code, so it scans the text as bytes, and once.

const SPACE = 32;
/** The bit that digits and lower-case letters have; setting it turns an upper-case letter into lower case. */
const LOWER = 32;
const BYTES_KEPT = 256 * 1024;
const KINDS_OF_EVENTS_MAX = 1000;
const RUNS_MAX = 10_000;
const RUN_CHARACTERS_MAX = 64;
const OCCURRENCES_MAX = 4;

const encoder = new TextEncoder();
const marks = START_MARKS.map((mark) => encoder.encode(` ${mark}`));
const MARK_BYTES = marks[0]!.length;

/** The text being built; there is only one at a time. */
let bytes = Buffer.alloc(BYTES_KEPT);
let length = 0;
let isAscii = true;
/** Words from runs that were split. */
let count = 0;
/** The first characters of its words. */
const starts = new Uint8Array(128);

type IndexedEvent = Omit<EventDraft, "timestampMs">;

/** The words of an event, including those for list filters and for its time. */
export function eventWords(event: IndexedEvent, timestampMs: number): { text: string; truncated: boolean } {
  const { line } = event.raw;
  const texts: string[] = [];
  collect(event.raw, typeof line === "string" ? line : "", texts);
  collect(event.enrichment, typeof line === "string" ? line : "", texts);
  return gather(texts, wordsOfKind(event), timeWordAt(timestampMs));
}

/** The words that an addition to the enrichment gives to an event. */
export function addedWords(enrichment: JsonObject): string {
  const texts: string[] = [];
  collect(enrichment, "", texts);
  return gather(texts).text;
}

/** Most fields that a collector reads from a line occur in it verbatim and would only repeat its words; they are skipped. */
function collect(value: JsonValue, line: string, texts: string[]): void {
  if (typeof value === "object") {
    if (Array.isArray(value)) for (const inner of value) collect(inner, line, texts);
    // For an object with very many keys, Object.values takes twice as long.
    else for (const key in value) collect(value[key]!, line, texts);
    return;
  }
  const text = typeof value === "string" ? value : String(value);
  if (text === line || !occursIn(line, text)) texts.push(text);
}

/** The distinct words of these texts, split as the index of events would split them. */
export function textWords(texts: readonly string[]): Set<string> {
  const words = new Set<string>();
  for (const word of spacedTextWords(texts).split(" ")) words.add(word.slice(0, TEXT_WORD_CHARACTERS_MAX));
  words.delete("");
  return words;
}
/** Longer than any searched word, so that a word of the greatest length still differs from a longer one. */
const TEXT_WORD_CHARACTERS_MAX = 64;

/** The words of an event as indexed, each between spaces, for a look-up without an index. */
export function spacedEventWords(event: IndexedEvent, timestampMs: number): string {
  return spaced(eventWords(event, timestampMs).text);
}

export function spacedTextWords(texts: readonly string[]): string {
  return spaced(gather(texts).text);
}

/** Splits and folds as the index does; characters outside ASCII stay as they are. */
function spaced(text: string): string {
  length = 0;
  reserve(3 * text.length);
  length = bytes.write(text, "utf8");
  const into = bytes;
  const end = length;
  for (let i = 0; i < end; i++) into[i] = AS_INDEXED[into[i]!]!;
  return ` ${take(end === text.length ? "latin1" : "utf8")} `;
}
const AS_INDEXED = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 128 || byte === FILTER_MARK.charCodeAt(0)) return byte;
  return KINDS[byte] === SEPARATOR ? SPACE : KINDS[byte] === LETTER ? byte | LOWER : byte;
});

function gather(texts: readonly string[], words?: CachedWords, time?: string): { text: string; truncated: boolean } {
  length = 0;
  count = 0;
  isAscii = true;
  starts.fill(0);
  const all = texts.join(" ");
  reserve(3 * all.length);
  const written = bytes.write(all, "utf8");
  if (written === all.length) addAscii(all);
  else {
    const plain = texts.filter((text) => PLAIN.test(text)).join(" ");
    bytes.write(plain, "latin1");
    addAscii(plain);
    for (const text of texts) if (!PLAIN.test(text)) visitRuns(foldText(text), addRun);
  }
  if (words) addWords(words);
  if (time !== undefined) addWords({ text: ` ${time}`, starts: NO_STARTS });
  return finish();
}
const PLAIN = /^[\0-\x7f]*$/;
const NO_STARTS: readonly number[] = [];

/** Processes ASCII text at the start of `bytes`. It stays there, except for the runs that are split. */
function addAscii(text: string): void {
  length = text.length;
  const plainLength = text.length;
  let plain = bytes;
  let i = 0;
  while (i < plainLength) {
    const code = plain[i]!;
    let kind = KINDS[code]!;
    if (kind === SEPARATOR) {
      // One of these is FILTER_MARK, which is a letter to the index.
      if (code < SPACE) plain[i] = SPACE;
      i++;
      continue;
    }
    const start = i;
    let kinds = 0;
    for (; kind !== SEPARATOR; kind = i < plainLength ? KINDS[plain[i]!]! : SEPARATOR) {
      kinds |= kind;
      i++;
    }
    if ((kinds & CONNECTOR) !== 0 && !isOneWord(plain, start, i)) {
      plain.fill(SPACE, start, i);
      addRun(text.slice(start, i));
      plain = bytes;
    } else starts[code | LOWER] = 1;
  }
}

function addRun(run: string): void {
  if (count >= EVENT_WORDS_MAX) return;
  const words = runWords(run);
  count += words.count;
  addWords(words);
}

function finish(): { text: string; truncated: boolean } {
  reserve(starts.length * MARK_BYTES);
  const into = bytes;
  let at = length;
  for (let code = 0; code < starts.length; code++) {
    if (starts[code] === 0) continue;
    const mark = marks[code]!;
    for (let i = 0; i < MARK_BYTES; i++) into[at++] = mark[i]!;
  }
  length = at;
  return { text: take(isAscii ? "latin1" : "utf8"), truncated: count >= EVENT_WORDS_MAX };
}

function take(encoding: "latin1" | "utf8"): string {
  const text = bytes.toString(encoding, 0, length);
  // A buffer that grew for one large event is not kept.
  if (bytes.length > BYTES_KEPT) bytes = Buffer.alloc(BYTES_KEPT);
  return text;
}

function reserve(more: number): void {
  if (length + more <= bytes.length) return;
  const larger = Buffer.alloc(2 * (length + more));
  larger.set(bytes.subarray(0, length));
  bytes = larger;
}

/** The words of a run or of a kind of event. */
interface CachedWords {
  readonly text: string;
  readonly starts: readonly number[];
}

function addWords({ text, starts: codes }: CachedWords): void {
  // The maximum length in UTF-8.
  reserve(3 * text.length);
  const written = bytes.write(text, length, "utf8");
  if (written !== text.length) isAscii = false;
  length += written;
  for (const code of codes) starts[code] = 1;
}

interface RunWords extends CachedWords {
  readonly count: number;
}

/** A cache: names of fields and hosts recur. */
const runs = new Map<string, RunWords>();

function runWords(run: string): RunWords {
  const known = runs.get(run);
  if (known) return known;
  const words = wordsOfRun(run.toLowerCase());
  const codes: number[] = [];
  for (const word of words) {
    const code = word.charCodeAt(0);
    if (code < 128 && KINDS[code] === LETTER && !codes.includes(code)) codes.push(code);
  }
  const result = { text: ` ${words.join(" ")} `, count: words.length, starts: codes };
  if (runs.size >= RUNS_MAX) runs.clear();
  if (run.length <= RUN_CHARACTERS_MAX) runs.set(run, result);
  return result;
}

const kinds = new Map<string, CachedWords>();

/** Cached, because most events are of a few kinds. */
function wordsOfKind({ type, source, severity, class: eventClass }: IndexedEvent): CachedWords {
  const name = `${type} ${source} ${severity} ${eventClass}`;
  let words = kinds.get(name);
  if (!words) {
    const filters = [
      filterWord("type", type),
      filterWord("source", source),
      filterWord("severity", severity),
      filterWord("class", eventClass),
    ];
    const runs: RunWords[] = [];
    for (const text of [type, source, severity, eventClass])
      visitRuns(foldText(text), (run) => runs.push(runWords(run)));
    const text = ` ${filters.join(" ")}${runs.map((run) => run.text).join("")}`;
    words = { text, starts: runs.flatMap((run) => run.starts) };
    if (kinds.size >= KINDS_OF_EVENTS_MAX) kinds.clear();
    kinds.set(name, words);
  }
  return words;
}

/** True if the text is in the line between separators: its words are words of the line. May miss a late occurrence. */
function occursIn(line: string, text: string): boolean {
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

const DASH = 45;
const DOT = 46;
const SLASH = 47;
const COLON = 58;
const UNDERSCORE = 95;
const LETTER_T = 116;
const LETTER_Z = 122;
const MAC_CHARACTERS = 17;
const CISCO_MAC_CHARACTERS = 14;

/**
 * True for a run with connectors that is a single word, spelled as the index has it: an IPv4 address, a MAC address, numbers
 * such as a date. May be false for such a run: splitting it has the same result.
 */
function isOneWord(text: Uint8Array, start: number, end: number): boolean {
  const characters = end - start;
  if (characters > WORD_CHARACTERS_MAX) return false;
  if (characters === MAC_CHARACTERS && text[start + 2] === COLON) return isMac(text, start);
  let [dots, colons, dashes, others] = [0, 0, 0, 0];
  let value = -1;
  let isAddress = true;
  for (let i = start; i < end; i++) {
    const code = text[i]!;
    if (isDigit(code)) {
      if (value === 0) isAddress = false;
      value = Math.max(0, value) * 10 + code - 48;
      if (value > 255) isAddress = false;
    } else if (code === DOT || code === COLON || code === DASH || code === SLASH || code === UNDERSCORE) {
      // Two adjacent connectors, or one at the start.
      if (value < 0) return false;
      value = -1;
      if (code === DOT) dots++;
      else if (code === COLON) colons++;
      else if (code === DASH) dashes++;
      else others++;
    } else {
      const letter = code | LOWER;
      if (letter !== LETTER_T && !(letter === LETTER_Z && i === end - 1 && value >= 0)) return false;
      if (i === start) return false;
      value = 1;
      others++;
    }
  }
  if (value < 0) return false;
  if (dots >= 3) return dots === 3 && isAddress && colons + dashes + others === 0;
  // These may be addresses in another spelling.
  if (colons > 5 || (characters === MAC_CHARACTERS && dashes > 0)) return false;
  return !(characters === CISCO_MAC_CHARACTERS && dots === 2);
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function isMac(text: Uint8Array, start: number): boolean {
  for (let i = 0; i < MAC_CHARACTERS; i++) {
    const code = text[start + i]!;
    const isHex = isDigit(code) || ((code | LOWER) >= 97 && (code | LOWER) <= 102);
    if (i % 3 === 2 ? code !== COLON : !isHex) return false;
  }
  return true;
}
