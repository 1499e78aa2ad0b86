// Exporters number what they send. A number that is missing is a packet that was lost on the way, or one that comes later.

/** A jump further than this is an exporter that started anew rather than a loss. */
const GAP_UNITS_MAX = 1_000_000;
/** So many in a row from behind are not late packets but an exporter that started anew. */
const BEHIND_MAX = 3;
/** The last gaps, which a packet that was overtaken may still fill. */
const GAPS_MAX = 16;

interface Gap {
  readonly start: number;
  readonly units: number;
}

export class Sequence {
  #expected: number | undefined;
  #behind = 0;
  #last = -1;
  #gaps: readonly Gap[] = NO_GAPS;

  /**
   * Gives how many units are missing before this packet, whose own units are `advance`; below zero, how many of those that
   * were missing it brings after all. Some exporters count the packet's own units in (`included` of them): their number is
   * then so much ahead of the last one.
   */
  observe(sequence: number, advance: number, included?: number): number {
    const expected = this.#expected;
    let ahead = expected === undefined ? 0 : (sequence - expected) | 0;
    if (included !== undefined && ((sequence - this.#last) | 0) === included) ahead = 0;
    this.#last = sequence;
    if (ahead < 0 && ahead > -GAP_UNITS_MAX) {
      const filled = this.#fill(sequence, advance);
      if (filled > 0) return -filled;
      if (this.#behind++ < BEHIND_MAX) return 0;
    }
    this.#behind = 0;
    this.#expected = (sequence + advance) >>> 0;
    const isGap = ahead > 0 && ahead <= GAP_UNITS_MAX;
    if (isGap) this.#gaps = [...this.#gaps.slice(1 - GAPS_MAX), { start: expected!, units: ahead }];
    else if (ahead !== 0) this.#gaps = NO_GAPS;
    return isGap ? ahead : 0;
  }

  /** How many of the units of a late packet were missing: they are no longer. */
  #fill(sequence: number, units: number): number {
    const gap = this.#gaps.find(({ start, units: missing }) => (sequence - start) >>> 0 < missing);
    if (gap === undefined) return 0;
    const before = (sequence - gap.start) >>> 0;
    const filled = Math.min(units, gap.units - before);
    const after = gap.units - before - filled;
    const left = [
      { start: gap.start, units: before },
      { start: (sequence + filled) >>> 0, units: after },
    ].filter((piece) => piece.units > 0);
    this.#gaps = [...this.#gaps.filter((other) => other !== gap), ...left].slice(-GAPS_MAX);
    return filled;
  }

  /** What the packet held is not known, so the next number is not either. */
  forget(): void {
    this.#expected = undefined;
    this.#gaps = NO_GAPS;
  }
}

const NO_GAPS: readonly Gap[] = [];
