// JSON whose whole numbers keep every digit. JSON.parse makes doubles of all numbers, which hold whole numbers exactly up to
// 2^53 only: 64-bit ids and times in nanoseconds are larger. Read here, a whole number beyond 2^53 is a bigint and every
// other number a double, so that each value has one form: a number never equals a bigint, and any bigint lies beyond all
// numbers on its side of zero.

/**
 * Makes JSON.stringify write bigints as numbers, in the thread that calls it; without this it throws. Doing so once per thread
 * is safer than a writer of our own: event data is serialised in dozens of places (answers, exports, rules, messages, logs),
 * and any call that was missed would throw.
 */
export function enableExactJson(): void {
  // oxlint-disable-next-line no-extend-native
  Object.defineProperty(BigInt.prototype, "toJSON", {
    value(this: bigint) {
      return JSON.rawJSON(this.toString());
    },
    writable: true,
    configurable: true,
  });
}

/** 2^53 has this many digits: no shorter run of digits can be too large for a double. */
const LARGE_DIGITS_MIN = 16;

/** Reads what the service itself has written, and whatever else has no exponents without a sign. */
export function parseExact(text: string): unknown {
  return mayHoldLarge(text) ? parseByToken(text) : JSON.parse(text);
}

/** An exponent; a letter between hexadecimal digits looks alike now and then, and costs the slower way only. */
const EXPONENT = /\d[eE]\+?\d+[,\]}\s]|\d[eE]\+?\d+$/;

/** Reads what somebody else has written: half a surrogate pair, which cannot be stored as UTF-8, becomes U+FFFD. */
export function parseSent(text: string): unknown {
  return sentValue(text, parseExact(text));
}

/** The same for whoever has the text parsed by parseExact already. */
export function sentValue(text: string, parsed: unknown): unknown {
  const whole = wellFormedJson(text);
  if (EXPONENT.test(whole)) return parseByToken(whole);
  return whole === text ? parsed : parseExact(whole);
}

/** Whether a value that JSON.parse made holds a number that was, or may have been, rounded to a double. */
export function isRounded(value: number): boolean {
  return Math.abs(value) > Number.MAX_SAFE_INTEGER;
}

/**
 * Whether a number in the text might be too large for a double. Every sixteenth character is looked at, since a run of
 * sixteen digits covers one of these wherever it begins: most texts cost a few dozen looks.
 */
export function mayHoldLarge(text: string): boolean {
  const half = LARGE_DIGITS_MIN / 2;
  for (let at = LARGE_DIGITS_MIN - 1; at < text.length; at += LARGE_DIGITS_MIN) {
    if (!isDigit(text.charCodeAt(at))) continue;
    // So long a run reaches eight characters to one side at least.
    const isRun = isDigit(text.charCodeAt(at - half)) || isDigit(text.charCodeAt(at + half));
    if (isRun && isLargeAt(text, at)) return true;
  }
  // JSON.stringify writes doubles from 1e21 on with an exponent and a sign.
  for (let at = text.indexOf("+"); at >= 0; at = text.indexOf("+", at + 1)) {
    if ((text.charCodeAt(at - 1) | 0x20) === 0x65 && isDigit(text.charCodeAt(at - 2))) return true;
  }
  return false;
}

/** The run of digits around a place. Ids and hashes in quotes and the digits behind a point are no whole numbers. */
function isLargeAt(text: string, at: number): boolean {
  let start = at;
  while (isDigit(text.charCodeAt(start - 1))) start--;
  let end = at + 1;
  while (isDigit(text.charCodeAt(end))) end++;
  const length = end - start;
  if (length < LARGE_DIGITS_MIN || (length === LARGE_DIGITS_MIN && text.charCodeAt(start) !== 0x39)) return false;
  const before = text.charCodeAt(start - 1);
  return before !== 0x22 && before !== 0x2e;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function parseByToken(text: string): unknown {
  // The library's types do not know yet that a reviver is told how a value was written.
  return JSON.parse(text, exactNumber as (key: string, value: unknown) => unknown);
}

/** A number that a double does not hold: exactly if it is whole; otherwise, or beyond 1.8e308, as the text it came as. */
function exactNumber(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== "number" || !isRounded(value)) return value;
  return (Number.isFinite(value) ? wholeNumber(source!) : undefined) ?? source;
}

/** The whole number that a JSON number is; undefined where it has a fraction. */
function wholeNumber(token: string): bigint | undefined {
  const [mantissa = "", exponent = "0"] = token.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const digits = whole + fraction;
  const zeros = Number(exponent) - fraction.length;
  if (zeros >= 0) return BigInt(digits + "0".repeat(zeros));
  return /^0+$/.test(digits.slice(zeros)) ? BigInt(digits.slice(0, zeros)) : undefined;
}

/** The one form of a number, however it was made: a double beyond 2^53 is a bigint. Not finite ones have none. */
export function canonicalNumber(value: number | bigint): number | bigint {
  if (typeof value === "number") return isRounded(value) ? BigInt(value) : value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;
/** Escapes one after the other, so that the second backslash of `\\ud800` begins none. */
const ESCAPES = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|[^])/g;
const ESCAPE_CHARACTERS = "\\ud800".length;

/** JSON without escapes of half a surrogate pair. */
export function wellFormedJson(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  if (!SURROGATE_ESCAPE.test(wellFormed)) return wellFormed;
  return wellFormed.replace(ESCAPES, (escape) => (escape.length === ESCAPE_CHARACTERS ? "\\ufffd" : escape));
}
