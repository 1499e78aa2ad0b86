// The fields that stored events have.

export const FIELD_TYPES = ["string", "number", "boolean", "object"] as const;
export type EventFieldType = (typeof FIELD_TYPES)[number];

export interface EventField {
  readonly path: string;
  /** The types of its values, in the order of FIELD_TYPES. */
  readonly types: readonly EventFieldType[];
  /** Events that have it; an estimate if not all events were examined. */
  readonly events: number;
  /** Its most frequent values among the examined events, as text, cut at a maximum length. */
  readonly examples: readonly string[];
}

export interface EventFields {
  /** Events that match the filter. */
  readonly total: number;
  /** Events that were read. If fewer than `total`, they are the newest ones of each type. */
  readonly examined: number;
  /** Most frequent first, then by path. Top-level fields such as `type` are included. */
  readonly fields: readonly EventField[];
}
