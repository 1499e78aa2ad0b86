import { mapPlain, plainText, type Pattern } from "./pattern.ts";

// Every modifier there is, `CommandLine|windash|contains|all`, and what it does to a value before it is compared.

/** What decides how a field is compared; of these a field has at most one. */
const COMPARISONS = ["re", "cidr", "exists", "lt", "lte", "gt", "gte", "fieldref"] as const;
/** Where in the field a text stands. */
const PLACES = ["contains", "startswith", "endswith"] as const;
const PATTERN_FLAGS = ["i", "m", "s"] as const;
const TIME_PARTS: ReadonlySet<string> = new Set(["minute", "hour", "day", "week", "month", "year"]);
const OTHERS = ["all", "cased", "neq", "expand"];

/** Values that one value may become. */
const EXPANSIONS_MAX = 1000;
const DASHES = ["-", "/", "\u2013", "\u2014", "\u2015"];

export interface EncodedText {
  readonly pattern: Pattern;
  /** The characters stand for bytes: what comes next takes them as such. */
  readonly bytes: boolean;
}

type Encode = (text: EncodedText) => readonly EncodedText[] | { readonly fault: string };

const WILDCARD = "a text with * or ? in it cannot be encoded; write \\* and \\? for plain ones";

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

/** Modifiers that turn one text into one or several others, in the order in which they stand. */
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
      ? { fault: `the dashes of this text make more than ${EXPANSIONS_MAX} variants` }
      : made.map((variant) => ({ pattern: variant, bytes }));
  },
};

/** A text inside of another that is encoded begins at one of three places of its encoding. */
function base64AtOffsets(bytes: Buffer): string[] {
  return [0, 1, 2].map((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset, " "), bytes]).toString("base64");
    const end = [encoded.length, -3, -2][(bytes.length + offset) % 3]!;
    return encoded.slice([0, 2, 3][offset], end);
  });
}

/** An option of a command can begin with any of the dashes; one inside of a word is a plain character. */
function withDashes(text: string): string[] {
  const pieces = text.split(/\B[-/]\b/);
  let made = [pieces[0]!];
  for (const piece of pieces.slice(1)) {
    made = made.flatMap((before) => DASHES.map((dash) => before + dash + piece));
    if (made.length > EXPANSIONS_MAX) return made;
  }
  return made;
}

/** Whether the modifiers leave a value as it is, to be compared with the whole of a field. */
export function isPlain(modifiers: readonly string[]): boolean {
  return modifiers.every((modifier) => OTHERS.includes(modifier));
}

/** Why these modifiers cannot stand together, or undefined when they can. */
export function modifierFault(modifiers: readonly string[]): string | undefined {
  const known = new Set<string>([...COMPARISONS, ...PLACES, ...PATTERN_FLAGS, ...OTHERS, ...Object.keys(ENCODINGS)]);
  for (const modifier of modifiers) {
    if (TIME_PARTS.has(modifier))
      return `the modifier ${modifier} (a part of a time) is not taken; use during on timestamp`;
    if (!known.has(modifier)) return `there is no modifier ${modifier}`;
  }
  const comparisons = modifiers.filter((modifier) => (COMPARISONS as readonly string[]).includes(modifier));
  if (comparisons.length > 1) return `${comparisons.join(" and ")} cannot stand together`;
  const places = modifiers.filter((modifier) => (PLACES as readonly string[]).includes(modifier));
  if (places.length > 1) return `${places.join(" and ")} cannot stand together`;
  const [comparison] = comparisons;
  if (places.length > 0 && comparison !== undefined && comparison !== "fieldref") {
    return `${places[0]} and ${comparison} cannot stand together`;
  }
  const encoding = modifiers.find((modifier) => modifier in ENCODINGS);
  if (encoding !== undefined && comparison !== undefined) return `${encoding} and ${comparison} cannot stand together`;
  const flag = modifiers.find((modifier) => (PATTERN_FLAGS as readonly string[]).includes(modifier));
  if (flag !== undefined && comparison !== "re") return `${flag} belongs behind re`;
  return undefined;
}
