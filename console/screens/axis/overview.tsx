import { useQuery } from "@tanstack/react-query";
import { memo, useRef } from "react";
import type { AxisAlert } from "../../components/axis/alert-rows.ts";
import { RIGHT, sizesFor } from "../../components/axis/layout.ts";
import { scaleOf, type View } from "../../components/axis/view.ts";
import { TableButton, type TwinRow } from "../../components/charts/table-twin.tsx";
import { useWidth } from "../../components/charts/use-width.ts";
import { clock, day, duration, timeTicks } from "../../components/time/format.ts";
import { severityColor } from "../../components/ui/severity.tsx";
import { axisOverviewQuery } from "../../data/axis.ts";
import { count, exact } from "../../text/numbers.ts";
import { dragged, gripAt, type Grip, type OverviewRange } from "./overview.ts";

const HEIGHT = 58;
const DAY_TICKS = 8;

interface OverviewProps {
  readonly range: OverviewRange;
  readonly view: View;
  readonly alerts: readonly AxisAlert[];
  readonly onView: (view: View) => void;
}

/** The days around the view: events as bars, bad alerts as diamonds, and the view as a window that can be dragged. */
export function Overview({ range, view, alerts, onView }: OverviewProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const events = useQuery(axisOverviewQuery({ fromMs: hour(range.fromMs), toMs: hour(range.toMs) }, range.stepMs));
  const drag = useRef<{ grip: Grip; x: number; view: View } | null>(null);
  const { left } = sizesFor(width);
  const plot = Math.max(50, width - left - RIGHT.full);
  const { x, at } = scaleOf(range, left, plot);
  const limit = (px: number) => Math.min(left + plot, Math.max(left, px));
  const from = limit(x(view.fromMs));
  const to = Math.max(from + 6, limit(x(view.toMs)));
  return (
    <div ref={box} className="relative shrink-0 border-b border-line bg-app" style={{ height: HEIGHT + 1 }}>
      {width > 0 && (
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label={`${count(events.data?.total ?? 0, "event")} in ${range.days} days, with a window on the part that is shown`}
          className="block cursor-pointer touch-none"
          onPointerDown={({ nativeEvent, currentTarget, pointerId }) => {
            const px = nativeEvent.offsetX;
            currentTarget.setPointerCapture(pointerId);
            const isInside = px >= from - 5 && px <= to + 5;
            const half = (view.toMs - view.fromMs) / 2;
            const start = isInside ? view : { fromMs: Math.round(at(px) - half), toMs: Math.round(at(px) + half) };
            if (!isInside) onView(start);
            drag.current = { grip: isInside ? gripAt(px, from, to) : "window", x: px, view: start };
          }}
          onPointerMove={({ nativeEvent }) => {
            const held = drag.current;
            if (held === null) return;
            onView(dragged(held.grip, held.view, at(nativeEvent.offsetX) - at(held.x)));
          }}
          onPointerUp={() => (drag.current = null)}
          onPointerCancel={() => (drag.current = null)}
        >
          <Ground range={range} left={left} plot={plot} cells={events.data?.cells ?? NONE} alerts={alerts} />
          <rect x={left} y={0} width={Math.max(0, from - left)} height={HEIGHT} fill="var(--app)" opacity={0.45} />
          <rect x={to} y={0} width={Math.max(0, left + plot - to)} height={HEIGHT} fill="var(--app)" opacity={0.45} />
          <rect
            x={from - 1}
            y={2}
            width={to - from + 2}
            height={HEIGHT - 4}
            rx={3}
            fill="var(--accent)"
            fillOpacity={0.14}
            stroke="var(--accent)"
            strokeWidth={1.5}
          />
          <text x={left - 12} y={24} textAnchor="end" fontSize={11.5} fontWeight={600} fill="var(--ink2)">
            {range.days} days
          </text>
          <text x={left - 12} y={40} textAnchor="end" fontSize={10.5} fill="var(--ink3)">
            {events.data === undefined ? "" : count(events.data.total, "event")}
          </text>
        </svg>
      )}
      <TableButton
        className="absolute top-1 left-1 size-6"
        title={`Events and alerts in ${range.days} days`}
        columns={["From", "Events", "Alerts"]}
        rows={() => rowsOf(range, events.data?.cells ?? NONE, alerts, onView)}
        note={`Counted for each ${duration(range.stepMs)}. Times without events are left out.`}
      />
    </div>
  );
}

function rowsOf(
  { stepMs }: OverviewRange,
  cells: GroundProps["cells"],
  alerts: readonly AxisAlert[],
  onView: (view: View) => void,
): TwinRow[] {
  return cells
    .filter((cell) => cell.count > 0)
    .map(({ atMs, count: events }) => {
      const until = atMs + stepMs;
      const isIn = ({ last_event_at: at }: AxisAlert) => Date.parse(at) >= atMs && Date.parse(at) < until;
      return {
        id: atMs,
        name: `${day(atMs)} ${clock(atMs)}`,
        cells: [exact(events), exact(alerts.filter(isIn).length)],
        choose: () => onView({ fromMs: atMs, toMs: until }),
      };
    });
}

const NONE: readonly never[] = [];
const HOUR_MS = 3_600_000;
/** Asked for at whole hours, so that the question stays the same for a while. */
const hour = (atMs: number) => Math.ceil(atMs / HOUR_MS) * HOUR_MS;

interface GroundProps {
  readonly range: OverviewRange;
  readonly left: number;
  readonly plot: number;
  readonly cells: readonly { readonly atMs: number; readonly count: number }[];
  readonly alerts: readonly AxisAlert[];
}

const Ground = memo(function Ground({ range, left, plot, cells, alerts }: GroundProps) {
  const { x } = scaleOf(range, left, plot);
  const most = Math.max(1, ...cells.map((cell) => cell.count));
  const barWidth = Math.max(1, x(range.stepMs) - x(0) - 1);
  const bars = cells
    .filter((cell) => cell.count > 0 && cell.atMs < range.toMs)
    .map((cell) => {
      const height = (cell.count / most) * 30;
      return `M${Math.max(left, x(cell.atMs)).toFixed(1)} ${HEIGHT - 4}v${-height.toFixed(1)}h${barWidth.toFixed(1)}v${height.toFixed(1)}z`;
    });
  return (
    <>
      {timeTicks(range.fromMs, range.toMs, DAY_TICKS)
        .filter(({ isMidnight }) => isMidnight)
        .map(({ atMs }) => (
          <g key={atMs}>
            <line x1={x(atMs)} x2={x(atMs)} y1={4} y2={HEIGHT} stroke="var(--line)" />
            {x(atMs) < left + plot - 64 && (
              <text x={x(atMs) + 6} y={14} fontSize={10.5} fill="var(--ink3)">
                {day(atMs)}
              </text>
            )}
          </g>
        ))}
      <path d={bars.join("")} fill="var(--ink3)" opacity={0.5} />
      {alerts.map((alert) => {
        const isWorst = alert.severity === "critical";
        const half = isWorst ? 4.5 : 2.5;
        return (
          <path
            key={alert.id}
            d={`M${x(Date.parse(alert.last_event_at)).toFixed(1)} ${23.5 - half}l${half} ${half}l${-half} ${half}l${-half} ${-half}z`}
            fill={severityColor(alert.severity)}
            opacity={isWorst ? 1 : 0.6}
          />
        );
      })}
    </>
  );
});
