import { isTimePartName, TIME_PART_NAMES } from "../model/time-part.ts";
import { mapPlain, plainText, type SigmaPattern } from "./sigma-pattern.ts";

// All modifiers, `CommandLine|windash|contains|all`, and the encodings that they apply to a value.

/** Modifiers that select the comparison; a field has at most one. */
const COMPARISONS = ["re", "cidr", "exists", "lt", "lte", "gt", "gte", "fieldref"] as const;
/** Position of a text in the field. */
const PLACES = ["contains", "startswith", "endswith"] as const;
const PATTERN_FLAGS = ["i", "m", "s"] as const;
/** Comparisons of a time part, other than equality. */
const ORDERS: ReadonlySet<string> = new Set(["lt", "lte", "gt", "gte"]);
const OTHERS = ["all", "cased", "neq", "expand"];

/** Limit of the variants of one value. */
const EXPANSIONS_MAX = 1000;
const DASHES = ["-", "/", "\u2013", "\u2014", "\u2015"];

export interface EncodedText {
  readonly pattern: SigmaPattern;
  /** True if the characters represent bytes, for the next encoding. */
  readonly bytes: boolean;
}

type Encode = (text: EncodedText) => readonly EncodedText[] | { readonly fault: string };

const WILDCARD = "a text with the wildcards * or ? cannot be encoded; escape them as \\* and \\?";

const encodes =
  (encode: (bytes: Buffer) => readonly string[], bytes: boolean): Encode =>
  ({ pattern, bytes: areBytes }) => {
    const text = plainText(pattern);
    if (text === undefined) return { fault: WILDCARD };
    return encode(Buffer.from(text, areBytes ? "latin1" : "utf8")).map((made) => ({ pattern: [made], bytes }));
  };

const widens =
  (order: "little" | "big", mark: boolean): Encode =>
  ({ pattern }) => {
    const text = plainText(pattern);
    if (text === undefined) return { fault: WILDCARD };
    const bytes = Buffer.from((mark ? "\ufeff" : "") + text, "utf16le");
    if (order === "big") bytes.swap16();
    return [{ pattern: [bytes.toString("latin1")], bytes: true }];
  };

/** Modifiers that convert a text to one or more others, applied in order. */
export const ENCODINGS: Readonly<Record<string, Encode>> = {
  base64: encodes((bytes) => [bytes.toString("base64")], false),
  base64offset: encodes(base64AtOffsets, false),
  wide: widens("little", false),
  utf16le: widens("little", false),
  utf16be: widens("big", false),
  utf16: widens("little", true),
  windash: ({ pattern, bytes }) => {
    const made = mapPlain(pattern, withDashes);
    return made.length > EXPANSIONS_MAX
      ? { fault: `the dashes in this text expand to more than ${EXPANSIONS_MAX} variants` }
      : made.map((variant) => ({ pattern: variant, bytes }));
  },
};

/** The encodings of a text that is part of a longer one, at its three possible offsets. */
function base64AtOffsets(bytes: Buffer): string[] {
  return [0, 1, 2].map((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset, " "), bytes]).toString("base64");
    const end = [encoded.length, -3, -2][(bytes.length + offset) % 3]!;
    return encoded.slice([0, 2, 3][offset], end);
  });
}

/** Variants of a command line: an option can start with any dash; a dash inside a word is literal. */
function withDashes(text: string): string[] {
  const pieces = text.split(/\B[-/]\b/);
  let made = [pieces[0]!];
  for (const piece of pieces.slice(1)) {
    made = made.flatMap((before) => DASHES.map((dash) => before + dash + piece));
    if (made.length > EXPANSIONS_MAX) return made;
  }
  return made;
}

/** True if the modifiers leave the value unchanged and compare it with the whole field. */
export function isPlain(modifiers: readonly string[]): boolean {
  return modifiers.every((modifier) => OTHERS.includes(modifier));
}

/** Why these modifiers cannot be combined, or undefined if they can. */
export function modifierFault(modifiers: readonly string[]): string | undefined {
  const known = new Set<string>([
    ...COMPARISONS,
    ...PLACES,
    ...PATTERN_FLAGS,
    ...OTHERS,
    ...TIME_PART_NAMES,
    ...Object.keys(ENCODINGS),
  ]);
  const unknown = modifiers.find((modifier) => !known.has(modifier));
  if (unknown !== undefined) return `unknown modifier ${unknown}`;
  const timePart = modifiers.find(isTimePartName);
  const beside = modifiers.find(
    (modifier) => modifier !== timePart && !ORDERS.has(modifier) && !OTHERS.includes(modifier),
  );
  if (timePart !== undefined && beside !== undefined) return `${timePart} and ${beside} cannot be combined`;
  const comparisons = modifiers.filter((modifier) => (COMPARISONS as readonly string[]).includes(modifier));
  if (comparisons.length > 1) return `${comparisons.join(" and ")} cannot be combined`;
  const places = modifiers.filter((modifier) => (PLACES as readonly string[]).includes(modifier));
  if (places.length > 1) return `${places.join(" and ")} cannot be combined`;
  const [comparison] = comparisons;
  if (places.length > 0 && comparison !== undefined && comparison !== "fieldref") {
    return `${places[0]} and ${comparison} cannot be combined`;
  }
  const encoding = modifiers.find((modifier) => modifier in ENCODINGS);
  if (encoding !== undefined && comparison !== undefined) return `${encoding} and ${comparison} cannot be combined`;
  const flag = modifiers.find((modifier) => (PATTERN_FLAGS as readonly string[]).includes(modifier));
  if (flag !== undefined && comparison !== "re") return `${flag} requires re`;
  return undefined;
}
