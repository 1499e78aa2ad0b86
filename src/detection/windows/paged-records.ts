// Records of a few words each, numbered from 0, in pages. A growing table gets another page, so that it never stalls to copy
// its contents. Only the first page starts small, since most tables stay small.

const PAGE_BITS = 15;
const PAGE_RECORDS = 1 << PAGE_BITS;
const RECORD_MASK = PAGE_RECORDS - 1;
const RECORDS_MIN = 16;
const FEW_RECORDS = 4;

export class PagedRecords {
  readonly #recordWords: number;
  readonly #words: Uint32Array[] = [];
  readonly #floats: Float64Array[] = [];
  #capacity = 0;

  /** `recordWords` must be even if a record holds a float. */
  constructor(recordWords: number) {
    this.#recordWords = recordWords;
  }

  /** Grows the table to `count` records. Results of `words` may then be stale. */
  ensureCapacity(count: number): void {
    while (this.#capacity < count) {
      const isFirst = this.#capacity < PAGE_RECORDS;
      const records = isFirst ? Math.max(RECORDS_MIN, this.#capacity * 2) : PAGE_RECORDS;
      const page = new Uint32Array(records * this.#recordWords);
      if (isFirst && this.#words[0]) page.set(this.#words[0]);
      const index = isFirst ? 0 : this.#words.length;
      this.#words[index] = page;
      this.#floats[index] = new Float64Array(page.buffer, 0, page.length >> 1);
      this.#capacity = index * PAGE_RECORDS + records;
    }
  }

  /** The page of a record; `offset` is the position of the record in it. */
  words(record: number): Uint32Array {
    return this.#words[record >> PAGE_BITS]!;
  }

  offset(record: number): number {
    return (record & RECORD_MASK) * this.#recordWords;
  }

  /** The same page as floats; each spans two words and starts at an even one. */
  floats(record: number): Float64Array {
    return this.#floats[record >> PAGE_BITS]!;
  }

  get(record: number, word: number): number {
    return this.words(record)[this.offset(record) + word]!;
  }

  set(record: number, word: number, value: number): void {
    this.words(record)[this.offset(record) + word] = value;
  }

  /** Copies external words into records. */
  take(record: number, count: number, words: Uint32Array, from: number): void {
    copyWords(words, from, this.words(record), this.offset(record), count * this.#recordWords);
  }

  /** Neither the source nor the target may cross the end of a page. */
  move(from: number, to: number, count: number): void {
    const words = count * this.#recordWords;
    const source = this.words(from);
    const target = this.words(to);
    const start = this.offset(from);
    const end = this.offset(to);
    // Bulk copies have a higher set-up cost than copying a few words.
    if (count <= FEW_RECORDS && (source !== target || end < start || end >= start + words)) {
      copyWords(source, start, target, end, words);
    } else if (source === target) source.copyWithin(end, start, start + words);
    else target.set(source.subarray(start, start + words), end);
  }
}

export function copyWords(source: Uint32Array, start: number, target: Uint32Array, end: number, count: number): void {
  for (let i = 0; i < count; i++) target[end + i] = source[start + i]!;
}
