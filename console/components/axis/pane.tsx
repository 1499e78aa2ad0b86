import { memo, useId } from "react";
import { zoneOffsetMs } from "../time/zone.ts";
import type { Tick } from "../time/format.ts";
import { severityColor } from "../ui/severity.tsx";
import { AlertsLayer } from "./alerts-layer.tsx";
import { HeatLayer } from "./heat-layer.tsx";
import { MarksCanvas, MarksSvg, SVG_MARKS_MAX } from "./marks-layer.tsx";
import { nightsOf } from "./nights.ts";
import type { AxisContent, Picture } from "./picture.ts";
import type { AxisSizes } from "./layout.ts";
import { ThreadLayer } from "./thread-layer.tsx";
import { trafficShape, type Traffic } from "./traffic.ts";

interface PaneProps {
  readonly picture: Picture;
  readonly content: AxisContent;
  readonly traffic: Traffic | undefined;
  readonly ticks: readonly Tick[];
  readonly sizes: AxisSizes;
  readonly isMini: boolean;
  readonly zone: string;
  readonly label: string;
}

/** Everything that moves with time. */
export const Pane = memo(function Pane({ picture, content, traffic, ticks, sizes, isMini, zone, label }: PaneProps) {
  const { layout, paneWidth, scale, marks } = picture;
  const isCanvas = marks.length > SVG_MARKS_MAX;
  return (
    <>
      {isCanvas && content.heat === undefined && <MarksCanvas picture={picture} size={sizes.glyph} />}
      <svg
        width={paneWidth}
        height={layout.height}
        role="img"
        aria-label={label}
        data-marks={content.heat === undefined ? (isCanvas ? "canvas" : "svg") : "heat"}
        className="relative block"
      >
        <Ground picture={picture} content={content} ticks={ticks} sizes={sizes} zone={zone} />
        <AlertsLayer
          picture={picture}
          rowHeight={sizes.alertRow}
          isMini={isMini}
          isTicks={content.heat !== undefined}
          chosen={content.chosen}
        />
        {content.heat !== undefined && <HeatLayer heat={content.heat} picture={picture} laneHeight={sizes.lane} />}
        {content.heat === undefined && !isCanvas && <MarksSvg picture={picture} size={sizes.glyph} />}
        <Labels picture={picture} />
        <ThreadLayer picture={picture} severity={content.threadSeverity} echoes={content.echoes} isMini={isMini} />
        {traffic !== undefined && (
          <TrafficLayer
            traffic={traffic}
            x={scale.x}
            width={paneWidth}
            top={layout.trafficTop}
            height={sizes.traffic}
          />
        )}
      </svg>
    </>
  );
});

function Ground({
  picture,
  content,
  ticks,
  sizes,
  zone,
}: Pick<PaneProps, "picture" | "content" | "ticks" | "sizes" | "zone">) {
  const { scale, layout, paneWidth, pane } = picture;
  const { band } = content;
  const color = severityColor(content.threadSeverity);
  const top = sizes.ruler;
  return (
    <g>
      {nightsOf(pane, (atMs) => zoneOffsetMs(atMs, zone)).map(({ fromMs, toMs }) => (
        <rect
          key={fromMs}
          x={scale.x(fromMs)}
          width={scale.x(toMs) - scale.x(fromMs)}
          y={top}
          height={layout.height}
          fill="var(--ink)"
          opacity={0.03}
        />
      ))}
      {ticks.map(({ atMs, isMidnight }) => (
        <line
          key={atMs}
          x1={scale.x(atMs)}
          x2={scale.x(atMs)}
          y1={top}
          y2={layout.height}
          stroke="var(--line)"
          strokeWidth={isMidnight ? 1.5 : 1}
        />
      ))}
      {layout.lanes.map(({ id, y }) => (
        <line key={id} x1={0} x2={paneWidth} y1={y} y2={y} stroke="var(--line)" strokeDasharray="1 3" />
      ))}
      {band !== undefined && (
        <g>
          <rect
            x={scale.x(band.fromMs) - 9}
            width={scale.x(band.toMs) - scale.x(band.fromMs) + 18}
            y={top}
            height={layout.height}
            fill={color}
            opacity={0.06}
          />
          {[scale.x(band.fromMs) - 9, scale.x(band.toMs) + 9].map((x) => (
            <line key={x} x1={x} x2={x} y1={top} y2={layout.height} stroke={color} opacity={0.4} />
          ))}
        </g>
      )}
    </g>
  );
}

function Labels({ picture }: { picture: Picture }) {
  return picture.labels.map(({ id, lane, x, text, isStrong, isMono }) => (
    <text
      key={id}
      x={x}
      y={picture.layout.laneY(lane)! + 3.5}
      fontSize={isMono ? 10.5 : 11}
      fontWeight={isStrong ? 600 : 450}
      fill={isStrong ? "var(--ink)" : "var(--ink2)"}
      stroke="var(--panel)"
      strokeWidth={4}
      strokeLinejoin="round"
      paintOrder="stroke"
      className={isMono ? "font-mono" : ""}
    >
      {text}
    </text>
  ));
}

interface TrafficLayerProps {
  readonly traffic: Traffic;
  readonly x: (atMs: number) => number;
  readonly width: number;
  readonly top: number;
  readonly height: number;
}

function TrafficLayer({ traffic, x, width, top, height }: TrafficLayerProps) {
  const fade = useId();
  const { line, area } = trafficShape(traffic, x, top, height);
  return (
    <g>
      <linearGradient id={fade} x1="0" x2="0" y1="0" y2="1">
        <stop offset="0" stopColor="var(--accent)" stopOpacity={0.5} />
        <stop offset="1" stopColor="var(--accent)" stopOpacity={0.03} />
      </linearGradient>
      <path d={area} fill={`url(#${fade})`} />
      <path d={line} fill="none" stroke="var(--accent)" strokeWidth={1.3} />
      <line x1={0} x2={width} y1={top + height} y2={top + height} stroke="var(--line)" />
    </g>
  );
}
