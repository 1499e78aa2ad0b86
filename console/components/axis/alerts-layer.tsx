import { memo } from "react";
import { severityColor } from "../ui/severity.tsx";
import type { PlacedAlert } from "./alert-rows.ts";
import type { Picture } from "./picture.ts";

interface AlertsLayerProps {
  readonly picture: Picture;
  readonly rowHeight: number;
  readonly isMini: boolean;
  readonly chosen: string | undefined;
}

/** Bars from the first to the last event of each alert, with its title where there is room. */
export const AlertsLayer = memo(function AlertsLayer({ picture, rowHeight, isMini, chosen }: AlertsLayerProps) {
  return picture.alertRows.placed.map((placed) => (
    <AlertBar
      key={placed.alert.id}
      placed={placed}
      top={picture.layout.alertTop + placed.row * rowHeight}
      height={rowHeight - (isMini ? 5 : 6)}
      isChosen={placed.alert.id === chosen}
      isMini={isMini}
    />
  ));
});

interface AlertBarProps {
  readonly placed: PlacedAlert;
  readonly top: number;
  readonly height: number;
  readonly isChosen: boolean;
  readonly isMini: boolean;
}

function AlertBar({ placed, top, height, isChosen, isMini }: AlertBarProps) {
  const { alert, x, width, label, labelX, isInside } = placed;
  const color = severityColor(alert.severity);
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
