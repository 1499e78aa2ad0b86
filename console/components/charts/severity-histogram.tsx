import { SEVERITIES, type Severity } from "../../data/client.ts";
import { count, exact } from "../../text/numbers.ts";
import { clock, day, duration } from "../time/format.ts";
import { severityColor } from "../ui/severity.tsx";
import { TableTwin, type TwinRow } from "./table-twin.tsx";
import { TimeGrid } from "./time-grid.tsx";
import { useDragZoom } from "./use-drag-zoom.tsx";
import { useWidth } from "./use-width.ts";

export interface SeverityBucket {
  readonly atMs: number;
  readonly counts: Readonly<Partial<Record<Severity, number>>>;
}

interface SeverityHistogramProps {
  /** What is counted, for the text beside the picture: `alert`, `event`. */
  readonly of: string;
  readonly buckets: readonly SeverityBucket[];
  readonly stepMs: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly height?: number;
  readonly onZoom?: (fromMs: number, toMs: number) => void;
  readonly onUnzoom?: () => void;
}

const AXIS_HEIGHT = 16;

const sum = ({ counts }: SeverityBucket) => SEVERITIES.reduce((total, severity) => total + (counts[severity] ?? 0), 0);

/** Counts over time, stacked by severity with the worst on top. Drag to zoom, double click to undo; a table beside it. */
export function SeverityHistogram(props: SeverityHistogramProps) {
  const { of, buckets, stepMs, onZoom } = props;
  const shown = SEVERITIES.filter((severity) => buckets.some(({ counts }) => (counts[severity] ?? 0) > 0));
  const rows = (): TwinRow[] =>
    buckets
      .filter((bucket) => sum(bucket) > 0)
      .map((bucket) => ({
        id: bucket.atMs,
        name: `${day(bucket.atMs)} ${clock(bucket.atMs)}`,
        cells: [exact(sum(bucket)), ...shown.map((severity) => exact(bucket.counts[severity] ?? 0))],
        choose: onZoom && (() => onZoom(bucket.atMs, bucket.atMs + stepMs)),
      }));
  return (
    <TableTwin
      title={`${of.charAt(0).toUpperCase()}${of.slice(1)}s over time`}
      columns={["From", "All", ...shown]}
      rows={rows}
      note={`Counted for each ${duration(stepMs)}. Times without ${of}s are left out.`}
    >
      <Picture {...props} />
    </TableTwin>
  );
}

function Picture(props: SeverityHistogramProps) {
  const { of, buckets, stepMs, fromMs, toMs, height = 60, onZoom, onUnzoom } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const plot = height - AXIS_HEIGHT;
  const x = (atMs: number) => ((atMs - fromMs) / (toMs - fromMs)) * width;
  const timeAt = (pixels: number) =>
    fromMs + (Math.min(Math.max(pixels, 0), width) / Math.max(1, width)) * (toMs - fromMs);
  const most = Math.max(1, ...buckets.map(sum));
  const total = buckets.reduce((all, bucket) => all + sum(bucket), 0);
  const zoom = useDragZoom({ timeAt, onZoom, onUnzoom });
  return (
    <div ref={box} className="select-none" style={{ height }}>
      {width > 0 && (
        <svg
          width={width}
          height={height}
          role="img"
          aria-label={`${count(total, of)} over time; the most at once: ${most}`}
          className={`block ${onZoom === undefined ? "" : "cursor-crosshair"}`}
          {...zoom.handlers}
        >
          <TimeGrid
            fromMs={fromMs}
            toMs={toMs}
            x={x}
            top={0}
            bottom={plot}
            baseline={height - 4}
            ticks={width / 95}
            right={width}
          />
          {buckets.map((bucket) => (
            <Bar
              key={bucket.atMs}
              bucket={bucket}
              of={of}
              x={x(bucket.atMs)}
              width={Math.max(1, x(bucket.atMs + stepMs) - x(bucket.atMs) - 1)}
              bottom={plot}
              scale={(plot - 4) / most}
            />
          ))}
          <line x1={0} x2={width} y1={plot} y2={plot} stroke="var(--line2)" />
          {zoom.range(0, plot)}
        </svg>
      )}
    </div>
  );
}

interface BarProps {
  readonly bucket: SeverityBucket;
  readonly of: string;
  readonly x: number;
  readonly width: number;
  readonly bottom: number;
  readonly scale: number;
}

function Bar({ bucket, of, x, width, bottom, scale }: BarProps) {
  const parts = SEVERITIES.toReversed().filter((severity) => (bucket.counts[severity] ?? 0) > 0);
  if (parts.length === 0) return null;
  const heights = parts.map((severity) => Math.max(2, bucket.counts[severity]! * scale));
  const rows = parts.map((severity, index) => {
    const below = heights.slice(0, index + 1).reduce((total, height) => total + height, 0);
    return (
      <rect
        key={severity}
        x={x}
        y={bottom - below}
        width={width}
        height={heights[index]}
        rx={1}
        fill={severityColor(severity)}
      />
    );
  });
  const words = parts.toReversed().map((severity) => `${bucket.counts[severity]!} ${severity}`);
  return (
    <g>
      <title>{`${day(bucket.atMs)} ${clock(bucket.atMs)}: ${count(sum(bucket), of)} (${words.join(", ")})`}</title>
      {rows}
    </g>
  );
}
