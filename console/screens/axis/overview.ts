import type { View } from "../../components/axis/view.ts";

// The stretch of time of which the view is a part: the last seven days, or more where the view needs more.

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const SPANS = [
  { days: 7, stepMs: HOUR_MS },
  { days: 30, stepMs: 4 * HOUR_MS },
  { days: 90, stepMs: 12 * HOUR_MS },
  { days: 366, stepMs: 2 * DAY_MS },
] as const;

export interface OverviewRange extends View {
  readonly days: number;
  readonly stepMs: number;
}

/** Ends now where that shows the view, else it lies around the view, at whole days: it must not move while the view is dragged. */
export function overviewRange(view: View, nowMs: number): OverviewRange {
  const length = view.toMs - view.fromMs;
  const span = SPANS.find(({ days }) => length <= days * DAY_MS + HOUR_MS) ?? SPANS.at(-1)!;
  const spanMs = span.days * DAY_MS;
  if (view.fromMs >= nowMs - spanMs - HOUR_MS) return { ...span, fromMs: nowMs - spanMs, toMs: nowMs };
  const middle = (view.fromMs + view.toMs) / 2;
  const toMs = Math.min(nowMs, Math.ceil((middle + spanMs / 2) / DAY_MS) * DAY_MS);
  return { ...span, fromMs: toMs - spanMs, toMs };
}

/** What the pointer has hold of. */
export type Grip = "start" | "end" | "window";

const GRIP_PX = 5;
const WINDOW_PX_MIN = 24;

/** A window that is wide enough can be made longer and shorter at its ends. */
export function gripAt(x: number, from: number, to: number): Grip {
  if (to - from >= WINDOW_PX_MIN) {
    if (Math.abs(x - from) <= GRIP_PX) return "start";
    if (Math.abs(x - to) <= GRIP_PX) return "end";
  }
  return "window";
}

const SHORTEST_MS = 60_000;

export function dragged(grip: Grip, view: View, byMs: number): View {
  switch (grip) {
    case "start":
      return { fromMs: Math.round(Math.min(view.fromMs + byMs, view.toMs - SHORTEST_MS)), toMs: view.toMs };
    case "end":
      return { fromMs: view.fromMs, toMs: Math.round(Math.max(view.toMs + byMs, view.fromMs + SHORTEST_MS)) };
    case "window":
      return { fromMs: Math.round(view.fromMs + byMs), toMs: Math.round(view.toMs + byMs) };
    default:
      return grip satisfies never;
  }
}
