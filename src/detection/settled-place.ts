import { setTimeout as sleep } from "node:timers/promises";
import type { DetectionStore } from "../store/ports/detection-store.ts";
import type { EventEngine } from "../store/ports/event-engine.ts";

/** How long a rule change waits for earlier events. If detection lags further, the change does not wait for it. */
export const SETTLE_MS_MAX = 2000;
const LOOK_MS = 50;

export interface SettledPlaceOptions {
  readonly events: Pick<EventEngine, "lastArrival">;
  readonly detection: Pick<DetectionStore, "position">;
}

/** The place of the last event, once detection, which runs elsewhere, has processed it under the rules of before. */
export async function settledPlace({ events, detection }: SettledPlaceOptions): Promise<string | null> {
  const last = await events.lastArrival();
  if (last === null) return null;
  const until = performance.now() + SETTLE_MS_MAX;
  while (performance.now() < until) {
    const position = await detection.position();
    if (position !== null && position >= last) break;
    await sleep(LOOK_MS);
  }
  return last;
}
