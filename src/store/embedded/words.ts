import { isIP } from "node:net";
import { canonicalAddress } from "../../lib/ip.ts";

// How text is cut into words, the same way in an event (indexed-words.ts) and in a search (text-search.ts): a *run* is letters,
// digits and the connectors within them (`www.example.com`, `login_failure`, `/usr/bin/id`); its *parts* are what stands
// between connectors. A run is findable from the beginning of each of its parts. An address or a MAC address is one word,
// in one spelling; so are numbers with connectors between them, such as dates.

/** At most this many words of an event are taken from runs with connectors and text beyond ASCII. */
export const EVENT_WORDS_MAX = 10_000;
/** A word is kept up to this length; a longer one that is searched is compared with the event itself. */
export const WORD_CHARACTERS_MAX = 40;

/** Behind every word that begins as what stands before this does: what is beyond ASCII in a word is no longer than that. */
export const AFTER_ALL = "\u{10ffff}".repeat(WORD_CHARACTERS_MAX);

/** In the index a letter, in every text a separator. */
export const FILTER_MARK = "\x01";
/** The characters besides letters and digits that the index leaves in a word. */
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

/** An address or MAC address in the one spelling that it is indexed under. */
export function wholeWord(run: string): string | undefined {
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

/** The words that a run is found by. */
export function wordsOfRun(run: string): string[] {
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

export function trimEnd(run: string): string {
  let end = run.length;
  while (end > 0 && kindOf(run.charCodeAt(end - 1)) === CONNECTOR) end--;
  return end === run.length ? run : run.slice(0, end);
}

/**
 * One letter stands for thousands of words. Every event therefore also has a word for each letter that its words begin
 * with: a search for one letter asks for that.
 */
export const START_MARKS: readonly string[] = Array.from(
  { length: 128 },
  (_, code) => `${FILTER_MARK}starts:${String.fromCharCode(code)}`,
);

/** The word that a filter of the list looks for. Begins with a character that no text of an event brings into a word. */
export function filterWord(field: "type" | "source" | "severity" | "class", value: string): string {
  const plain = /^[a-z0-9_.-]*$/.test(value)
    ? value
    : value.replace(/[^a-z0-9_.-]/gu, (char) => `/${char.codePointAt(0)!.toString(16)}/`);
  return `${FILTER_MARK}${field}:${plain}`;
}
