export type RetentionKind = "events" | "flows" | "alerts";

/** State of retention between runs and restarts. */
export interface RetentionNotes {
  /** The clock at the last run that trusted it. */
  readonly ranAt: number | null;
  /** The clock at the last run that held something back. */
  readonly heldAt: number | null;
  /** The clock that a person has confirmed. */
  readonly confirmedAt: number | null;
  /** The time before which the last run removed. */
  readonly before: Readonly<Record<RetentionKind, number | null>>;
}

export interface RetentionStore {
  notes(): Promise<RetentionNotes>;
  save(notes: Partial<RetentionNotes>): Promise<void>;
  /** Rows before this time, which a run would remove, and all rows. */
  due(kind: RetentionKind, beforeMs: number): Promise<{ readonly rows: number; readonly total: number }>;
}
