// Glob matching without backtracking. Pieces between stars are matched left to right, each at its first position: if that
// fails, no later position could succeed.

/** A piece between stars, by code point; `undefined` matches any one code point. */
type Piece = readonly (string | undefined)[];

/** Splits a glob at its stars: `a*b?` gives `a` and `b?`. A backslash escapes a star, a question mark or a backslash. */
export function globPieces(glob: string): Piece[] {
  const pieces: (string | undefined)[][] = [[]];
  const chars = [...glob];
  for (let i = 0; i < chars.length; i++) {
    const char = chars[i]!;
    const next = chars[i + 1];
    if (char === "\\" && (next === "*" || next === "?" || next === "\\")) {
      pieces.at(-1)!.push(next);
      i++;
    } else if (char === "*") pieces.push([]);
    else pieces.at(-1)!.push(char === "?" ? undefined : char);
  }
  return pieces;
}

const SURROGATE = /[\ud800-\udfff]/;

export function compileGlob(glob: string): (text: string) => boolean {
  const pieces = globPieces(glob);
  if (!pieces.some((piece) => piece.includes(undefined))) return matcher(pieces.map(plainPiece));
  const matches = matcher(pieces.map(openPiece));
  // A question mark matches one code point, which may take two UTF-16 units.
  return (text) => matches(SURROGATE.test(text) ? [...text] : text);
}

interface PlacedPiece<Text> {
  readonly length: number;
  fits(text: Text, at: number): boolean;
  /** The first position from here where the piece fits, or -1. */
  find(text: Text, from: number): number;
}

function matcher<Text extends ArrayLike<string>>(pieces: readonly PlacedPiece<Text>[]): (text: Text) => boolean {
  const first = pieces[0]!;
  if (pieces.length === 1) return (text) => text.length === first.length && first.fits(text, 0);
  const last = pieces.at(-1)!;
  const between = pieces.slice(1, -1).filter(({ length }) => length > 0);
  return (text) => {
    const end = text.length - last.length;
    if (end < first.length || !first.fits(text, 0) || !last.fits(text, end)) return false;
    let at = first.length;
    for (const piece of between) {
      const found = piece.find(text, at);
      if (found < 0 || found + piece.length > end) return false;
      at = found + piece.length;
    }
    return true;
  };
}

function plainPiece(piece: Piece): PlacedPiece<string> {
  const plain = piece.join("");
  return {
    length: plain.length,
    fits: (text, at) => text.startsWith(plain, at),
    find: (text, from) => text.indexOf(plain, from),
  };
}

function openPiece(piece: Piece): PlacedPiece<ArrayLike<string>> {
  const { length } = piece;
  const fits = (text: ArrayLike<string>, at: number) =>
    piece.every((char, i) => char === undefined || text[at + i] === char);
  const find = (text: ArrayLike<string>, from: number) => {
    for (let at = from; at + length <= text.length; at++) if (fits(text, at)) return at;
    return -1;
  };
  return { length, fits, find };
}
