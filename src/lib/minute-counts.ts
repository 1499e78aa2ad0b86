const MINUTE_MS = 60_000;
/** Minutes of history. */
export const HISTORY_MINUTES = 60;

export interface RateStatus {
  /** How many in the last 60 seconds, about: the minute before the current one counts in proportion. */
  readonly perMinute: number;
  /** The counts of the last minutes, oldest first. The last one is the current minute, which is not over yet. */
  readonly history: readonly number[];
}

/** Counts things by the minute, over the last hour, in constant memory. */
export class MinuteCounts {
  readonly #counts = new Uint32Array(HISTORY_MINUTES);
  /** The newest minute, since 1970. */
  #minute = 0;

  /** A clock that is set back counts into the newest minute. */
  add(atMs: number): void {
    this.#advance(atMs);
    this.#counts[this.#minute % HISTORY_MINUTES]!++;
  }

  status(nowMs: number): RateStatus {
    this.#advance(nowMs);
    const history = Array.from(
      { length: HISTORY_MINUTES },
      (_, nth) => this.#counts[(this.#minute + 1 + nth) % HISTORY_MINUTES]!,
    );
    const passed = Math.min(1, Math.max(0, nowMs / MINUTE_MS - this.#minute));
    return { perMinute: Math.round(history.at(-1)! + history.at(-2)! * (1 - passed)), history };
  }

  #advance(atMs: number): void {
    const minute = Math.floor(atMs / MINUTE_MS);
    if (minute <= this.#minute) return;
    if (minute - this.#minute >= HISTORY_MINUTES) this.#counts.fill(0);
    else for (let next = this.#minute + 1; next <= minute; next++) this.#counts[next % HISTORY_MINUTES] = 0;
    this.#minute = minute;
  }
}
