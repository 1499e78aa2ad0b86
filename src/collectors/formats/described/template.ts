import { unreachable } from "../../../lib/unreachable.ts";

// A template of a message: text, and fields in braces, such as `Ban {src_ip} for {duration_s} seconds`. It is scanned from left
// to right without going back, so the time is linear in the message.

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

export interface TemplateField {
  /** Empty for a part that is skipped. */
  readonly name: string;
  readonly kind: FieldKind;
}

interface TemplatePart {
  readonly field: TemplateField;
  /** Text behind the field. */
  readonly next: string;
}

export class TemplateFault extends Error {}

/** Kind of a field that states none. */
export type KindOfName = (name: string) => FieldKind;

const FIELD = /\{([a-z0-9_.]{0,64})(?::([a-z]{1,16}))?\}/g;
const PARTS_MAX = 64;
const MAY_BE_EMPTY: ReadonlySet<FieldKind> = new Set(["rest", "text", "greedy", "sole"]);
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
  readonly fields: readonly TemplateField[];
  /** Text that the message begins with. */
  readonly #opening: string;
  readonly #parts: readonly TemplatePart[];

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
    let at = start + this.#opening.length;
    for (let index = 0; index < this.#parts.length; index++) {
      const { field, next } = this.#parts[index]!;
      const end = endOfField(message, at, field.kind, next);
      if (end < at || (end === at && !MAY_BE_EMPTY.has(field.kind))) return -1;
      values[index] = field.kind === "quoted" ? unquoted(message, at, end) : message.slice(at, end);
      if (next !== "" && !message.startsWith(next, end)) return -1;
      at = end + next.length;
    }
    return at;
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
