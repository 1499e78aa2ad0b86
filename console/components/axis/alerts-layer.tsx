import { memo } from "react";
import { severityColor } from "../ui/severity.tsx";
import type { PlacedAlert } from "./alert-rows.ts";
import type { Picture } from "./picture.ts";

interface AlertsLayerProps {
  readonly picture: Picture;
  readonly rowHeight: number;
  readonly isMini: boolean;
  /** Time is so long that an alert is a tick, and one that lasts a line. */
  readonly isTicks: boolean;
  readonly chosen: string | undefined;
}

/** Bars from the first to the last event of each alert, with its title where there is room. */
export const AlertsLayer = memo(function AlertsLayer(props: AlertsLayerProps) {
  const { picture, rowHeight, isMini, isTicks, chosen } = props;
  return picture.alertRows.placed.map((placed) => (
    <AlertBar
      key={placed.alert.id}
      placed={placed}
      top={picture.layout.alertTop + placed.row * rowHeight}
      height={rowHeight - (isMini ? 5 : 6)}
      isChosen={placed.alert.id === chosen}
      isMini={isMini}
      isTick={isTicks}
    />
  ));
});

interface AlertBarProps {
  readonly placed: PlacedAlert;
  readonly top: number;
  readonly height: number;
  readonly isChosen: boolean;
  readonly isMini: boolean;
  readonly isTick: boolean;
}

/** A line longer than this has its title above it. */
const LINE_TITLE_PX = 320;

function AlertBar({ placed, top, height, isChosen, isMini, isTick }: AlertBarProps) {
  const { alert, x, width, label, labelX, isInside } = placed;
  const color = severityColor(alert.severity);
  if (isTick) {
    return (
      <g>
        {width > 6 && (
          <rect x={x} y={top + height / 2 + 3} width={width} height={3} rx={1.5} fill={color} opacity={0.5} />
        )}
        {isChosen && <rect x={x - 4} y={top - 1} width={12} height={height + 6} rx={4} fill={color} opacity={0.35} />}
        <rect x={x} y={top + 2} width={4} height={height} rx={1.5} fill={color} />
        {width > LINE_TITLE_PX && !isMini && (
          <text x={x + 12} y={top + height / 2} fontSize={10.5} fill="var(--ink2)">
            {alert.title}
          </text>
        )}
      </g>
    );
  }
  return (
    <g>
      <rect
        x={x}
        y={top + 2}
        width={width}
        height={height}
        rx={isMini ? 2 : 4}
        fill={color}
        opacity={isChosen ? 0.32 : 0.2}
      />
      <rect x={x} y={top + 2} width={isMini ? 3 : 4} height={height} rx={1.5} fill={color} />
      {label !== "" && (
        <text
          x={labelX}
          y={top + height / 2 + 6}
          fontSize={11.5}
          fontWeight={550}
          fill={isInside || isChosen ? "var(--ink)" : "var(--ink2)"}
        >
          {label}
        </text>
      )}
    </g>
  );
}
