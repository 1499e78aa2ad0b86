// A text with `*` and `?` in it. Pieces between stars are looked for from left to right, the first place of each: no
// other choice could succeed where this one fails, so there is nothing to go back to.

/** The literal pieces between the stars; `undefined` within a piece stands for any one character. */
type Piece = readonly (string | undefined)[];

/** Cuts a glob at its stars: `a*b?` gives `a` and `b?`. A backslash makes a star, a question mark or a backslash plain. */
export function globPieces(glob: string): Piece[] {
  const pieces: (string | undefined)[][] = [[]];
  for (let i = 0; i < glob.length; i++) {
    const char = glob[i]!;
    const next = glob[i + 1];
    if (char === "\\" && (next === "*" || next === "?" || next === "\\")) {
      pieces.at(-1)!.push(next);
      i++;
    } else if (char === "*") pieces.push([]);
    else pieces.at(-1)!.push(char === "?" ? undefined : char);
  }
  return pieces;
}

export function compileGlob(glob: string): (text: string) => boolean {
  const pieces = globPieces(glob);
  const first = pieceAt(pieces[0]!);
  if (pieces.length === 1) return (text) => text.length === first.length && first.fits(text, 0);
  const last = pieceAt(pieces.at(-1)!);
  const between = pieces
    .slice(1, -1)
    .filter((piece) => piece.length > 0)
    .map(pieceAt);
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

interface PlacedPiece {
  readonly length: number;
  fits(text: string, at: number): boolean;
  /** The first place from here on where it fits, or -1. */
  find(text: string, from: number): number;
}

function pieceAt(piece: Piece): PlacedPiece {
  const { length } = piece;
  if (!piece.includes(undefined)) {
    const plain = piece.join("");
    return { length, fits: (text, at) => text.startsWith(plain, at), find: (text, from) => text.indexOf(plain, from) };
  }
  const fits = (text: string, at: number) => piece.every((char, i) => char === undefined || text[at + i] === char);
  const find = (text: string, from: number) => {
    for (let at = from; at + length <= text.length; at++) if (fits(text, at)) return at;
    return -1;
  };
  return { length, fits, find };
}
