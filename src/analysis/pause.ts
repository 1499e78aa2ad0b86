// When a model that does not answer is left alone. Alerts are judged one after the other, so each that waits for nothing
// holds up all that come after it.

/** So many in a row are no accident. */
const FAILURES_MAX = 3;
const PAUSE_FIRST_MS = 60_000;
const PAUSE_MS_MAX = 3_600_000;

export interface ServiceFailure {
  readonly error: string;
  /** It said that it will not: asking once more at once changes nothing. */
  readonly isFinal: boolean;
  /** How long it asks to be left alone. */
  readonly retryAfterMs?: number | undefined;
}

export interface Paused {
  readonly until: number;
  readonly reason: string;
  /** The service itself asked for it, until then. */
  readonly askedForUntil: number;
}

export class Pause {
  #failures = 0;
  #nextMs = PAUSE_FIRST_MS;
  #paused: Paused | undefined;

  /** Undefined where it may be asked. */
  at(now: number): Paused | undefined {
    return this.#paused && now < this.#paused.until ? this.#paused : undefined;
  }

  failed({ error, isFinal, retryAfterMs = 0 }: ServiceFailure, now: number): void {
    this.#failures = isFinal ? FAILURES_MAX : Math.min(this.#failures + 1, FAILURES_MAX);
    if (this.#failures < FAILURES_MAX) return;
    const running = this.at(now);
    // Of questions that were under way together, the first to fail begins the pause; the others do not make it longer.
    const pauseUntil = running ? running.until : now + this.#nextMs;
    if (!running) this.#nextMs = Math.min(this.#nextMs * 2, PAUSE_MS_MAX);
    const askedForUntil = Math.max(running?.askedForUntil ?? 0, now + Math.min(retryAfterMs, PAUSE_MS_MAX));
    this.#paused = { until: Math.max(pauseUntil, askedForUntil), reason: error, askedForUntil };
  }

  succeeded(): void {
    this.#failures = 0;
    this.#nextMs = PAUSE_FIRST_MS;
    this.#paused = undefined;
  }
}
