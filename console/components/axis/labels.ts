import { SEVERITIES } from "../../data/severity.ts";
import { shortLabel } from "../../text/short-labels.ts";
import type { Mark } from "./marks.ts";
import { extentOf, shapeOf } from "./shapes.ts";
import type { Scale } from "./view.ts";
import { isWorthReading } from "./worth-reading.ts";

// A word or two beside the marks that matter. Labels never cover each other, nor the marks of their lane.

export interface Label {
  readonly id: string;
  readonly lane: string;
  readonly x: number;
  readonly width: number;
  readonly text: string;
  readonly isStrong: boolean;
  readonly isMono: boolean;
}

export interface LabelOptions {
  readonly scale: Scale;
  /** The pane: labels stay inside. */
  readonly width: number;
  readonly thread: ReadonlySet<string>;
  readonly echoes: ReadonlySet<string>;
  readonly laneUnder: ReadonlyMap<string, string>;
  readonly measure: (text: string, isMono: boolean) => number;
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The circle with the number of an event of the thread. */
const STOP_RADIUS = 9;
const RING_RADIUS = 10;
const GAP = 5;
export const LABELS_MAX = 400;
const WORTH_A_LABEL = /^(access_granted|config_changed|vpn_connected|admin_login|visitor_checked_in|call_started)$/;

export function placeLabels(marks: readonly Mark[], options: LabelOptions): Label[] {
  const { scale, width, thread, echoes, laneUnder, measure } = options;
  const taken = new Map<string, Span[]>();
  const rows = marks.map((mark) => {
    const lane = laneUnder.get(mark.lane) ?? mark.lane;
    const weight = thread.has(mark.event.id) ? 2 : echoes.has(mark.event.id) ? 1 : 0;
    const span = spanOf(mark, weight, scale);
    const spans = taken.get(lane);
    if (spans === undefined) taken.set(lane, [span]);
    else spans.push(span);
    return { mark, lane, weight, span };
  });
  const worth = rows.filter(({ mark, weight }) => weight > 0 || isLabelled(mark));
  worth.sort(
    (a, b) =>
      b.weight - a.weight ||
      SEVERITIES.indexOf(a.mark.event.severity) - SEVERITIES.indexOf(b.mark.event.severity) ||
      a.mark.fromMs - b.mark.fromMs,
  );
  const labels: Label[] = [];
  for (const { mark, lane, weight, span } of worth) {
    if (labels.length >= LABELS_MAX) break;
    const text = shortLabel(mark.event);
    if (text === "") continue;
    const isMono = mark.event.type === "client_connected" && weight > 0;
    const room = Math.ceil(measure(text, isMono)) + 2;
    const isFree = (from: number) =>
      from >= 0 &&
      from + room <= width &&
      taken.get(lane)!.every((other) => other === span || from + room + GAP <= other.from || from >= other.to + GAP);
    // On the right, and for what matters on the left where the right is taken.
    const places = [span.to + GAP, ...(weight > 0 ? [span.from - GAP - room] : [])];
    const x = places.find(isFree);
    if (x === undefined) continue;
    taken.get(lane)!.push({ from: x, to: x + room });
    labels.push({ id: mark.event.id, lane, x, width: room, text, isStrong: weight > 0, isMono });
  }
  return labels;
}

function isLabelled({ event }: Mark): boolean {
  if (WORTH_A_LABEL.test(event.type)) return true;
  return isWorthReading(event) && event.severity !== "info" && event.severity !== "low";
}

function spanOf(mark: Mark, weight: number, { x }: Scale): Span {
  const from = x(mark.fromMs);
  const [left, right] = extentOf(shapeOf(mark.event), x(mark.toMs) - from, 1);
  if (weight === 1)
    return { from: Math.min(from - RING_RADIUS, from - left), to: Math.max(from + RING_RADIUS, from + right) };
  if (weight === 2) {
    const stop = stopX(mark, x);
    return { from: Math.min(stop - STOP_RADIUS, from - left), to: Math.max(stop + STOP_RADIUS, from + right) };
  }
  return { from: from - left, to: from + right };
}

/** Where the number of a mark stands: at the moment of its event, which is the end for what is told at its end. */
export const stopX = (mark: Mark, x: (atMs: number) => number) => x(Date.parse(mark.event.timestamp));
