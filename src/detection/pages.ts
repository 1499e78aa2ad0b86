// Records of a few words each, numbered from 0, in pages: a table that grows gets another page, and nothing of what it
// holds has to be copied, which would stall whoever waits. Only the first page starts small, since most tables stay so.

const PAGE_BITS = 15;
const PAGE_RECORDS = 1 << PAGE_BITS;
const PLACE_MASK = PAGE_RECORDS - 1;
const RECORDS_MIN = 16;
const FEW_RECORDS = 4;

export class Pages {
  readonly #recordWords: number;
  readonly #words: Uint32Array[] = [];
  readonly #floats: Float64Array[] = [];
  #capacity = 0;

  /** The words of a record: an even number where it has a float. */
  constructor(recordWords: number) {
    this.#recordWords = recordWords;
  }

  /** Makes room for so many records. What `words` gave before may be stale then. */
  reach(count: number): void {
    while (this.#capacity < count) {
      const isFirst = this.#capacity < PAGE_RECORDS;
      const records = isFirst ? Math.max(RECORDS_MIN, this.#capacity * 2) : PAGE_RECORDS;
      const page = new Uint32Array(records * this.#recordWords);
      if (isFirst && this.#words[0]) page.set(this.#words[0]);
      const place = isFirst ? 0 : this.#words.length;
      this.#words[place] = page;
      this.#floats[place] = new Float64Array(page.buffer, 0, page.length >> 1);
      this.#capacity = place * PAGE_RECORDS + records;
    }
  }

  /** The page that a record is in, and where in it the record begins. */
  words(record: number): Uint32Array {
    return this.#words[record >> PAGE_BITS]!;
  }

  offset(record: number): number {
    return (record & PLACE_MASK) * this.#recordWords;
  }

  /** The same page as floats, each of two words of which the first is an even one. */
  floats(record: number): Float64Array {
    return this.#floats[record >> PAGE_BITS]!;
  }

  get(record: number, word: number): number {
    return this.words(record)[this.offset(record) + word]!;
  }

  set(record: number, word: number, value: number): void {
    this.words(record)[this.offset(record) + word] = value;
  }

  /** Fills records with words from elsewhere. */
  take(record: number, count: number, words: Uint32Array, from: number): void {
    copyWords(words, from, this.words(record), this.offset(record), count * this.#recordWords);
  }

  /** Neither the records nor the place that they go to may reach over the end of a page. */
  move(from: number, to: number, count: number): void {
    const words = count * this.#recordWords;
    const source = this.words(from);
    const target = this.words(to);
    const start = this.offset(from);
    const end = this.offset(to);
    // The ways to copy many take longer to begin than a few take.
    if (count <= FEW_RECORDS && (source !== target || end < start || end >= start + words)) {
      copyWords(source, start, target, end, words);
    } else if (source === target) source.copyWithin(end, start, start + words);
    else target.set(source.subarray(start, start + words), end);
  }
}

export function copyWords(source: Uint32Array, start: number, target: Uint32Array, end: number, count: number): void {
  for (let i = 0; i < count; i++) target[end + i] = source[start + i]!;
}
