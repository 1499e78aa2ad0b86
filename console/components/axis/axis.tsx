import { useMemo, useRef } from "react";
import type { Event, Severity } from "../../data/client.ts";
import { count } from "../../text/numbers.ts";
import { useWidth } from "../charts/use-width.ts";
import { day } from "../time/format.ts";
import { useZone } from "../time/zone.ts";
import type { AxisAlert } from "./alert-rows.ts";
import { alertAt, HoverLayer } from "./hover-layer.tsx";
import type { Heat } from "./heat.ts";
import { markAt } from "./hit.ts";
import { LaneHeads } from "./lane-heads.tsx";
import { MINI_SIZES, RIGHT, sizesFor } from "./layout.ts";
import { measureText } from "./measure.ts";
import { Pane } from "./pane.tsx";
import { pictureOf, type AxisContent } from "./picture.ts";
import { Ruler, ticksOf } from "./ruler.tsx";
import type { Traffic } from "./traffic.ts";
import { paneTransform, useDrawnView } from "./use-drawn-view.ts";
import { useGestures } from "./use-gestures.ts";
import { overlaps, scaleOf, type View } from "./view.ts";

export interface AxisProps {
  readonly view: View;
  /** Without it the axis stands still. */
  readonly onView?: (view: View) => void;
  readonly events: readonly Event[];
  readonly alerts?: readonly AxisAlert[];
  /** Events that one alert is made of, in their order: numbered, and joined by a curve. */
  readonly thread?: readonly Event[];
  readonly threadSeverity?: Severity;
  /** Ids of events to ring: what the same door, address or device did besides. See `echoesOf`. */
  readonly echoes?: ReadonlySet<string>;
  /** The time from the first to the last event of the chosen alert. */
  readonly band?: View | undefined;
  /** The id of the chosen alert. */
  readonly chosen?: string | undefined;
  /** Ids of the lanes to show (see `laneOf`); all with something in view if left out. */
  readonly only?: ReadonlySet<string> | undefined;
  readonly heat?: Heat | undefined;
  readonly traffic?: Traffic | undefined;
  /** Small, for a panel beside something else: no labels, no traffic, nothing to drag. */
  readonly mini?: boolean;
  /** Where the events stop being known: the end of what was asked for. */
  readonly untilMs?: number;
  /** The id of an event that is pointed to elsewhere. */
  readonly marked?: string | undefined;
  readonly onMark?: (id: string | undefined) => void;
  readonly onEvent?: (id: string) => void;
  readonly onAlert?: (id: string) => void;
}

const NONE: readonly never[] = [];
const NO_IDS: ReadonlySet<string> = new Set();
/** Drawn beyond each edge, as a share of the view. */
const MARGIN = 0.5;

/** One time axis: alerts, doors, cameras, calls and the network in lanes under each other. What it shows is also told in words beside it. */
export function Axis(props: AxisProps) {
  const { view, onView, mini = false, heat, events, chosen, only, band, onMark, onEvent, onAlert, marked } = props;
  const { alerts = NONE, thread = NONE, threadSeverity = "critical", echoes = NO_IDS } = props;
  const { untilMs = Number.POSITIVE_INFINITY } = props;
  const traffic = mini ? undefined : props.traffic;
  const [box, width] = useWidth<HTMLDivElement>();
  const plot = useRef<HTMLDivElement>(null);
  const zone = useZone();
  const sizes = mini ? MINI_SIZES : sizesFor(width);
  const plotWidth = Math.max(50, width - sizes.left - (mini ? RIGHT.mini : RIGHT.full));
  const margin = onView === undefined ? 0 : MARGIN;
  const drawn = useDrawnView(view, margin);

  const hasTraffic = traffic !== undefined;
  const content = useMemo<AxisContent>(
    () => ({ events, alerts, thread, threadSeverity, echoes, band, chosen, heat, only, hasTraffic, untilMs }),
    [events, alerts, thread, threadSeverity, echoes, band, chosen, heat, only, hasTraffic, untilMs],
  );
  const picture = useMemo(
    () => pictureOf(content, { view: drawn, width: plotWidth, sizes, isMini: mini, margin, measure: measureText }),
    [content, drawn, plotWidth, sizes, mini, margin],
  );
  // The labels of the ticks are in the reader's zone.
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  const ticks = useMemo(() => ticksOf(picture, mini), [picture, mini, zone]);

  const stretch = useGestures(plot, width > 0, {
    view,
    onView: mini ? undefined : onView,
    onClick: (x, y) => {
      const alert = alertAt(picture, sizes, view, plotWidth, x, y);
      if (alert !== undefined) return onAlert?.(alert.id);
      const lane = picture.layout.lanes.find(({ y: middle }) => Math.abs(y - middle) <= sizes.lane / 2);
      const mark = lane && markAt(picture.marks, lane.id, picture.laneUnder, x, scaleOf(view, 0, plotWidth));
      if (mark !== undefined) onEvent?.(mark.event.id);
    },
  });

  const { layout, marginWidth } = picture;
  const transform = paneTransform(view, drawn, plotWidth, marginWidth);
  const pane = { width: picture.paneWidth, transform, transformOrigin: "0 0" };
  const markedMark = marked === undefined ? undefined : picture.marks.find(({ event }) => event.id === marked);
  const seen = useMemo(
    () => picture.marks.filter(({ fromMs, toMs }) => overlaps(picture.view, fromMs, toMs)).length,
    [picture],
  );
  const label = `${heat === undefined ? count(seen, "event") : "Events"} and ${count(alerts.length, "alert")} on one time axis`;
  return (
    <div ref={box} className="relative select-none" style={{ minHeight: layout.height }}>
      {width > 0 && (
        <>
          <div
            className={`sticky top-0 z-10 overflow-hidden ${mini ? "" : "bg-panel"}`}
            style={{ height: sizes.ruler, marginBottom: -sizes.ruler }}
          >
            {!mini && (
              <p
                className="absolute top-0 left-0 truncate pr-3 text-right text-2xs/[30px] font-semibold text-ink2"
                style={{ width: sizes.left }}
              >
                {day(view.fromMs)}
              </p>
            )}
            <div
              className="absolute top-0 overflow-hidden"
              style={{ left: sizes.left, width: plotWidth, height: sizes.ruler }}
            >
              <div className="will-change-transform" style={pane}>
                <Ruler picture={picture} ticks={ticks} height={sizes.ruler} isMini={mini} />
              </div>
            </div>
          </div>
          <LaneHeads picture={picture} sizes={sizes} isMini={mini} traffic={traffic} />
          <div
            ref={plot}
            className={`relative overflow-clip ${mini || onView === undefined ? "" : "cursor-crosshair"}`}
            style={{ marginLeft: sizes.left, width: plotWidth, height: layout.height }}
          >
            <div className="relative will-change-transform" style={pane}>
              <Pane
                picture={picture}
                content={content}
                traffic={traffic}
                ticks={ticks}
                sizes={sizes}
                isMini={mini}
                zone={zone}
                label={label}
              />
              {markedMark !== undefined && (
                <span
                  aria-hidden
                  className="pointer-events-none absolute size-6 -translate-1/2 rounded-full bg-accent/30 ring-1 ring-accent"
                  style={{ left: picture.scale.x(markedMark.fromMs), top: layout.laneY(markedMark.lane) }}
                />
              )}
            </div>
            {stretch !== undefined && (
              <div
                className="pointer-events-none absolute top-0 h-full border-x border-accent bg-accent/20"
                style={{ left: stretch.fromX, width: stretch.toX - stretch.fromX }}
              />
            )}
            {!mini && (
              <HoverLayer
                plot={plot}
                view={view}
                width={plotWidth}
                picture={picture}
                sizes={sizes}
                heat={heat}
                traffic={traffic}
                onMark={onMark}
              />
            )}
          </div>
        </>
      )}
    </div>
  );
}
