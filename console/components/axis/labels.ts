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
  /** Where the view begins and ends in the pane: no label lies across. */
  readonly edges: readonly number[];
  readonly thread: ReadonlySet<string>;
  readonly echoes: ReadonlySet<string>;
  readonly laneUnder: ReadonlyMap<string, string>;
  readonly measure: (text: string, isMono: boolean) => number;
}

interface Span {
  readonly from: number;
  readonly to: number;
  readonly isNoise: boolean;
  readonly isLabel?: boolean;
}

/** The circle with the number of an event of the thread. */
const STOP_RADIUS = 9;
const RING_RADIUS = 10;
const GAP = 5;
const LABELS_MAX = 400;
const WORTH_A_LABEL = /^(access_granted|config_changed|vpn_connected|admin_login|visitor_checked_in|call_started)$/;

export function placeLabels(marks: readonly Mark[], options: LabelOptions): Label[] {
  const { scale, width, edges, thread, echoes, laneUnder, measure } = options;
  const lanes = new Map<string, Span[]>();
  const rows = marks.map((mark) => {
    const lane = laneUnder.get(mark.lane) ?? mark.lane;
    const weight = thread.has(mark.event.id) ? 2 : echoes.has(mark.event.id) ? 1 : 0;
    const span = spanOf(mark, weight, scale);
    const spans = lanes.get(lane);
    if (spans === undefined) lanes.set(lane, [span]);
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
    // What matters may cover noise, whose marks are thin and many.
    const taken = lanes.get(lane)!.filter(({ isNoise }) => weight === 0 || !isNoise);
    const isFree = (from: number) =>
      from >= 0 &&
      from + room <= width &&
      edges.every((edge) => from + room <= edge || from >= edge) &&
      taken.every((other) => other === span || from + room + GAP <= other.from || from >= other.to + GAP);
    const x = placesFor(span, weight, room, taken).find(isFree);
    if (x === undefined) continue;
    lanes.get(lane)!.push({ from: x, to: x + room, isNoise: false, isLabel: true });
    labels.push({ id: mark.event.id, lane, x, width: room, text, isStrong: weight > 0, isMono });
  }
  return labels;
}

/** On the right; what matters also on the left, and there first where others of its cluster lie to the right. */
function placesFor(span: Span, weight: number, room: number, taken: readonly Span[]): number[] {
  if (weight === 0) return [span.to + GAP];
  const { from, to } = clusterOf(span, taken);
  const right = to + GAP;
  const left = from - GAP - room;
  return weight === 1 && from === span.from && to > span.to ? [left, right] : [right, left];
}

/** The span with all marks that touch it: a label stands beside all of them. */
function clusterOf(span: Span, spans: readonly Span[]): Pick<Span, "from" | "to"> {
  let { from, to } = span;
  for (const other of spans.toSorted((a, b) => a.from - b.from)) {
    if (other.isLabel === true) continue;
    if (other.from <= to + GAP && other.to >= from - GAP) {
      from = Math.min(from, other.from);
      to = Math.max(to, other.to);
    }
  }
  return { from, to };
}

function isLabelled({ event }: Mark): boolean {
  if (WORTH_A_LABEL.test(event.type)) return true;
  return isWorthReading(event) && event.severity !== "info" && event.severity !== "low";
}

function spanOf(mark: Mark, weight: number, { x }: Scale): Span {
  const start = x(mark.fromMs);
  const shape = shapeOf(mark.event);
  const [left, right] = extentOf(shape, x(mark.toMs) - start, 1);
  const middle = weight === 2 ? stopX(mark, x) : start;
  const radius = weight === 2 ? STOP_RADIUS : weight === 1 ? RING_RADIUS : 0;
  return {
    from: Math.min(middle - radius, start - left),
    to: Math.max(middle + radius, start + right),
    isNoise: weight === 0 && (shape === "tick" || shape === "thin"),
  };
}

/** Where the number of a mark stands: at the moment of its event, which is the end for what is told at its end. */
export const stopX = (mark: Mark, x: (atMs: number) => number) => x(Date.parse(mark.event.timestamp));
