import type { DetectionProgress } from "../ports/detection-store.ts";

export const MINUTE_MS = 60_000;

/** The offsets of matches within their minutes, by rule and minute. */
export function matchesByMinute(matches: DetectionProgress["matches"]): Map<string, Map<number, number[]>> {
  const rules = new Map<string, Map<number, number[]>>();
  for (const { ruleId, timesMs } of matches) {
    const minutes = rules.getOrInsertComputed(ruleId, () => new Map<number, number[]>());
    for (const ms of timesMs) {
      const minute = Math.floor(ms / MINUTE_MS);
      minutes.getOrInsertComputed(minute, () => []).push(ms - minute * MINUTE_MS);
    }
  }
  return rules;
}
