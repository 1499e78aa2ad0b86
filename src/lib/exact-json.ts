// JSON that keeps every digit of integers. JSON.parse converts all numbers to doubles, which are exact for integers up to
// 2^53 only; 64-bit ids and times in nanoseconds are larger. Here an integer beyond 2^53 becomes a bigint and every other
// number a double, so that each value has one representation: a number never equals a bigint, and every bigint lies beyond
// all numbers on its side of zero.

/**
 * Makes JSON.stringify write bigints as numbers, in the calling thread; otherwise it throws. Doing this once per thread is
 * safer than a serialiser of our own: event data is serialised in dozens of places (responses, exports, rules, messages,
 * logs), and a missed call would throw.
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

/** 2^53 has this many digits, so no shorter run of digits can be too large for a double. */
const LARGE_DIGITS_MIN = 16;

/** Parses JSON that the service wrote, or any other without unsigned exponents. */
export function parseExact(text: string): unknown {
  return mayHoldLarge(text) ? parseByToken(text) : JSON.parse(text);
}

/** An exponent. A letter between hexadecimal digits may look the same, which only costs the slow path. */
const EXPONENT = /\d[eE]\+?\d+[,\]}\s]|\d[eE]\+?\d+$/;

/** Parses JSON from others. A lone surrogate, which cannot be stored as UTF-8, becomes U+FFFD. */
export function parseSent(text: string): unknown {
  return sentValue(text, parseExact(text));
}

/** The same for a text that parseExact has already parsed. */
export function sentValue(text: string, parsed: unknown): unknown {
  const whole = wellFormedJson(text);
  if (EXPONENT.test(whole)) return parseByToken(whole);
  return whole === text ? parsed : parseExact(whole);
}

/** True if a result of JSON.parse was, or may have been, rounded to a double. */
export function isRounded(value: number): boolean {
  return Math.abs(value) > Number.MAX_SAFE_INTEGER;
}

/**
 * True if a number in the text might be too large for a double. Testing every sixteenth character is enough, since a run of
 * sixteen digits covers one of them: most texts cost a few dozen tests.
 */
export function mayHoldLarge(text: string): boolean {
  const half = LARGE_DIGITS_MIN / 2;
  for (let at = LARGE_DIGITS_MIN - 1; at < text.length; at += LARGE_DIGITS_MIN) {
    if (!isDigit(text.charCodeAt(at))) continue;
    // Such a run extends at least eight characters to one side.
    const isRun = isDigit(text.charCodeAt(at - half)) || isDigit(text.charCodeAt(at + half));
    if (isRun && isLargeAt(text, at)) return true;
  }
  // JSON.stringify writes doubles from 1e21 on with an exponent and a sign.
  for (let at = text.indexOf("+"); at >= 0; at = text.indexOf("+", at + 1)) {
    if ((text.charCodeAt(at - 1) | 0x20) === 0x65 && isDigit(text.charCodeAt(at - 2))) return true;
  }
  return false;
}

/** Examines the run of digits around a position. Quoted ids and hashes and the digits of a fraction are not integers. */
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
  // TypeScript's types lack the reviver's third argument, which has the source text of a value.
  return JSON.parse(text, exactNumber as (key: string, value: unknown) => unknown);
}

/** A number that a double cannot hold becomes a bigint if it is an integer up to 1.8e308, and otherwise its source text. */
function exactNumber(_key: string, value: unknown, { source }: { source?: string }): unknown {
  if (typeof value !== "number" || !isRounded(value)) return value;
  return (Number.isFinite(value) ? wholeNumber(source!) : undefined) ?? source;
}

/** The integer value of a JSON number; undefined if it has a fraction. */
function wholeNumber(token: string): bigint | undefined {
  const [mantissa = "", exponent = "0"] = token.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const digits = whole + fraction;
  const zeros = Number(exponent) - fraction.length;
  if (zeros >= 0) return BigInt(digits + "0".repeat(zeros));
  return /^0+$/.test(digits.slice(zeros)) ? BigInt(digits.slice(0, zeros)) : undefined;
}

/** The canonical representation of a number: an integer beyond 2^53 is a bigint. The number must be finite. */
export function canonicalNumber(value: number | bigint): number | bigint {
  if (typeof value === "number") return isRounded(value) ? BigInt(value) : value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;
/** Matches escapes one after the other, so that the second backslash of `\\ud800` starts none. */
const ESCAPES = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|[^])/g;
const ESCAPE_CHARACTERS = "\\ud800".length;

/** The JSON text with lone surrogates replaced. */
export function wellFormedJson(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  if (!SURROGATE_ESCAPE.test(wellFormed)) return wellFormed;
  return wellFormed.replace(ESCAPES, (escape) => (escape.length === ESCAPE_CHARACTERS ? "\\ufffd" : escape));
}
