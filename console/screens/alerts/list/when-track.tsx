import type { Severity } from "../../../data/client.ts";
import { severityColor } from "../../../components/ui/severity.tsx";

export interface Mark {
  readonly fromMs: number;
  readonly toMs: number;
}

interface WhenTrackProps {
  readonly marks: readonly Mark[];
  readonly severity: Severity;
  readonly fromMs: number;
  readonly toMs: number;
}

const TRACK_WIDTH = 124;
const HEIGHT = 20;
const LINE_PIXELS_MIN = 14;
const TICKS = [1, 2, 3, 4, 5, 6];

/** When, on the range: rows line up, so that what happened together is seen to have. */
export function WhenTrack({ marks, severity, fromMs, toMs }: WhenTrackProps) {
  const x = (atMs: number) => Math.max(0, Math.min(TRACK_WIDTH, ((atMs - fromMs) / (toMs - fromMs)) * TRACK_WIDTH));
  const color = severityColor(severity);
  return (
    <svg width={TRACK_WIDTH} height={HEIGHT} aria-hidden className="block">
      <line x1={0} x2={TRACK_WIDTH} y1={10} y2={10} stroke="var(--line2)" strokeOpacity={0.5} />
      {TICKS.map((tick) => {
        const at = (tick * TRACK_WIDTH) / (TICKS.length + 1);
        return <line key={tick} x1={at} x2={at} y1={8} y2={12} stroke="var(--line2)" />;
      })}
      {marks.map((mark) => {
        const [start, end] = [x(mark.fromMs), x(mark.toMs)];
        return end - start > LINE_PIXELS_MIN ? (
          <g key={`${mark.fromMs} ${mark.toMs}`} fill={color}>
            <rect x={start} width={end - start} y={8.5} height={3} rx={1.5} opacity={0.55} />
            <rect x={end - 2} width={3} y={4} height={12} rx={1.5} />
          </g>
        ) : (
          <rect
            key={`${mark.fromMs} ${mark.toMs}`}
            x={Math.min(start - 1, TRACK_WIDTH - 3)}
            width={Math.max(3, end - start)}
            y={4}
            height={12}
            rx={1.5}
            fill={color}
            opacity={marks.length > 4 ? 0.8 : 1}
          />
        );
      })}
    </svg>
  );
}
