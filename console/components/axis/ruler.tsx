import { memo } from "react";
import { timeTicks, type Tick } from "../time/format.ts";
import type { Picture } from "./picture.ts";

const TICK_PIXELS = { full: 110, mini: 80 };

export function ticksOf({ pane, paneWidth }: Picture, isMini: boolean): Tick[] {
  return timeTicks(pane.fromMs, pane.toMs, Math.max(3, paneWidth / (isMini ? TICK_PIXELS.mini : TICK_PIXELS.full)));
}

interface RulerProps {
  readonly picture: Picture;
  readonly ticks: readonly Tick[];
  readonly height: number;
  readonly isMini: boolean;
}

/** The times above the lanes. */
export const Ruler = memo(function Ruler({ picture, ticks, height, isMini }: RulerProps) {
  const { scale, paneWidth } = picture;
  return (
    <svg width={paneWidth} height={height} aria-hidden className="block">
      {ticks.map(({ atMs, label, isMidnight }) => (
        <g key={atMs}>
          <line x1={scale.x(atMs)} x2={scale.x(atMs)} y1={height - 5} y2={height} stroke="var(--line2)" />
          <text
            x={scale.x(atMs)}
            y={height - (isMini ? 7 : 11)}
            textAnchor="middle"
            fontSize={isMini ? 10 : 11}
            fontWeight={isMidnight ? 600 : 400}
            fill={isMidnight ? "var(--ink)" : "var(--ink3)"}
          >
            {label}
          </text>
        </g>
      ))}
    </svg>
  );
});
