// The stretch of time that an axis shows, and how it moves.

export interface View {
  readonly fromMs: number;
  readonly toMs: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
export const VIEW_MS_MIN = 10_000;
export const VIEW_MS_MAX = 366 * DAY_MS;
/** Around an alert, whatever its length. */
const AROUND_MS_MIN = 32 * MINUTE_MS;
const AROUND_LENGTHS = 4;

export const lengthOf = ({ fromMs, toMs }: View) => toMs - fromMs;

/** Zooms and keeps the moment under the pointer where it is. A factor below one zooms in. */
export function zoomed(view: View, factor: number, aroundMs: number): View {
  const length = Math.min(VIEW_MS_MAX, Math.max(VIEW_MS_MIN, lengthOf(view) * factor));
  const share = (aroundMs - view.fromMs) / lengthOf(view);
  const fromMs = Math.round(aroundMs - length * share);
  return { fromMs, toMs: Math.round(fromMs + length) };
}

export const moved = ({ fromMs, toMs }: View, byMs: number): View => ({
  fromMs: Math.round(fromMs + byMs),
  toMs: Math.round(toMs + byMs),
});

/** Moves by a share of what is seen. */
export const panned = (view: View, share: number): View => moved(view, lengthOf(view) * share);

/** A stretch that was drawn with the pointer, in either direction. */
export function stretched(oneMs: number, otherMs: number): View {
  const fromMs = Math.round(Math.min(oneMs, otherMs));
  return { fromMs, toMs: Math.max(fromMs + VIEW_MS_MIN, Math.round(Math.max(oneMs, otherMs))) };
}

type Lasting = Readonly<Record<"first_event_at" | "last_event_at", string>>;

/** From the first to the last event of an alert. */
export const bandOf = (alert: Lasting): View => ({
  fromMs: Date.parse(alert.first_event_at),
  toMs: Date.parse(alert.last_event_at),
});

/** An alert with what happened before and after it. */
export function viewAround(alert: Lasting): View {
  const { fromMs: firstMs, toMs: lastMs } = bandOf(alert);
  const length = Math.min(VIEW_MS_MAX, Math.max(AROUND_MS_MIN, (lastMs - firstMs) * AROUND_LENGTHS));
  const middle = (firstMs + lastMs) / 2;
  return { fromMs: Math.round(middle - length / 2), toMs: Math.round(middle + length / 2) };
}

export interface Scale {
  readonly x: (atMs: number) => number;
  readonly at: (x: number) => number;
}

/** Pixels for moments: the view starts at `left` and is `width` wide. */
export function scaleOf(view: View, left: number, width: number): Scale {
  const perMs = width / lengthOf(view);
  return { x: (atMs) => left + (atMs - view.fromMs) * perMs, at: (x) => view.fromMs + (x - left) / perMs };
}

/** The view with as much again on both sides as `share` says: what is drawn beyond the edges, for panning. */
export const widened = (view: View, share: number): View => ({
  fromMs: view.fromMs - lengthOf(view) * share,
  toMs: view.toMs + lengthOf(view) * share,
});

/** What to ask the service for: somewhat more than is seen, at whole steps, so that panning does not ask at every pixel. */
export function fetchWindow(view: View): View {
  const stepMs = 2 ** Math.ceil(Math.log2(lengthOf(view))) / 4;
  const { fromMs, toMs } = widened(view, 0.25);
  return { fromMs: Math.floor(fromMs / stepMs) * stepMs, toMs: Math.ceil(toMs / stepMs) * stepMs };
}

export const overlaps = (view: View, fromMs: number, toMs: number) => toMs >= view.fromMs && fromMs <= view.toMs;
