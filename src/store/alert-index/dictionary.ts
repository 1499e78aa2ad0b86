import { foldCase } from "../../lib/text.ts";

/** The code of a missing text. */
export const NO_TEXT = 0;

/** Numbers the texts of a column. A text that no alert uses any more is dropped, and its code is reused. */
export class Dictionary {
  readonly #codes = new Map<string, number>();
  readonly #texts: (string | undefined)[] = [undefined];
  readonly #uses: number[] = [0];
  readonly #free: number[] = [];
  /** Codes of texts that are not in folded case, by their folded case. */
  readonly #folded = new Map<string, number[]>();

  /** All codes are below it. */
  get end(): number {
    return this.#texts.length;
  }

  /** The code of the text, which counts as used once more. */
  acquire(text: string | null): number {
    if (text === null) return NO_TEXT;
    let code = this.#codes.get(text);
    if (code === undefined) code = this.#add(text);
    this.#uses[code]!++;
    return code;
  }

  release(code: number): void {
    if (code === NO_TEXT || --this.#uses[code]! > 0) return;
    const text = this.#texts[code]!;
    this.#codes.delete(text);
    this.#texts[code] = undefined;
    this.#free.push(code);
    const folded = foldCase(text);
    if (folded === text) return;
    const others = this.#folded.get(folded)!.filter((other) => other !== code);
    if (others.length > 0) this.#folded.set(folded, others);
    else this.#folded.delete(folded);
  }

  #add(text: string): number {
    const code = this.#free.pop() ?? this.#texts.length;
    this.#codes.set(text, code);
    this.#texts[code] = text;
    this.#uses[code] = 0;
    const folded = foldCase(text);
    if (folded !== text) this.#folded.set(folded, [...(this.#folded.get(folded) ?? []), code]);
    return code;
  }

  codeOf(text: string): number | undefined {
    return this.#codes.get(text);
  }

  /** Undefined for a code that is not in use. */
  textOf(code: number): string | undefined {
    return this.#texts[code];
  }

  /** 1 at the code of each of the texts. */
  marks(texts: readonly string[]): Uint8Array {
    const marks = new Uint8Array(this.end);
    for (const text of texts) {
      const code = this.#codes.get(text);
      if (code !== undefined) marks[code] = 1;
    }
    return marks;
  }

  /** At the code of each of the texts, its index among them; -1 elsewhere. */
  places(texts: readonly string[]): Int32Array {
    const places = new Int32Array(this.end).fill(-1);
    for (const [i, text] of texts.entries()) {
      const code = this.#codes.get(text);
      if (code !== undefined) places[code] = i;
    }
    return places;
  }

  /** Like `marks`, in upper or lower case; null stands for a missing text. */
  foldedMarks(texts: readonly (string | null)[]): Uint8Array {
    const marks = new Uint8Array(this.end);
    for (const text of texts) {
      if (text === null) marks[NO_TEXT] = 1;
      else {
        const folded = foldCase(text);
        for (const code of this.#folded.get(folded) ?? []) marks[code] = 1;
        const code = this.#codes.get(folded);
        if (code !== undefined) marks[code] = 1;
      }
    }
    return marks;
  }
}
