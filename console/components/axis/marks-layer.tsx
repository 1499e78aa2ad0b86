import { memo, useEffect, useMemo, useRef } from "react";
import { usePreferences } from "../../data/preferences.ts";
import { paintedMarks, type PaintedMarks } from "./painted-marks.ts";
import type { Picture } from "./picture.ts";
import type { Ink } from "./shapes.ts";

/** More marks than this are painted on a canvas, fewer are elements. */
export const SVG_MARKS_MAX = 2000;

interface MarksProps {
  readonly picture: Picture;
  readonly size: number;
}

const ink = (name: Ink | undefined) => (name === undefined ? "none" : `var(--${name})`);

/** The marks of an axis as elements of its picture. */
export const MarksSvg = memo(function MarksSvg({ picture, size }: MarksProps) {
  return paintedMarks(picture, size).map(({ key, outline, fill, fillOpacity, stroke, strokeWidth, opacity }) => (
    <path
      key={key}
      d={outline}
      fill={ink(fill)}
      fillOpacity={fillOpacity}
      stroke={ink(stroke)}
      strokeWidth={strokeWidth}
      strokeLinecap="round"
      opacity={opacity}
    />
  ));
});

/** The same marks on a canvas, which thousands of them do not slow down. */
export const MarksCanvas = memo(function MarksCanvas({ picture, size }: MarksProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { theme } = usePreferences();
  const { paneWidth, layout } = picture;
  const painted = useMemo(() => paintedMarks(picture, size), [picture, size]);
  useEffect(() => {
    const element = canvas.current!;
    const ratio = Math.min(2, devicePixelRatio);
    element.width = Math.ceil(paneWidth * ratio);
    element.height = Math.ceil(layout.height * ratio);
    const context = element.getContext("2d");
    if (context === null) return;
    context.scale(ratio, ratio);
    paint(context, painted);
    // The theme decides what the tokens are.
  }, [painted, theme, paneWidth, layout.height]);
  return (
    <canvas
      ref={canvas}
      className="absolute top-0 left-0"
      style={{ width: paneWidth, height: layout.height }}
      aria-hidden
    />
  );
});

function paint(context: CanvasRenderingContext2D, painted: readonly PaintedMarks[]): void {
  const tokens = getComputedStyle(document.documentElement);
  const color = (name: Ink) => tokens.getPropertyValue(`--${name}`).trim();
  context.lineCap = "round";
  for (const { outline, fill, fillOpacity = 1, stroke, strokeWidth = 1, opacity = 1 } of painted) {
    const path = new Path2D(outline);
    if (fill !== undefined) {
      context.globalAlpha = opacity * fillOpacity;
      context.fillStyle = color(fill);
      // This fill paints a path; it fills no array.
      // oxlint-disable-next-line unicorn/no-array-fill-with-reference-type
      context.fill(path);
    }
    if (stroke !== undefined) {
      context.globalAlpha = opacity;
      context.strokeStyle = color(stroke);
      context.lineWidth = strokeWidth;
      context.stroke(path);
    }
  }
}
