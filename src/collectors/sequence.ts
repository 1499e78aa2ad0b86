// Exporters number what they send. A number that is missing is a packet that was lost on the way.

/** A jump further than this is an exporter that started anew rather than a loss. */
const GAP_UNITS_MAX = 1_000_000;
/** So many in a row from behind are not late packets but an exporter that started anew. */
const BEHIND_MAX = 3;

export class Sequence {
  #expected: number | undefined;
  #behind = 0;
  #last = -1;

  /**
   * Gives how many units are missing before this packet, whose own units are `advance`. Some exporters count the packet's
   * own units in (`included` of them): their number is then so much ahead of the last one.
   */
  observe(sequence: number, advance: number, included = -1): number {
    const expected = this.#expected;
    let ahead = expected === undefined ? 0 : (sequence - expected) | 0;
    if (((sequence - this.#last) | 0) === included) ahead = 0;
    this.#last = sequence;
    if (ahead < 0 && ahead > -GAP_UNITS_MAX && this.#behind < BEHIND_MAX) {
      this.#behind++;
      return 0;
    }
    this.#behind = 0;
    this.#expected = (sequence + advance) >>> 0;
    return ahead > 0 && ahead <= GAP_UNITS_MAX ? ahead : 0;
  }

  /** What the packet held is not known, so the next number is not either. */
  forget(): void {
    this.#expected = undefined;
  }
}
