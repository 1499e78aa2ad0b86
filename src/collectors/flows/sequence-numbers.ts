// Exporters number their packets, flows or records. A gap in the numbers is a packet that was lost or arrives late.

/** A larger jump means that the exporter restarted. */
const GAP_UNITS_MAX = 1_000_000;
/** More late packets in a row mean that the exporter restarted. */
const BEHIND_MAX = 3;
/** Recent gaps that late packets may still fill. */
const GAPS_MAX = 16;

interface Gap {
  readonly start: number;
  readonly units: number;
}

export class SequenceTracker {
  #expected: number | undefined;
  #behind = 0;
  #last = -1;
  #gaps: readonly Gap[] = NO_GAPS;

  /**
   * Returns the number of units missing before this packet, which itself has `advance` units. A negative result is the number of
   * missing units that this late packet supplies. Some exporters include the packet's own units in its number (`included` of
   * them), which puts it ahead of the last number by that much.
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

  /** Fills gaps with the units of a late packet; returns the number of units that were missing. */
  #fill(sequence: number, units: number): number {
    const gap = this.#gaps.find(({ start, units: missing }) => (sequence - start) >>> 0 < missing);
    if (gap === undefined) return 0;
    const before = (sequence - gap.start) >>> 0;
    const filled = Math.min(units, gap.units - before);
    const after = gap.units - before - filled;
    const remaining = [
      { start: gap.start, units: before },
      { start: (sequence + filled) >>> 0, units: after },
    ].filter((piece) => piece.units > 0);
    this.#gaps = [...this.#gaps.filter((other) => other !== gap), ...remaining].slice(-GAPS_MAX);
    return filled;
  }

  /** Forgets the expected number, after a packet with an unknown number of units. */
  reset(): void {
    this.#expected = undefined;
    this.#gaps = NO_GAPS;
  }
}

const NO_GAPS: readonly Gap[] = [];
