import { memo } from "react";
import { timeTicks, type Tick } from "../time/format.ts";
import type { Picture } from "./picture.ts";

const TICK_PIXELS = { full: 110, mini: 80 };
const CHARACTER_PIXELS = 6.5;

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
  const { scale, paneWidth, view } = picture;
  const [left, right] = [scale.x(view.fromMs), scale.x(view.toMs)];
  const isWhole = ({ atMs, label }: Tick) => {
    const half = label.length * CHARACTER_PIXELS * 0.5;
    return scale.x(atMs) - half >= left && scale.x(atMs) + half <= right;
  };
  return (
    <svg width={paneWidth} height={height} aria-hidden className="block">
      {ticks.map((tick) => (
        <g key={tick.atMs}>
          <line x1={scale.x(tick.atMs)} x2={scale.x(tick.atMs)} y1={height - 5} y2={height} stroke="var(--line2)" />
          {/* A label that the edge cuts off says nothing. */}
          {isWhole(tick) && (
            <text
              x={scale.x(tick.atMs)}
              y={height - (isMini ? 7 : 11)}
              textAnchor="middle"
              fontSize={isMini ? 10 : 11}
              fontWeight={tick.isMidnight ? 600 : 400}
              fill={tick.isMidnight ? "var(--ink)" : "var(--ink3)"}
            >
              {tick.label}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
});
