// The state of a notification channel, as the service knows it.

/** What the process has seen of a channel since it started. */
export interface ChannelHealth {
  readonly lastSentAt: number | null;
  readonly lastError: { readonly message: string; readonly at: number } | null;
  /** Until when the queue pauses after a failure; null: it does not. */
  readonly pausedUntil: number | null;
}

/** Tests of one channel within the time, whoever asks: a test must not be a way to flood people. */
export const CHANNEL_TESTS_MAX = 5;
export const CHANNEL_TESTS_MS = 600_000;

export const TEST_OUTCOMES = ["sent", "partly", "failed", "refused"] as const;

/** The result of a test message. */
export interface ChannelTest {
  readonly at: number;
  /** `partly`: not to all recipients. `refused`: by the peer, for good. */
  readonly outcome: (typeof TEST_OUTCOMES)[number];
  readonly error: string | null;
  readonly durationMs: number;
}

export type ChannelTestResult =
  | { readonly kind: "tested"; readonly test: ChannelTest }
  | { readonly kind: "not_configured" }
  | { readonly kind: "too_many"; readonly message: string; readonly retryAfterSeconds: number };
