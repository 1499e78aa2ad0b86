import type { Alert } from "../../data/client.ts";
import { SEVERITIES } from "../../data/severity.ts";
import { overlaps, type Scale, type View } from "./view.ts";

// Alerts as bars, packed into a few rows: the worst find a place first, and none covers another.

export type AxisAlert = Pick<Alert, "id" | "title" | "severity" | "first_event_at" | "last_event_at">;

export interface PlacedAlert {
  readonly alert: AxisAlert;
  readonly row: number;
  /** The bar. */
  readonly x: number;
  readonly width: number;
  /** The title, cut to its room; empty where it has none. */
  readonly label: string;
  readonly labelX: number;
  readonly isInside: boolean;
}

export interface AlertRows {
  readonly placed: readonly PlacedAlert[];
  readonly rows: number;
  /** Began before the view and end after it. */
  readonly ongoing: readonly AxisAlert[];
  /** In the view, but without a place. */
  readonly hidden: readonly AxisAlert[];
}

export interface PackOptions {
  readonly view: View;
  /** From pixels of the pane. */
  readonly scale: Scale;
  /** Where the view lies in the pane: titles of bars that began earlier start here. */
  readonly left: number;
  readonly right: number;
  readonly rowsMax: number;
  /** The shortest bar. */
  readonly barMin: number;
  /** Not in a small axis, nor where every bar is a tick. */
  readonly titles: boolean;
  readonly chosen?: string | undefined;
  readonly measure: (text: string) => number;
}

const GAP = { titles: 8, ticks: 3 };
const TITLE_MIN = 70;
const TITLE_MAX = 300;
const INSIDE_MIN = 90;

const startMs = (alert: AxisAlert) => Date.parse(alert.first_event_at);
const endMs = (alert: AxisAlert) => Date.parse(alert.last_event_at);

export function packAlerts(alerts: readonly AxisAlert[], options: PackOptions): AlertRows {
  const { view, rowsMax, chosen, titles } = options;
  const gap = titles ? GAP.titles : GAP.ticks;
  const ongoing = alerts.filter(
    (alert) => alert.id !== chosen && startMs(alert) < view.fromMs && endMs(alert) > view.toMs,
  );
  const rest = alerts.filter((alert) => !ongoing.includes(alert)).toSorted(inOrder(view, chosen));
  const rows: Box[][] = [];
  const boxes: { alert: AxisAlert; row: number; box: Box }[] = [];
  const hidden: AxisAlert[] = [];
  for (const alert of rest) {
    const box = boxOf(alert, options);
    const free = rows.findIndex((taken) => taken.every(({ from, to }) => box.to + gap <= from || box.from >= to + gap));
    const row = free === -1 ? rows.length : free;
    const isSeen = overlaps(view, startMs(alert), endMs(alert));
    // What is out of sight opens no row for itself.
    if (row >= rowsMax || (free === -1 && !isSeen)) {
      if (isSeen) hidden.push(alert);
      continue;
    }
    (rows[row] ??= []).push(box);
    boxes.push({ alert, row, box });
  }
  const placed = boxes.map(({ alert, row, box }): PlacedAlert => {
    const label =
      titles && box.labelX < options.right ? cut(alert.title, roomFor(box, rows[row]!, options), options.measure) : "";
    return { alert, row, x: box.from, width: box.barTo - box.from, label, labelX: box.labelX, isInside: box.isInside };
  });
  return { placed, rows: rows.length, ongoing, hidden };
}

/** A title may use all the room up to its neighbour and to the edge of the view. */
function roomFor(box: Box, row: readonly Box[], { right }: PackOptions): number {
  const next = row.map(({ from }) => from).filter((from) => from > box.from);
  return Math.min(right, ...next) - box.labelX - GAP.titles;
}

/** Where time is long, most alerts are ticks, and the few that last have rows of their own below them. */
export function packTicks(alerts: readonly AxisAlert[], options: PackOptions, lastingRowsMax: number): AlertRows {
  const isLasting = (alert: AxisAlert) =>
    options.scale.x(endMs(alert)) - options.scale.x(startMs(alert)) > (options.right - options.left) * LASTING_SHARE;
  const ticks = packAlerts(
    alerts.filter((alert) => !isLasting(alert)),
    options,
  );
  const lasting = packAlerts(alerts.filter(isLasting), { ...options, rowsMax: lastingRowsMax });
  return {
    placed: [...ticks.placed, ...lasting.placed.map((placed) => ({ ...placed, row: placed.row + ticks.rows }))],
    rows: ticks.rows + lasting.rows,
    ongoing: [...ticks.ongoing, ...lasting.ongoing],
    hidden: [...ticks.hidden, ...lasting.hidden],
  };
}

const LASTING_SHARE = 0.05;

interface Box {
  readonly from: number;
  /** With the room for its title. */
  readonly to: number;
  readonly barTo: number;
  readonly labelX: number;
  readonly isInside: boolean;
}

function boxOf(alert: AxisAlert, { scale, left, barMin, titles, measure }: PackOptions): Box {
  const from = scale.x(startMs(alert));
  const barTo = Math.max(scale.x(endMs(alert)), from + barMin);
  const seen = barTo - Math.max(from, left);
  const isInside = titles && seen > INSIDE_MIN;
  const labelX = isInside ? Math.max(from, left) + 11 : barTo + 7;
  const title = titles && barTo >= left ? Math.min(TITLE_MAX, Math.max(TITLE_MIN, measure(alert.title))) : 0;
  return { from, to: title === 0 ? barTo : Math.max(barTo, labelX + title), barTo, labelX, isInside };
}

/** The chosen one, then what is in the view, the worst first. */
function inOrder(view: View, chosen: string | undefined) {
  const rank = (alert: AxisAlert) => (alert.id === chosen ? -1 : overlaps(view, startMs(alert), endMs(alert)) ? 0 : 1);
  return (a: AxisAlert, b: AxisAlert) =>
    rank(a) - rank(b) ||
    SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
    startMs(a) - startMs(b) ||
    a.id.localeCompare(b.id);
}

/** The text, or its beginning with an ellipsis, no wider than the room; empty where not even that fits. */
export function cut(text: string, room: number, measure: (text: string) => number): string {
  const width = measure(text);
  if (width <= room) return text;
  let length = Math.floor((text.length * room) / width);
  while (length > 1) {
    const shorter = `${text.slice(0, length).trimEnd()}…`;
    if (measure(shorter) <= room) return shorter;
    length--;
  }
  return "";
}
