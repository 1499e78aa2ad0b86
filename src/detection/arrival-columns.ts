import type { Arrival } from "../store/ports/event-engine.ts";

/** Events in order of arrival, for the detection thread: arrays of strings cross threads faster than objects. */
export interface ArrivalColumns {
  readonly texts: readonly string[];
  readonly places: readonly string[];
}

export function arrivalColumns(arrivals: readonly Arrival[]): ArrivalColumns {
  return { texts: arrivals.map(({ text }) => text), places: arrivals.map(({ place }) => place) };
}
