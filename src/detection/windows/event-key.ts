// Event ids packed into four words, an eighth of the memory of a string. Simulations use numbers instead of ids.

/** The id of an event, or its number in order of arrival. */
export type EventKey = string | number;

/** Words of a key, and of a key with the number of an occurrence that the event completed. */
export const KEY_WORDS = 4;
export const OCCURRENCE_WORDS = KEY_WORDS + 1;

const PREFIX = "evt_";
const LENGTH = PREFIX.length + 32;
/** No id has these words: its 65th bit is 1 and its 66th is 0. */
const IS_NUMBER = 0xffffffff;
const NO_DIGIT = 16;
/** Maps a byte to its hexadecimal digit. */
const DIGITS = Uint8Array.from({ length: 256 }, (_, code) => {
  const digit = "0123456789abcdef".indexOf(String.fromCharCode(code));
  return digit < 0 ? NO_DIGIT : digit;
});
/** The current id as bytes. Reading characters from the string takes twice as long. */
const bytes = Buffer.alloc(LENGTH);

export function writeWords(key: EventKey, words: Uint32Array): void {
  if (typeof key === "number") {
    words[0] = Math.floor(key / 2 ** 32);
    words[1] = key >>> 0;
    words[2] = IS_NUMBER;
    words[3] = IS_NUMBER;
    return;
  }
  bytes.write(key, 0, LENGTH, "latin1");
  let wrong = key.length === LENGTH && key.startsWith(PREFIX) ? 0 : NO_DIGIT;
  for (let word = 0, at = PREFIX.length; word < 4; word++, at += 8) {
    const a = DIGITS[bytes[at]!]!;
    const b = DIGITS[bytes[at + 1]!]!;
    const c = DIGITS[bytes[at + 2]!]!;
    const d = DIGITS[bytes[at + 3]!]!;
    const e = DIGITS[bytes[at + 4]!]!;
    const f = DIGITS[bytes[at + 5]!]!;
    const g = DIGITS[bytes[at + 6]!]!;
    const h = DIGITS[bytes[at + 7]!]!;
    wrong |= a | b | c | d | e | f | g | h;
    words[word] = (a << 28) | (b << 24) | (c << 20) | (d << 16) | (e << 12) | (f << 8) | (g << 4) | h;
  }
  if (wrong >= NO_DIGIT) throw new Error(`not an event id: ${key}`);
}

/** Unpacks a key from its four words. */
export function readWords(word: (n: number) => number): EventKey {
  if (word(2) === IS_NUMBER && word(3) === IS_NUMBER) return word(0) * 2 ** 32 + word(1);
  return PREFIX + hex(word(0)) + hex(word(1)) + hex(word(2)) + hex(word(3));
}

function hex(word: number): string {
  return word.toString(16).padStart(8, "0");
}
