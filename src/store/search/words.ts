import { isIP } from "node:net";
import { canonicalAddress } from "../../lib/ip.ts";
import { foldCase } from "../../lib/text.ts";
import { formatTime } from "../../lib/time.ts";

// Splits text into words, in the same way for an event (indexed-words.ts) and for a search (text-search.ts). A *run* is
// letters, digits and the connectors between them (`www.example.com`, `login_failure`, `/usr/bin/id`); its *parts* are the
// pieces between connectors. A search finds a run from the start of any of its parts. An IP or MAC address is one word, in
// one spelling; so are numbers with connectors between them, such as dates. Scripts without spaces between words are indexed
// as overlapping pairs of characters, so that a word is found at any position.

/** Words of an event from runs with connectors and from text outside ASCII. */
export const EVENT_WORDS_MAX = 10_000;
/** Longer words are cut in the index; a search for one is compared with the event itself. */
export const WORD_CHARACTERS_MAX = 40;

/** A suffix that makes a prefix sort after every word that starts with it. */
export const PREFIX_END = "\u{10ffff}".repeat(WORD_CHARACTERS_MAX);

/** A letter to the index, and a separator in every text, so that texts cannot contain the words that it marks. */
export const FILTER_MARK = "\x01";
/** Characters other than letters and digits that the index keeps in a word. */
export const CONNECTORS = "._-:@/\\";

export const SEPARATOR = 0;
export const LETTER = 1;
export const CONNECTOR = 2;
export const KINDS = new Uint8Array(128);
for (let code = 0; code < 128; code++) {
  if (/[a-z0-9]/i.test(String.fromCharCode(code))) KINDS[code] = LETTER;
}
for (const char of CONNECTORS) KINDS[char.charCodeAt(0)] = CONNECTOR;

export function kindOf(code: number): number {
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

/** An IP or MAC address in the one spelling that is indexed; undefined for any other run. */
export function wholeWord(run: string): string | undefined {
  if (run.length < 2 || run.length > 45) return undefined;
  const first = run.charCodeAt(0);
  const isDigit = first >= 48 && first <= 57;
  if (!isDigit && first !== 58 && !(first >= 97 && first <= 102)) return undefined;
  if (run.includes(":")) {
    if (run.length === 17 && MAC.test(run)) return run;
    // The pattern for IPv6 is slow, so it is tried only with two colons.
    return run.indexOf(":") !== run.lastIndexOf(":") ? canonicalAddress(run) : undefined;
  }
  if (run.length === 17 && MAC.test(run)) return run.replaceAll("-", ":");
  if (run.length === 14 && CISCO_MAC.test(run)) return run.replaceAll(".", "").match(/../g)!.join(":");
  return isDigit && isIpv4(run) ? run : undefined;
}

/** Like net.isIPv4, without a regular expression, because every address of every event is tested. */
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

const ASCII = /^[\0-\x7f]*$/;

/** Text as it is indexed and searched: case-folded, and composed, so that both forms of an accented letter are equal. */
export function foldText(text: string): string {
  return foldCase(ASCII.test(text) ? text : text.normalize("NFC"));
}

/** Calls `visit` with every run of a folded text. */
export function visitRuns(text: string, visit: (run: string) => void): void {
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

/** Thai, Lao, Burmese, Khmer, Hangul, kana, Bopomofo and Han: scripts that are written without spaces, or may be. */
const UNSPACED_CLASS =
  "\\u0e00-\\u0eff\\u1000-\\u109f\\u1100-\\u11ff\\u1780-\\u17ff\\u3040-\\u312f\\u3130-\\u318f\\u31f0-\\u31ff" +
  "\\u3400-\\u4dbf\\u4e00-\\u9fff\\uac00-\\ud7a3\\uf900-\\ufaff\\uff66-\\uff9f\\u{20000}-\\u{323af}";
const UNSPACED = new RegExp(`[${UNSPACED_CLASS}]`, "u");
const PIECES = new RegExp(`[${UNSPACED_CLASS}]+|[^${UNSPACED_CLASS}]+`, "gu");

/** True if a word may begin or end before this position. */
export function isWordEdge(text: string, at: number): boolean {
  if (at === 0 || at === text.length) return true;
  if (kindOf(text.charCodeAt(at - 1)) !== LETTER || kindOf(text.charCodeAt(at)) !== LETTER) return true;
  const before = isTrailing(text.charCodeAt(at - 1)) ? text.slice(at - 2, at) : text[at - 1]!;
  return UNSPACED.test(before) || UNSPACED.test(String.fromCodePoint(text.codePointAt(at)!));
}

/** True for the second half of a surrogate pair. */
function isTrailing(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

export interface TextPiece {
  readonly text: string;
  readonly isUnspaced: boolean;
}

/** A run, split where a script without spaces begins or ends; undefined if it contains none. */
export function piecesOf(run: string): TextPiece[] | undefined {
  if (ASCII.test(run) || !UNSPACED.test(run)) return undefined;
  return (run.match(PIECES) ?? []).map((text) => ({ text, isUnspaced: UNSPACED.test(text) }));
}

/** The words of a run. */
export function wordsOfRun(run: string): string[] {
  const whole = wholeWord(run);
  if (whole !== undefined) return [whole];
  const words = piecesOf(run)?.flatMap(({ text, isUnspaced }) => (isUnspaced ? pairsOf(text) : wordsOfRun(text)));
  return words === undefined ? wordsOfSpacedRun(run) : words.slice(0, EVENT_WORDS_MAX);
}

/** Each character with the next one; the last is alone. */
function pairsOf(piece: string): string[] {
  const characters = [...piece];
  return characters.map((character, i) => character + (characters[i + 1] ?? ""));
}

function wordsOfSpacedRun(run: string): string[] {
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
      const rest = trimEnd(run.slice(partStart, partStart + WORD_CHARACTERS_MAX));
      words.push(part);
      if (rest !== part) words.push(rest);
    }
    partStart = -1;
    connectors++;
  }
  // 10.0.0.1:443 and 10.0.0.1/24 contain an address.
  if (connectors > 4) {
    const address = INNER_IPV4.exec(run)?.[0];
    if (address && isIP(address)) words.push(address);
  }
  return words;
}

export function trimEnd(run: string): string {
  let end = run.length;
  while (end > 0 && kindOf(run.charCodeAt(end - 1)) === CONNECTOR) end--;
  return end === run.length ? run : run.slice(0, end);
}

/**
 * A single letter is a prefix of thousands of words. So every event also has a word for each letter that its words begin
 * with, and a search for one letter uses that.
 */
export const START_MARKS: readonly string[] = Array.from(
  { length: 128 },
  (_, code) => `${FILTER_MARK}starts:${String.fromCharCode(code)}`,
);

/** The length of the word for an event's time, which ends at the minute. */
export const TIME_WORD_CHARACTERS = "2026-11-17t06:59".length;
const TIME_MARK = `${FILTER_MARK}time:`;

/** The word for an event's time: `2026-11-17t06:59`, marked, so that no number finds it. */
export function timeWord(time: string): string {
  return TIME_MARK + time.slice(0, TIME_WORD_CHARACTERS);
}

const MINUTE_MS = 60_000;
let wordOfMinute = "";
let minute = Number.NaN;

/** Cached, because most events are of the same minute as the one before. */
export function timeWordAt(ms: number): string {
  const at = Math.floor(ms / MINUTE_MS);
  if (at !== minute) {
    minute = at;
    wordOfMinute = timeWord(formatTime(ms).toLowerCase());
  }
  return wordOfMinute;
}

const TIME_TEMPLATE = "dddd-dd-ddtdd:dd:dd.dddz";
/** A year alone counts as a number. */
const TIME_CHARACTERS_MIN = "2026-1".length;

/** True if a run is a prefix of a time in the format of the API. */
export function isTimePrefix(run: string): boolean {
  if (run.length < TIME_CHARACTERS_MIN || run.length > TIME_TEMPLATE.length) return false;
  for (let i = 0; i < run.length; i++) {
    const code = run.charCodeAt(i);
    const isDigit = code >= 48 && code <= 57;
    if (TIME_TEMPLATE[i] === "d" ? !isDigit : run[i] !== TIME_TEMPLATE[i]) return false;
  }
  return true;
}

/** The word that a list filter looks for. It begins with a character that no word of an event's text contains. */
export function filterWord(field: "type" | "source" | "severity" | "class", value: string): string {
  const plain = /^[a-z0-9_.-]*$/.test(value)
    ? value
    : value.replace(/[^a-z0-9_.-]/gu, (char) => `/${char.codePointAt(0)!.toString(16)}/`);
  return `${FILTER_MARK}${field}:${plain}`;
}
