import type { Outage } from "../../store/ports/detection-store.ts";

/** The downtime since `atMs`. */
export function downtimeSince(atMs: number, outages: readonly Outage[]): number {
  return outages.reduce((sum, { fromMs, toMs }) => sum + Math.max(0, toMs - Math.max(fromMs, atMs)), 0);
}
