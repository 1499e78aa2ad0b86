/** State of retention: running, or paused until an operator confirms. */
export interface RetentionStatus {
  readonly isPaused: boolean;
  /** Reasons for the pause; empty while retention is running. */
  readonly messages: readonly string[];
}
