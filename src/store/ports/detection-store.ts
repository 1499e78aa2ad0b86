import type { SeenEvent } from "../../model/finding.ts";

/** How far detection has come. */
export interface DetectionProgress {
  /** The place of the last event that detection processed. */
  readonly upTo: string;
  /** The timestamps of events that rules matched. */
  readonly matches: readonly { readonly ruleId: string; readonly timesMs: readonly number[] }[];
  /** Last sightings of absence rules that changed. */
  readonly seen: readonly SeenRow[];
}

/** The last sighting of an absence rule's group. `atMs` 0: the rule no longer waits for the group. */
export interface SeenRow {
  readonly ruleId: string;
  readonly group: string;
  readonly atMs: number;
  readonly last: SeenEvent | null;
}

/** A period during which detection did not run. */
export interface Outage {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface DetectionStore {
  /** The place of the last event that detection processed; null before the first. */
  position(): Promise<string | null>;
  /** The last sightings of absence rules since they became active, the oldest first. */
  seen(): Promise<SeenRow[]>;
  /** Records that detection starts: it did not run from its last commit until now. Returns all such outages. */
  begin(nowMs: number): Promise<Outage[]>;
}
