import type { Mark } from "./marks.ts";
import { extentOf, shapeOf } from "./shapes.ts";
import type { Scale } from "./view.ts";

const REACH_PX = 7;

/** The mark under the pointer: the nearest of the lane within a few pixels. The marks are in the order of their beginning. */
export function markAt(
  marks: readonly Mark[],
  lane: string,
  laneUnder: ReadonlyMap<string, string>,
  px: number,
  { x }: Scale,
): Mark | undefined {
  let nearest: Mark | undefined;
  let nearestPx = REACH_PX;
  for (const mark of marks) {
    if ((laneUnder.get(mark.lane) ?? mark.lane) !== lane) continue;
    const from = x(mark.fromMs);
    const [left, right] = extentOf(shapeOf(mark.event), x(mark.toMs) - from, 1);
    const distance = Math.max(from - left - px, px - from - right, 0);
    // Of two that cover the pointer the later one lies on top.
    if (distance < nearestPx || (distance === 0 && nearestPx === 0)) {
      nearest = mark;
      nearestPx = distance;
    }
  }
  return nearest;
}
