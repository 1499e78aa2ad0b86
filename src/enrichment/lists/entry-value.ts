import { formatAddress, parseAddress, type AddressRange } from "../../lib/ip.ts";
import type { EntryType } from "../../model/watch-list.ts";
import {
  HOSTS_ADDRESSES,
  HOSTS_NAMES,
  isFour,
  isNetwork,
  normaliseName,
  parseRange,
  SPACED_RANGE,
} from "./parse-list.ts";

// Values of list entries, one by one, in the forms that lists in files have.

export interface EntryValue {
  readonly value: string;
  readonly type: EntryType;
}

const VALUE_CHARACTERS_MAX = 1024;
const FOUR_BITS = 32;
const SIX_BITS = 128;

/** An address, network, range or domain in canonical form; undefined for anything else. */
export function parseEntryValue(text: string): EntryValue | undefined {
  if (text.length > VALUE_CHARACTERS_MAX) return undefined;
  const range = parseRange(text.trim().replace(/\s+-\s+/, "-"));
  if (range) return rangeValue(range);
  const name = normaliseName(text.trim().replace(/^\*?\./, ""));
  return name === undefined ? undefined : { value: name, type: "domain" };
}

function rangeValue({ from, to }: AddressRange): EntryValue {
  if (from === to) return { value: formatAddress(from), type: "address" };
  const start = formatAddress(from);
  if (!isNetwork({ from, to })) return { value: `${start}-${formatAddress(to)}`, type: "range" };
  const free = (to - from + 1n).toString(2).length - 1;
  return { value: `${start}/${(isFour(from) && isFour(to) ? FOUR_BITS : SIX_BITS) - free}`, type: "network" };
}

export interface EntryLine {
  readonly line: number;
  readonly values: readonly EntryValue[];
  /** The text of the line's comment. */
  readonly note: string | null;
  /** The start of a line that has something else than entries; otherwise null. */
  readonly bad: string | null;
}

const COMMENT = /[#;]|\/\//;
/** A longer line is bad. */
const LINE_CHARACTERS_MAX = 4096;
const BAD_CHARACTERS_MAX = 100;

/** The lines of a list in a file, those without content as well. A comment behind an entry is its note. */
export function* readEntryLines(text: string): Generator<EntryLine> {
  let line = 0;
  let start = text.startsWith("\uFEFF") ? 1 : 0;
  while (start <= text.length) {
    const end = text.indexOf("\n", start);
    const whole = text.slice(start, end < 0 ? text.length : end);
    start = end < 0 ? text.length + 1 : end + 1;
    yield readEntryLine(whole, ++line);
  }
}

function readEntryLine(whole: string, line: number): EntryLine {
  const bad = whole.slice(0, LINE_CHARACTERS_MAX).trim().slice(0, BAD_CHARACTERS_MAX);
  if (whole.length > LINE_CHARACTERS_MAX) return { line, values: [], note: null, bad };
  const comment = whole.search(COMMENT);
  const content = (comment < 0 ? whole : whole.slice(0, comment)).trim();
  if (content === "") return { line, values: [], note: null, bad: null };
  const note =
    comment < 0
      ? ""
      : whole
          .slice(comment)
          .replace(/^[#;/\s]+/, "")
          .trim();
  const found = valuesOf(content).map(parseEntryValue);
  const values = found.filter((value) => value !== undefined);
  return { line, values, note: note === "" ? null : note, bad: values.length < found.length ? bad : null };
}

function valuesOf(content: string): string[] {
  const spaced = SPACED_RANGE.exec(content);
  if (spaced) return [`${spaced[1]}-${spaced[2]}`];
  const [first = "", ...others] = content.split(/[\s,"']+/).filter((word) => word !== "");
  if (HOSTS_ADDRESSES.has(first) && others.length > 0) return others.filter((word) => !HOSTS_NAMES.test(word));
  const [second = ""] = others;
  // Two adjacent addresses are the bounds of a network or no entry, as in files.
  const isPair = parseAddress(first) !== undefined && parseAddress(second) !== undefined;
  if (!isPair) return [first];
  const pair = parseRange(`${first}-${second}`);
  return [pair && isNetwork(pair) ? `${first}-${second}` : content];
}
