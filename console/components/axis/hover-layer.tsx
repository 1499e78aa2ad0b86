import { useEffect, useState, type RefObject } from "react";
import { bytesPerSecond, count } from "../../text/numbers.ts";
import { sentenceText } from "../../text/sentences.ts";
import { clock, clockSeconds, day } from "../time/format.ts";
import type { Heat } from "./heat.ts";
import { markAt } from "./hit.ts";
import type { AxisSizes } from "./layout.ts";
import type { Picture } from "./picture.ts";
import type { Traffic } from "./traffic.ts";
import { scaleOf, type View } from "./view.ts";

interface HoverLayerProps {
  readonly plot: RefObject<HTMLDivElement | null>;
  readonly view: View;
  readonly width: number;
  readonly picture: Picture;
  readonly sizes: AxisSizes;
  readonly heat: Heat | undefined;
  readonly traffic: Traffic | undefined;
  readonly onMark: ((id: string | undefined) => void) | undefined;
}

interface Hover {
  readonly x: number;
  readonly y: number;
  readonly tells: string | undefined;
  readonly id: string | undefined;
}

const NOTHING = { tells: undefined, id: undefined };
const TIP_WIDTH = 260;

/** The line under the pointer, its time, and what stands there in words. */
export function HoverLayer(props: HoverLayerProps) {
  const { plot, view, width, picture, onMark } = props;
  const [hover, setHover] = useState<Hover>();
  useEffect(() => {
    const element = plot.current;
    if (element === null) return;
    const leave = () => {
      setHover(undefined);
      onMark?.(undefined);
    };
    const move = (event: PointerEvent) => {
      if (event.pointerType === "touch") return;
      // A hand that drags is not pointing at anything.
      if (event.buttons !== 0) {
        if (hover !== undefined) leave();
        return;
      }
      const { left, top } = element.getBoundingClientRect();
      const x = event.clientX - left;
      const y = event.clientY - top;
      const next = { x, y, ...found(props, x, y) };
      setHover(next);
      if (next.id !== hover?.id) onMark?.(next.id);
    };
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerleave", leave);
    return () => {
      element.removeEventListener("pointermove", move);
      element.removeEventListener("pointerleave", leave);
    };
  });
  if (hover === undefined) return null;
  const atMs = view.fromMs + (hover.x / width) * (view.toMs - view.fromMs);
  return (
    <div className="pointer-events-none absolute inset-0" aria-hidden>
      {/* Over the ruler, which stays in sight as well. */}
      <div
        className="sticky top-1 z-20 w-16 rounded bg-accent py-px text-center text-2xs font-semibold text-accent-ink"
        style={{ marginLeft: Math.min(width - 64, Math.max(0, hover.x - 32)) }}
      >
        {clockSeconds(atMs)}
      </div>
      <div className="absolute top-0 bottom-0 w-px bg-accent" style={{ left: hover.x }} />
      {hover.tells !== undefined && (
        <div
          className="absolute z-10 w-max rounded-md border border-line2 bg-raised px-2.5 py-1.5 text-xs text-ink shadow-(--shadow)"
          style={{
            maxWidth: TIP_WIDTH,
            left: Math.min(Math.max(0, width - TIP_WIDTH), hover.x + 14),
            ...(hover.y > picture.layout.height - 90
              ? { bottom: picture.layout.height - hover.y + 14 }
              : { top: hover.y + 14 }),
          }}
        >
          {hover.tells}
        </div>
      )}
    </div>
  );
}

/** What is at these pixels of the plot. */
function found(
  { view, width, picture, sizes, heat, traffic }: HoverLayerProps,
  x: number,
  y: number,
): Pick<Hover, "tells" | "id"> {
  const scale = scaleOf(view, 0, width);
  const { layout, marks, laneUnder } = picture;
  const atMs = scale.at(x);
  if (y >= layout.alertTop && y < layout.alertTop + layout.alertHeight) {
    const alert = alertAt(picture, sizes, view, width, x, y);
    return { tells: alert?.title, id: undefined };
  }
  const lane = layout.lanes.find(({ y: middle }) => Math.abs(y - middle) <= sizes.lane / 2);
  if (lane !== undefined && heat !== undefined) {
    const cell = heat.lanes.get(lane.id)?.find((one) => atMs >= one.atMs && atMs < one.atMs + heat.stepMs);
    const tells =
      cell &&
      `${day(cell.atMs)} ${clock(cell.atMs)} to ${clock(cell.atMs + heat.stepMs)}: ${count(cell.count, "event")}`;
    return { tells, id: undefined };
  }
  if (lane !== undefined) {
    const mark = markAt(marks, lane.id, laneUnder, x, scale);
    return { tells: mark && `${clockSeconds(mark.event.timestamp)}  ${sentenceText(mark.event)}`, id: mark?.event.id };
  }
  if (traffic !== undefined && y >= layout.trafficTop) {
    const point = traffic.points.find((one) => atMs >= one.atMs && atMs < one.atMs + traffic.stepMs);
    return { tells: point && bytesPerSecond(point.bytes / (traffic.stepMs / 1000)), id: undefined };
  }
  return NOTHING;
}

/** The bar or title under these pixels. */
export function alertAt(picture: Picture, sizes: AxisSizes, view: View, width: number, x: number, y: number) {
  const { layout, alertRows } = picture;
  const row = Math.floor((y - layout.alertTop) / sizes.alertRow);
  // The picture may have been drawn for a view that was there a moment ago.
  const paneX = picture.scale.x(scaleOf(view, 0, width).at(x));
  return alertRows.placed.find(
    (placed) =>
      placed.row === row &&
      paneX >= placed.x - 3 &&
      paneX <= Math.max(placed.x + placed.width + 3, placed.label === "" ? 0 : placed.labelX + placed.label.length * 6),
  )?.alert;
}
