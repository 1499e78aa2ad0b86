// Encodings of values in a record.

const WORD = 2 ** 32;

/** Reads an unsigned number of 1 to 8 bytes; above 2^53 it is rounded. */
export function readNumber(view: DataView, at: number, length: number): number {
  switch (length) {
    case 1:
      return view.getUint8(at);
    case 2:
      return view.getUint16(at);
    case 4:
      return view.getUint32(at);
    case 8:
      return view.getUint32(at) * WORD + view.getUint32(at + 4);
    default: {
      let value = 0;
      for (let index = 0; index < length; index++) value = value * 256 + view.getUint8(at + index);
      return value;
    }
  }
}

/** Copies an address; a negative `at` gives zeros. */
export function copyAddress(view: DataView, at: number, target: Uint32Array, words: number): void {
  target[words] = at < 0 ? 0 : view.getUint32(at, true);
  target[words + 1] = at < 0 ? 0 : view.getUint32(at + 4, true);
  target[words + 2] = at < 0 ? 0 : view.getUint32(at + 8, true);
  target[words + 3] = at < 0 ? 0 : view.getUint32(at + 12, true);
}

export function isZero(words: Uint32Array, at: number): boolean {
  return (words[at]! | words[at + 1]! | words[at + 2]! | words[at + 3]!) === 0;
}
