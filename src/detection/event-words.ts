// Ids of events as four words: an eighth of the room of a text. A simulation has numbers in place of ids.

/** The id of an event, or its number in the order of arrival. */
export type EventKey = string | number;

const PREFIX = "evt_";
const LENGTH = PREFIX.length + 32;
/** No id ends like this: its 65th bit is 1 and its 66th is 0. */
const IS_NUMBER = 0xffffffff;
/** For each character the digit that it is; 16 for one that is none. */
const DIGITS = Uint8Array.from({ length: 128 }, (_, code) => {
  const digit = "0123456789abcdef".indexOf(String.fromCharCode(code));
  return digit < 0 ? 16 : digit;
});

export function writeWords(key: EventKey, words: Uint32Array): void {
  if (typeof key === "number") {
    words[0] = Math.floor(key / 2 ** 32);
    words[1] = key >>> 0;
    words[2] = IS_NUMBER;
    words[3] = IS_NUMBER;
    return;
  }
  let wrong = key.length === LENGTH && key.startsWith(PREFIX) ? 0 : 16;
  for (let word = 0, at = PREFIX.length; word < 4; word++) {
    let bits = 0;
    for (const end = at + 8; at < end; at++) {
      const code = key.charCodeAt(at);
      const digit = DIGITS[code & 127]!;
      wrong |= digit | (code & ~127);
      bits = (bits << 4) | (digit & 15);
    }
    words[word] = bits;
  }
  if (wrong > 15 || wrong < 0) throw new Error(`not an event's id: ${key}`);
}

export function readWords(words: Uint32Array, at: number): EventKey {
  if (words[at + 2] === IS_NUMBER && words[at + 3] === IS_NUMBER) return words[at]! * 2 ** 32 + words[at + 1]!;
  return PREFIX + hex(words[at]!) + hex(words[at + 1]!) + hex(words[at + 2]!) + hex(words[at + 3]!);
}

function hex(word: number): string {
  return word.toString(16).padStart(8, "0");
}
