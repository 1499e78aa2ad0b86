// Sequence numbers of events as bits, one page per 65,536. Plain data, so that it can be passed between threads.

const PAGE_SHIFT = 16;
const PAGE_BYTES = 2 ** PAGE_SHIFT / 8;
const PAGE_MASK = 2 ** PAGE_SHIFT - 1;
const COMMA = 44;
const ZERO = 48;

export type SeqSet = Map<number, Uint8Array>;

/** Sequence numbers exceed 32 bits, so bit shifts do not work on them. */
const pageOf = (seq: number) => Math.floor(seq / 2 ** PAGE_SHIFT);

function add(set: SeqSet, seq: number): void {
  const page = pageOf(seq);
  let bits = set.get(page);
  if (!bits) set.set(page, (bits = new Uint8Array(PAGE_BYTES)));
  const place = seq % 2 ** PAGE_SHIFT;
  bits[place >> 3]! |= 1 << (place & 7);
}

export function has(set: SeqSet, seq: number): boolean {
  const place = seq % 2 ** PAGE_SHIFT;
  return ((set.get(pageOf(seq))?.[place >> 3] ?? 0) & (1 << (place & 7))) !== 0;
}

/** Numbers from SQL's group_concat: one text leaves the engine faster than as many rows. */
export function* listed(text: string | null): Iterable<number> {
  if (text === null) return;
  let number = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === COMMA) {
      yield number;
      number = 0;
    } else number = number * 10 + code - ZERO;
  }
  yield number;
}

export function addListed(set: SeqSet, text: string | null): void {
  for (const seq of listed(text)) add(set, seq);
}

/** The numbers in both sets. */
export function intersect(a: SeqSet, b: SeqSet): SeqSet {
  const both: SeqSet = new Map();
  for (const [page, bits] of a) {
    const others = b.get(page);
    if (others)
      both.set(
        page,
        bits.map((byte, i) => byte & others[i]!),
      );
  }
  return both;
}

/** The numbers from `low` to `high`, inclusive, ascending. */
export function* rising(set: SeqSet, low: number, high: number): Iterable<number> {
  for (let seq = low; seq <= high; seq++) {
    const bits = set.get(pageOf(seq));
    if (!bits) seq += PAGE_MASK - (seq % 2 ** PAGE_SHIFT);
    else if (bits[(seq % 2 ** PAGE_SHIFT) >> 3] === 0) seq += 7 - (seq % 8);
    else if (has(set, seq)) yield seq;
  }
}

/** The same, descending. */
export function* falling(set: SeqSet, low: number, high: number): Iterable<number> {
  for (let seq = high; seq >= low; seq--) {
    const bits = set.get(pageOf(seq));
    if (!bits) seq -= seq % 2 ** PAGE_SHIFT;
    else if (bits[(seq % 2 ** PAGE_SHIFT) >> 3] === 0) seq -= seq % 8;
    else if (has(set, seq)) yield seq;
  }
}
