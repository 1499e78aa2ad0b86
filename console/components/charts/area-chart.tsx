import { useId, useState } from "react";
import { clock, day, duration } from "../time/format.ts";
import { indexAt, stack, valueTicks, type Layer, type Series } from "./stack.ts";
import { TableTwin, type TwinRow } from "./table-twin.tsx";
import { TimeGrid } from "./time-grid.tsx";
import { useDragZoom } from "./use-drag-zoom.tsx";
import { useWidth } from "./use-width.ts";

interface AreaChartProps {
  /** What it shows, for those who do not see it. */
  readonly label: string;
  /** The name of its table. */
  readonly title: string;
  readonly timesMs: readonly number[];
  readonly stepMs: number;
  readonly series: readonly Series[];
  /** The period before, as a dashed line. */
  readonly previous?: readonly number[] | undefined;
  readonly format: (value: number) => string;
  readonly height?: number;
  readonly onZoom?: ((fromMs: number, toMs: number) => void) | undefined;
  readonly onUnzoom?: (() => void) | undefined;
}

const LEFT = 64;
const BOTTOM = 20;
const TOP = 8;
const BEFORE = "the period before";

/** Shades of the accent, the largest the strongest; what is left over is grey. */
export const shadeOf = (index: number, count: number, isOther: boolean) =>
  isOther
    ? "var(--line2)"
    : `color-mix(in oklab, var(--accent) ${Math.round(90 - (index / Math.max(1, count)) * 70)}%, var(--panel))`;

/** Stacked areas over time from zero. Drag to zoom, double click to undo, hover for the numbers; a table beside it. */
export function AreaChart(props: AreaChartProps) {
  const { title, timesMs, stepMs, series, previous, format, onZoom } = props;
  const rows = (): TwinRow[] =>
    timesMs.map((atMs, index) => ({
      id: atMs,
      name: `${day(atMs)} ${clock(atMs)}`,
      cells: [...series.map(({ values }) => values), ...(previous ? [previous] : [])].map((values) =>
        format(values[index] ?? 0),
      ),
      choose: onZoom && (() => onZoom(atMs, atMs + stepMs)),
    }));
  return (
    <TableTwin
      title={title}
      columns={["From", ...series.map(({ name }) => name), ...(previous ? [BEFORE] : [])]}
      rows={rows}
      note={`Each row covers ${duration(stepMs)}.`}
    >
      <Picture {...props} />
    </TableTwin>
  );
}

function Picture(props: AreaChartProps) {
  const { label, timesMs, stepMs, series, previous, format, height = 220, onZoom, onUnzoom } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const [hover, setHover] = useState<number>();
  const clip = useId();
  const layers = stack(series, timesMs.length);
  const most = Math.max(1e-9, ...(layers.at(-1)?.top ?? []), ...(previous ?? []));
  const fromMs = timesMs[0] ?? 0;
  const toMs = (timesMs.at(-1) ?? 0) + stepMs;
  const plotWidth = Math.max(1, width - LEFT);
  const plotHeight = height - BOTTOM - TOP;
  const x = (atMs: number) => LEFT + ((atMs - fromMs) / Math.max(1, toMs - fromMs)) * plotWidth;
  const y = (value: number) => TOP + plotHeight - (value / most) * plotHeight;
  const timeAt = (pixels: number) =>
    fromMs + (Math.min(Math.max(pixels - LEFT, 0), plotWidth) / plotWidth) * (toMs - fromMs);
  const zoom = useDragZoom({ timeAt, onZoom, onUnzoom });
  const at = hover === undefined ? undefined : indexAt(timesMs, timeAt(hover));
  return (
    <div ref={box} className="relative select-none" style={{ height }}>
      {width > 0 && timesMs.length > 0 && (
        <svg
          width={width}
          height={height}
          role="img"
          aria-label={label}
          className={`block ${onZoom === undefined ? "" : "cursor-crosshair"}`}
          {...zoom.handlers}
          onPointerMove={(event) => {
            setHover(event.nativeEvent.offsetX);
            zoom.handlers.onPointerMove(event);
          }}
          onPointerLeave={() => setHover(undefined)}
        >
          <clipPath id={clip}>
            <rect x={LEFT} y={0} width={plotWidth} height={height - BOTTOM} />
          </clipPath>
          {valueTicks(most, 4).map((tick) => (
            <g key={tick}>
              <line x1={LEFT} x2={width} y1={y(tick)} y2={y(tick)} stroke="var(--line)" />
              <text x={LEFT - 8} y={y(tick) + 3.5} textAnchor="end" fontSize={10.5} fill="var(--ink3)">
                {format(tick)}
              </text>
            </g>
          ))}
          <TimeGrid
            fromMs={fromMs}
            toMs={toMs}
            x={x}
            top={TOP}
            bottom={TOP + plotHeight}
            baseline={height - 6}
            ticks={plotWidth / 90}
            right={width}
          />
          <g clipPath={`url(#${clip})`}>
            {layers.map((layer, index) => (
              <path
                key={layer.name}
                d={areaPath(layer, timesMs, stepMs, x, y)}
                fill={shadeOf(index, layers.length, layer.isOther)}
              />
            ))}
            {previous !== undefined && (
              <path
                d={stepPath(previous, timesMs, stepMs, x, y)}
                fill="none"
                stroke="var(--ink2)"
                strokeWidth={1.2}
                strokeDasharray="4 3"
              />
            )}
            {at !== undefined && !zoom.isDragging && (
              <line
                x1={x(timesMs[at]! + stepMs / 2)}
                x2={x(timesMs[at]! + stepMs / 2)}
                y1={TOP}
                y2={TOP + plotHeight}
                stroke="var(--ink2)"
              />
            )}
            {zoom.range(TOP, plotHeight)}
          </g>
        </svg>
      )}
      {at !== undefined && hover !== undefined && !zoom.isDragging && (
        <Numbers {...props} index={at} isLeft={hover > LEFT + plotWidth / 2} />
      )}
    </div>
  );
}

function Numbers({
  timesMs,
  series,
  previous,
  format,
  index,
  isLeft,
}: AreaChartProps & { index: number; isLeft: boolean }) {
  const total = series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
  return (
    <div
      aria-hidden
      className={`pointer-events-none absolute top-2 z-10 max-w-64 rounded-md border border-line2 bg-raised px-3 py-2 text-2xs shadow-(--shadow) ${isLeft ? "left-20" : "right-2"}`}
    >
      <p className="mb-1 font-semibold">{`${day(timesMs[index]!)} ${clock(timesMs[index]!)}`}</p>
      <table>
        <tbody>
          {series.toReversed().map(({ name, values, isOther = false }, place) => (
            <tr key={name}>
              <td className="pr-2">
                <span
                  className="mr-1.5 inline-block size-2 rounded-sm"
                  style={{ background: shadeOf(series.length - 1 - place, series.length, isOther) }}
                />
                {name}
              </td>
              <td className="text-right text-ink2">{format(values[index] ?? 0)}</td>
            </tr>
          ))}
          {series.length > 1 && (
            <tr className="border-t border-line">
              <td className="pr-2">all</td>
              <td className="text-right text-ink2">{format(total)}</td>
            </tr>
          )}
          {previous !== undefined && (
            <tr>
              <td className="pr-2 text-ink3">{BEFORE}</td>
              <td className="text-right text-ink3">{format(previous[index] ?? 0)}</td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

type Scale = (value: number) => number;

/** Each point lasts as long as it covers: steps, not slopes. */
function stepPath(values: readonly number[], timesMs: readonly number[], stepMs: number, x: Scale, y: Scale): string {
  const points = timesMs.map((atMs, index) => {
    const level = y(values[index] ?? 0).toFixed(1);
    return `${x(atMs).toFixed(1)} ${level}L${x(atMs + stepMs).toFixed(1)} ${level}`;
  });
  return `M${points.join("L")}`;
}

function areaPath({ top, bottom }: Layer, timesMs: readonly number[], stepMs: number, x: Scale, y: Scale): string {
  const back = timesMs
    .map((atMs, index) => {
      const level = y(bottom[index]!).toFixed(1);
      return `${x(atMs + stepMs).toFixed(1)} ${level}L${x(atMs).toFixed(1)} ${level}`;
    })
    .toReversed();
  return `${stepPath(top, timesMs, stepMs, x, y)}L${back.join("L")}Z`;
}
