import { unreachable } from "../../../lib/unreachable.ts";

// A template of a message: text, and fields in braces, such as `Ban {src_ip} for {duration_s} seconds`. It is scanned from left
// to right. Only greedy fields go back, a limited number of times, so the time is linear in the message.

/** How far a field reaches. */
export const FIELD_KINDS = {
  word: "up to the text that follows; contains no blank",
  text: "up to the first occurrence of the text that follows",
  greedy: "up to the last occurrence of the text that follows, possibly nothing: for names that strangers choose",
  sole: "up to the only occurrence of the text that follows: for names of strangers on both sides of it",
  rest: "up to the end of the message",
  quoted: "in double quotes, which are removed; a backslash escapes a quote",
  integer: "digits",
  address: "an IP address",
} as const;

export type FieldKind = keyof typeof FIELD_KINDS;

export interface MessageField {
  /** Empty for a part that is skipped. */
  readonly name: string;
  readonly kind: FieldKind;
}

interface TemplatePart {
  readonly field: MessageField;
  /** Text behind the field. */
  readonly next: string;
}

export class TemplateFault extends Error {}

/** Where a message stops matching, in words. */
export interface TemplateMiss {
  /** Characters that matched. */
  readonly reached: number;
  readonly words: string;
}

/** What a field needs, in the words of a miss. */
const FIELD_NEEDS: Readonly<Partial<Record<FieldKind, string>>> = {
  word: "a word",
  quoted: "text in double quotes",
  integer: "digits",
  address: "an IP address",
};
const SHOWN_CHARACTERS_MAX = 40;

/** Kind of a field that states none. */
export type KindOfName = (name: string) => FieldKind;

const FIELD = /\{([a-z0-9_.]{0,64})(?::([a-z]{1,16}))?\}/g;
const PARTS_MAX = 64;
const MAY_BE_EMPTY: ReadonlySet<FieldKind> = new Set(["rest", "text", "greedy", "sole"]);
/** Ends of greedy fields that are tried in one match. */
const GREEDY_TRIES_MAX = 16;
/** Each is searched from the end of the message, so the time is linear in the message only if they are few. */
const GREEDY_MAX = 16;
const ZERO = 0x30;
const NINE = 0x39;
const POINT = 0x2e;
const COLON = 0x3a;
const PERCENT = 0x25;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BLANK = /\s/;
const LETTER = /[\p{L}\p{N}_]/u;

export class Template {
  readonly fields: readonly MessageField[];
  /** Text that the message begins with. */
  readonly #opening: string;
  readonly #parts: readonly TemplatePart[];
  #triesLeft = 0;

  /** Throws TemplateFault. */
  constructor(source: string, kindOf: KindOfName) {
    const { opening, parts } = parse(source, kindOf);
    this.#opening = opening;
    this.#parts = parts;
    this.fields = parts.map(({ field }) => field);
  }

  /**
   * Matches the message from `start`, and writes the value of each field to `values`. Returns the position behind the match; -1 if
   * there is none. Text may follow a match.
   */
  match(message: string, start: number, values: string[]): number {
    if (!message.startsWith(this.#opening, start)) return -1;
    this.#triesLeft = GREEDY_TRIES_MAX;
    return this.#matchParts(0, message, start + this.#opening.length, values);
  }

  #matchParts(first: number, message: string, start: number, values: string[]): number {
    let at = start;
    for (let index = first; index < this.#parts.length; index++) {
      const { field, next } = this.#parts[index]!;
      if (field.kind === "greedy" && next !== "") return this.#matchGreedy(index, message, at, values);
      const end = endOfField(message, at, field.kind, next);
      if (end < at || (end === at && !MAY_BE_EMPTY.has(field.kind))) return -1;
      values[index] = field.kind === "quoted" ? unquoted(message, at, end) : message.slice(at, end);
      if (next !== "" && !message.startsWith(next, end)) return -1;
      at = end + next.length;
    }
    return at;
  }

  /** The text behind the field may occur again in the fields behind it: from the last occurrence to earlier ones, a few times. */
  #matchGreedy(index: number, message: string, at: number, values: string[]): number {
    const { next } = this.#parts[index]!;
    let end = message.lastIndexOf(next);
    for (; end >= at && this.#triesLeft > 0; this.#triesLeft--) {
      const matched = this.#matchParts(index + 1, message, end + next.length, values);
      if (matched >= 0) {
        values[index] = message.slice(at, end);
        return matched;
      }
      if (end === at) return -1;
      end = message.lastIndexOf(next, end - 1);
    }
    return -1;
  }

  /** Why the message does not match, for the author of the template; undefined if it does. */
  explain(message: string, start: number): TemplateMiss | undefined {
    const length = commonLength(message, start, this.#opening);
    if (length < this.#opening.length) {
      return { reached: length, words: expected(this.#opening.slice(length), message, start + length) };
    }
    let at = start + length;
    for (const { field, next } of this.#parts) {
      const end = endOfField(message, at, field.kind, next);
      const name = `{${field.name}:${field.kind}}`;
      if (end < at || (end === at && !MAY_BE_EMPTY.has(field.kind))) {
        const wanted = next === "" ? "" : `, then ${JSON.stringify(next)}`;
        return {
          reached: at - start,
          words: `${name} needs ${FIELD_NEEDS[field.kind] ?? "text"}${wanted}, not ${shown(message, at)}`,
        };
      }
      if (next !== "" && !message.startsWith(next, end)) {
        return { reached: end - start, words: `behind ${name}: ${expected(next, message, end)}` };
      }
      at = end + next.length;
    }
    return undefined;
  }
}

function parse(source: string, kindOf: KindOfName): { opening: string; parts: TemplatePart[] } {
  const parts: TemplatePart[] = [];
  const matches = [...source.matchAll(FIELD)];
  if (matches.length > PARTS_MAX) throw new TemplateFault(`has more than ${PARTS_MAX} fields`);
  const textBetween = (from: number, to: number) => {
    const text = source.slice(from, to);
    const brace = /(?<!\\)[{}]/.exec(text);
    if (brace)
      throw new TemplateFault(
        `has a brace that belongs to no field, at "${text.slice(brace.index, brace.index + 20)}"`,
      );
    return text.replaceAll(/\\([{}])/g, "$1");
  };
  const opening = textBetween(0, matches[0]?.index ?? source.length);
  for (const [index, match] of matches.entries()) {
    const [whole, name = "", stated] = match;
    if (stated !== undefined && !Object.hasOwn(FIELD_KINDS, stated)) {
      throw new TemplateFault(`${stated} is not a kind of field; use ${Object.keys(FIELD_KINDS).join(", ")}`);
    }
    const kind = (stated as FieldKind | undefined) ?? kindOf(name);
    const next = textBetween(match.index + whole.length, matches[index + 1]?.index ?? source.length);
    const isLast = index === matches.length - 1;
    if (next === "" && !isLast) throw new TemplateFault(`needs text between {${name}} and the field behind it`);
    if (kind === "rest" && !isLast) throw new TemplateFault(`{${name}:rest} must be the last field`);
    if (kind === "rest" && next !== "") throw new TemplateFault(`no text can follow {${name}:rest}`);
    parts.push({ field: { name, kind }, next });
  }
  if (parts.filter(({ field }) => field.kind === "greedy").length > GREEDY_MAX) {
    throw new TemplateFault(`has more than ${GREEDY_MAX} greedy fields`);
  }
  return { opening, parts };
}

/** Position behind the field; -1 if it does not match. */
function endOfField(message: string, at: number, kind: FieldKind, next: string): number {
  switch (kind) {
    case "integer":
      return endOfWhole(message, endOfDigits(message, at), next);
    case "address":
      return endOfWhole(message, endOfAddress(message, at, next), next);
    case "quoted":
      return endOfQuoted(message, at);
    case "rest":
      return message.length;
    case "greedy":
      return next === "" ? message.length : message.lastIndexOf(next);
    case "sole": {
      const end = next === "" ? message.length : message.indexOf(next, at);
      return next === "" || end === message.lastIndexOf(next) ? end : -1;
    }
    case "text":
      return next === "" ? message.length : message.indexOf(next, at);
    case "word":
      return endOfWord(message, at, next);
    default:
      return unreachable(kind);
  }
}

/** -1 if a longer word was begun: `everybody` is not the address `e`. */
function endOfWhole(message: string, end: number, next: string): number {
  return next === "" && LETTER.test(message.charAt(end)) ? -1 : end;
}

function endOfDigits(message: string, start: number): number {
  let at = start;
  while (isDigit(message.charCodeAt(at))) at++;
  return at;
}

function endOfWord(message: string, start: number, next: string): number {
  const end = next === "" ? message.length : message.indexOf(next, start);
  for (let at = start; at < end; at++) {
    if (isBlank(message.charCodeAt(at))) return next === "" ? at : -1;
  }
  return end;
}

/** A port may follow an address behind a colon, which is also part of an IPv6 address. */
function endOfAddress(message: string, start: number, next: string): number {
  let at = start;
  while (isDigit(message.charCodeAt(at)) || message.charCodeAt(at) === POINT) at++;
  const isVersion4 = at > start && !isAddressCharacter(message.charCodeAt(at));
  const isBeforePort = next.charCodeAt(0) === COLON;
  if (isVersion4 || (isBeforePort && message.charCodeAt(at) === COLON && message.lastIndexOf(".", at) > start)) {
    // A sentence may end with the address.
    return message.charCodeAt(at - 1) === POINT ? at - 1 : at;
  }
  while (isAddressCharacter(message.charCodeAt(at))) at++;
  if (at > start && message.charCodeAt(at - 1) === POINT) at--;
  if (message.charCodeAt(at) === PERCENT) {
    while (at < message.length && !isBlank(message.charCodeAt(at)) && !message.startsWith(next || " ", at)) at++;
  }
  return isBeforePort ? message.lastIndexOf(":", at - 1) : at;
}

function endOfQuoted(message: string, start: number): number {
  if (message.charCodeAt(start) !== QUOTE) return -1;
  for (let at = start + 1; at < message.length; at++) {
    const code = message.charCodeAt(at);
    if (code === BACKSLASH) at++;
    else if (code === QUOTE) return at + 1;
  }
  return -1;
}

function unquoted(message: string, start: number, end: number): string {
  const inner = message.slice(start + 1, end - 1);
  return inner.includes("\\") ? inner.replaceAll(/\\(["\\])/g, "$1") : inner;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09 || (code > 0x7f && BLANK.test(String.fromCharCode(code)));
}

function isAddressCharacter(code: number): boolean {
  return isDigit(code) || code === COLON || code === POINT || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x66);
}

function commonLength(message: string, start: number, text: string): number {
  let length = 0;
  while (length < text.length && message.charCodeAt(start + length) === text.charCodeAt(length)) length++;
  return length;
}

function expected(text: string, message: string, at: number): string {
  return `${JSON.stringify(text)} is expected, not ${shown(message, at)}`;
}

function shown(message: string, at: number): string {
  if (at >= message.length) return "the end of the message";
  const text = message.slice(at, at + SHOWN_CHARACTERS_MAX);
  return JSON.stringify(at + text.length < message.length ? `${text}…` : text);
}
