import type { Event, Severity } from "../../data/client.ts";
import { packAlerts, packTicks, type AlertRows, type AxisAlert } from "./alert-rows.ts";
import { heatCounts, type Heat } from "./heat.ts";
import { placeLabels, stopX, type Label } from "./labels.ts";
import { lanesOf } from "./lanes.ts";
import { layoutOf, type AxisSizes, type Layout } from "./layout.ts";
import { marksOf, type Mark } from "./marks.ts";
import { threadPath, threadStops, threadWay, type ThreadStop } from "./thread.ts";
import { overlaps, scaleOf, widened, type Scale, type View } from "./view.ts";

// Everything that an axis shows, computed before anything is drawn.

export interface AxisContent {
  readonly events: readonly Event[];
  readonly alerts: readonly AxisAlert[];
  /** Events that one alert is made of, in their order. */
  readonly thread: readonly Event[];
  readonly threadSeverity: Severity;
  /** Ids of events that have to do with the thread. */
  readonly echoes: ReadonlySet<string>;
  /** From the first to the last event of the chosen alert. */
  readonly band: View | undefined;
  readonly chosen: string | undefined;
  /** Counts instead of events. */
  readonly heat: Heat | undefined;
  /** Lanes to show; all if undefined. */
  readonly only: ReadonlySet<string> | undefined;
  readonly hasTraffic: boolean;
  /** Where the events stop being known. */
  readonly untilMs: number;
}

export interface Frame {
  readonly view: View;
  /** Of the view. */
  readonly width: number;
  readonly sizes: AxisSizes;
  readonly isMini: boolean;
  /** What is drawn beyond both edges, as a share of the view. */
  readonly margin: number;
  readonly measure: (text: string, style: "label" | "mono" | "title") => number;
}

export interface Picture {
  readonly view: View;
  /** What is drawn: the view and its margins. */
  readonly pane: View;
  readonly paneWidth: number;
  readonly marginWidth: number;
  readonly scale: Scale;
  readonly layout: Layout;
  readonly laneUnder: ReadonlyMap<string, string>;
  readonly alertRows: AlertRows;
  readonly marks: readonly Mark[];
  readonly labels: readonly Label[];
  readonly stops: readonly ThreadStop[];
  readonly threadPath: string;
  readonly strong: ReadonlySet<string>;
}

const STOP_RADIUS = { full: 8.5, mini: 6.5 };
const ALERT_ROWS_MAX = { full: 4, mini: 3, ticks: 5, lasting: 3, lastingMini: 1 };

export function pictureOf(content: AxisContent, frame: Frame): Picture {
  const { view, width, sizes, isMini, margin, measure } = frame;
  const { thread, heat, only } = content;
  const pane = widened(view, margin);
  const marginWidth = width * margin;
  const paneWidth = width + 2 * marginWidth;
  const scale = scaleOf(view, marginWidth, width);

  const isShown = ({ lane }: Mark) => only === undefined || only.has(lane);
  const drawable = heat === undefined ? content.events : thread;
  const marks = marksOf(drawable, content.untilMs).filter(
    (mark) => overlaps(pane, mark.fromMs, mark.toMs) && isShown(mark),
  );
  const { groups, laneUnder } = lanesOf(laneCounts(marks, content, view));
  const isTicks = heat !== undefined;
  const packing = {
    view,
    scale,
    left: marginWidth,
    right: marginWidth + width,
    rowsMax: isMini ? ALERT_ROWS_MAX.mini : isTicks ? ALERT_ROWS_MAX.ticks : ALERT_ROWS_MAX.full,
    barMin: isTicks ? 4 : isMini ? 5 : 8,
    titles: !isMini && !isTicks,
    chosen: content.chosen,
    measure: (text: string) => measure(text, "title"),
  };
  const alertRows = isTicks
    ? packTicks(content.alerts, packing, isMini ? ALERT_ROWS_MAX.lastingMini : ALERT_ROWS_MAX.lasting)
    : packAlerts(content.alerts, packing);
  // Alerts without a bar are told beside the lanes, which takes a row.
  const isTold = !isMini && alertRows.ongoing.length + alertRows.hidden.length > 0;
  const layout = layoutOf({
    sizes,
    alertRows: Math.max(alertRows.rows, isTold ? 1 : 0),
    groups,
    laneUnder,
    hasTraffic: content.hasTraffic,
  });

  const numberOf = new Map(thread.map(({ id }, index) => [id, index + 1]));
  const points = marks.flatMap((mark) => {
    const number = numberOf.get(mark.event.id);
    const y = layout.laneY(mark.lane);
    return number === undefined || y === undefined ? [] : [{ x: stopX(mark, scale.x), y, number }];
  });
  const stops = threadStops(points, isMini ? STOP_RADIUS.mini : STOP_RADIUS.full);
  const onLane = marks.filter(({ lane }) => layout.laneY(lane) !== undefined);
  const labels =
    isMini || heat !== undefined
      ? []
      : placeLabels(onLane, {
          scale,
          width: paneWidth,
          edges: [marginWidth, marginWidth + width],
          thread: new Set(numberOf.keys()),
          echoes: content.echoes,
          laneUnder,
          measure: (text, isMono) => measure(text, isMono ? "mono" : "label"),
        });
  return {
    view,
    pane,
    paneWidth,
    marginWidth,
    scale,
    layout,
    laneUnder,
    alertRows,
    marks: onLane,
    labels,
    stops,
    threadPath: threadPath(threadWay(stops)),
    strong: new Set([...numberOf.keys(), ...content.echoes]),
  };
}

/** Lanes without a mark in view fold away; those of the thread stay. */
function laneCounts(
  marks: readonly Mark[],
  { heat, only, thread }: AxisContent,
  view: View,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const own = new Set(thread.map(({ id }) => id));
  if (heat !== undefined) {
    for (const [lane, count] of heatCounts(heat, view.fromMs, view.toMs)) {
      if (only === undefined || only.has(lane)) counts.set(lane, count);
    }
  }
  for (const { event, lane, fromMs, toMs } of marks) {
    if (own.has(event.id) || overlaps(view, fromMs, toMs)) counts.set(lane, (counts.get(lane) ?? 0) + 1);
  }
  return counts;
}
