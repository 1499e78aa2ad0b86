import type { Entity, EntityKind } from "./entity.ts";

// Searches for entities, and their results.

export interface EntityQuery {
  /** A part of the value, in upper or lower case. */
  readonly search: string;
  /** The text is the whole value, exactly as it is. */
  readonly isWhole?: boolean | undefined;
  /** Undefined: all kinds. */
  readonly kinds?: readonly EntityKind[] | undefined;
  /** Extended to whole UTC days, by which entities are counted. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly limit: number;
}

export interface EntitySummary extends Entity {
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** Events that name it. */
  readonly events: number;
}

export interface EntityMatches {
  /** Equal values first, then those that begin with the text; within each, the last seen first, then by kind and value. */
  readonly entities: readonly EntitySummary[];
  /** All matches in the range that was read. */
  readonly total: number;
  /** The range that was read, in whole days: times and counts are those of its events. */
  readonly fromMs: number;
  readonly toMs: number;
  /** False: older days have more, or entities of stored events are still being counted. */
  readonly isComplete: boolean;
}
