import { memo } from "react";
import type { Severity } from "../../data/client.ts";
import { severityColor } from "../ui/severity.tsx";
import type { Picture } from "./picture.ts";
import { ringsOf } from "./thread.ts";

interface ThreadLayerProps {
  readonly picture: Picture;
  readonly severity: Severity;
  readonly echoes: ReadonlySet<string>;
  readonly isMini: boolean;
}

/** The numbered events of the chosen alert, the curve through them, and rings around what has to do with them. */
export const ThreadLayer = memo(function ThreadLayer({ picture, severity, echoes, isMini }: ThreadLayerProps) {
  const { marks, scale, layout, stops, threadPath } = picture;
  const color = severityColor(severity);
  const height = isMini ? 13 : 17;
  const radius = isMini ? 7.5 : 10;
  const echoed = marks
    .filter(({ event }) => echoes.has(event.id))
    .map(({ fromMs, lane }) => ({ x: scale.x(fromMs), y: layout.laneY(lane)! }));
  return (
    <>
      {ringsOf(echoed, radius).map(({ y, from, to }) => (
        <rect
          key={`${y} ${from}`}
          x={from}
          y={y - radius}
          width={to - from}
          height={2 * radius}
          rx={radius}
          fill="none"
          stroke={color}
          strokeWidth={1.4}
        />
      ))}
      {threadPath !== "" && (
        <path
          d={threadPath}
          fill="none"
          stroke={color}
          strokeWidth={isMini ? 1.5 : 2}
          strokeLinecap="round"
          strokeDasharray={isMini ? "1 4" : "1 5"}
        />
      )}
      {stops.map(({ x, y, text, half }) => (
        <g key={text}>
          <rect
            x={x - half}
            y={y - height / 2}
            width={half * 2}
            height={height}
            rx={height / 2}
            fill={color}
            stroke="var(--panel)"
            strokeWidth={2}
            paintOrder="stroke"
          />
          <text
            x={x}
            y={y + (isMini ? 3.2 : 4)}
            textAnchor="middle"
            fontSize={isMini ? 8.5 : 10.5}
            fontWeight={700}
            fill="var(--panel)"
          >
            {text}
          </text>
        </g>
      ))}
    </>
  );
});
