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

export interface ImportedLine extends EntryValue {
  readonly line: number;
  /** The text of the line's comment. */
  readonly note: string | null;
}

export interface ImportedLines {
  readonly values: readonly ImportedLine[];
  readonly bad: readonly { readonly line: number; readonly text: string }[];
}

const COMMENT = /[#;]|\/\//;
const BAD_CHARACTERS_MAX = 100;

/** Reads the text of a list in a file. A comment behind an entry is its note. */
export function parseEntryLines(text: string): ImportedLines {
  const values: ImportedLine[] = [];
  const bad: { line: number; text: string }[] = [];
  for (const [i, whole] of text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .entries()) {
    const comment = whole.search(COMMENT);
    const content = (comment < 0 ? whole : whole.slice(0, comment)).trim();
    if (content === "") continue;
    const note =
      comment < 0
        ? ""
        : whole
            .slice(comment)
            .replace(/^[#;/\s]+/, "")
            .trim();
    const found = valuesOf(content).map(parseEntryValue);
    for (const value of found) if (value) values.push({ ...value, line: i + 1, note: note === "" ? null : note });
    if (found.includes(undefined)) bad.push({ line: i + 1, text: whole.trim().slice(0, BAD_CHARACTERS_MAX) });
  }
  return { values, bad };
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
