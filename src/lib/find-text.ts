// Substring search in linear time. V8's own search is faster on ordinary texts, but takes time proportional to the product of
// both lengths on some: 50 s for 100,000 characters of "aaa…b…aaa" in half a megabyte of "aaa…".

/** Shorter needles are left to V8, whose cost per character their length bounds. */
const LONG_CHARACTERS_MIN = 64;

/** Same result as `text.indexOf(wanted, from)`. */
export function findText(text: string, wanted: string, from = 0): number {
  if (wanted.length < LONG_CHARACTERS_MIN || wanted.length + from > text.length) return text.indexOf(wanted, from);
  // Most texts do not contain even the first characters.
  const start = text.indexOf(wanted.slice(0, LONG_CHARACTERS_MIN), from);
  return start < 0 ? -1 : findLong(text, wanted, start);
}

export function includesText(text: string, wanted: string): boolean {
  return findText(text, wanted) >= 0;
}

/** Knuth-Morris-Pratt. */
function findLong(text: string, wanted: string, from: number): number {
  const { length } = wanted;
  const borders = bordersOf(wanted);
  let matched = 0;
  for (let i = from; i < text.length; i++) {
    const code = text.charCodeAt(i);
    while (matched > 0 && wanted.charCodeAt(matched) !== code) matched = borders[matched - 1]!;
    if (wanted.charCodeAt(matched) === code && ++matched === length) return i - length + 1;
  }
  return -1;
}

/** The failure function: for each prefix, the length of its longest proper prefix that is also a suffix. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length);
  for (let i = 1, border = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    while (border > 0 && text.charCodeAt(border) !== code) border = borders[border - 1]!;
    if (text.charCodeAt(border) === code) border++;
    borders[i] = border;
  }
  return borders;
}
