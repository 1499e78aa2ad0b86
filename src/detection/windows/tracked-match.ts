import type { Scalar } from "../../model/condition.ts";
import type { Rule } from "../../model/rule.ts";
import type { EventKey } from "./event-key.ts";

// The types that rule trackers share with their windows: matches in, firings out.

/** The fields of a rule that determine its memory. */
export type TrackedRule = Pick<Rule, "window" | "threshold" | "sequence" | "sequenceOrder" | "sequenceMin" | "groupBy">;

export interface Match<Key extends EventKey> {
  readonly key: Key;
  /** For an occurrence, its number among those that the event completed, from 1. */
  readonly occurrence?: number;
  readonly timestampMs: number;
  /** The distinct values of each of the tracker's paths. */
  readonly values: readonly (readonly Scalar[])[];
  /** Bit n is set if the event is step n of the sequence or input n of the threshold; 0 for a rule without them. */
  readonly steps: number;
}

/** A match in a firing. */
export interface Mark<Key extends EventKey> {
  readonly id: Key;
  readonly timestampMs: number;
  /** The occurrence; missing or 0 for the event itself. */
  readonly occurrence?: number;
}

export interface Firing<Key extends EventKey> {
  /** The values of the group, in the order of the rule's paths. */
  readonly group: readonly Scalar[];
  /** Matches that no earlier firing has counted, and their time span. */
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** These matches, newest first. */
  readonly marks: readonly Mark<Key>[];
}

/** A firing with the match that caused it. */
export interface HeldFiring<Key extends EventKey> {
  readonly firing: Firing<Key>;
  readonly match: Match<Key>;
}

/** The result of a window for one match in one group. */
export type WindowFiring = Omit<Firing<EventKey>, "group">;

export interface MatchWindow {
  /** Returns undefined if the match is too late to count or does not fire. */
  add(
    group: number,
    timestampMs: number,
    words: Uint32Array,
    distinct: readonly (readonly Scalar[])[],
    steps: number,
  ): WindowFiring | undefined;
  readonly late: number;
  /** Entries dropped although they might have counted. */
  readonly dropped?: number;
}
