/** The end of one day of the journal. */
export interface DayEnd {
  readonly day: number;
  readonly rows: number;
  readonly lastSeq: number;
  /** The number of the last amendment to one of its events. */
  readonly lastAmendment: number;
}

interface DayGrowth {
  readonly rows: number;
  readonly lastSeq: number;
  readonly writtenAt: number;
}

/** The days of the journal, with figures of each that need no access to its file. */
export class Days {
  readonly #days = new Map<number, DayGrowth>();

  /** Newest first. */
  list(): number[] {
    return [...this.#days.keys()].sort((a, b) => b - a);
  }

  has(day: number): boolean {
    return this.#days.has(day);
  }

  count(): number {
    let sum = 0;
    for (const { rows } of this.#days.values()) sum += rows;
    return sum;
  }

  rowsOf(day: number): number {
    return this.#days.get(day)?.rows ?? 0;
  }

  lastSeqOf(day: number): number {
    return this.#days.get(day)?.lastSeq ?? 0;
  }

  writtenAt(day: number): number {
    return this.#days.get(day)?.writtenAt ?? 0;
  }

  grew(day: number, { rows, lastSeq, writtenAt }: DayGrowth): void {
    this.#days.set(day, { rows: this.rowsOf(day) + rows, lastSeq, writtenAt });
  }

  /** Returns the number of rows that the day had. */
  remove(day: number): number {
    const rows = this.rowsOf(day);
    this.#days.delete(day);
    return rows;
  }
}
