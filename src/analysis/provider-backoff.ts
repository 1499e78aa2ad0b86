// Backoff for a failing model. Alerts are analysed one at a time, so each timeout would delay all later ones.

/** Consecutive failures that start the backoff. */
const FAILURES_MAX = 3;
const PAUSE_FIRST_MS = 60_000;
const PAUSE_MS_MAX = 3_600_000;

export interface ServiceFailure {
  readonly error: string;
  /** The service refused: an immediate retry would fail as well. */
  readonly isFinal: boolean;
  /** The delay that the service asked for. */
  readonly retryAfterMs?: number | undefined;
}

export interface BackoffState {
  readonly until: number;
  readonly reason: string;
  /** End of the delay that the service itself asked for. */
  readonly askedForUntil: number;
}

export class ProviderBackoff {
  #failures = 0;
  #nextMs = PAUSE_FIRST_MS;
  #paused: BackoffState | undefined;

  /** Undefined if the model may be used. */
  at(now: number): BackoffState | undefined {
    return this.#paused && now < this.#paused.until ? this.#paused : undefined;
  }

  failed({ error, isFinal, retryAfterMs = 0 }: ServiceFailure, now: number): void {
    this.#failures = isFinal ? FAILURES_MAX : Math.min(this.#failures + 1, FAILURES_MAX);
    if (this.#failures < FAILURES_MAX) return;
    const running = this.at(now);
    // Of concurrent requests, the first failure starts the backoff; the others do not prolong it.
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
