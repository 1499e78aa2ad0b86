import { memo, useEffect, useRef } from "react";
import { usePreferences } from "../../data/preferences.ts";
import type { Picture } from "./picture.ts";
import { glyphOf, outlineOf, type Ink } from "./shapes.ts";

/** More marks than this are painted on a canvas, fewer are elements. */
export const SVG_MARKS_MAX = 2000;

interface MarksProps {
  readonly picture: Picture;
  readonly size: number;
}

const ink = (name: Ink | undefined) => (name === undefined ? "none" : `var(--${name})`);

/** The marks of an axis as elements of its picture. */
export const MarksSvg = memo(function MarksSvg({ picture, size }: MarksProps) {
  const { marks, scale, layout, strong } = picture;
  return marks.map((mark) => {
    const { event, fromMs, toMs, lane } = mark;
    const x = scale.x(fromMs);
    const glyph = glyphOf(event, strong.has(event.id));
    return (
      <path
        key={event.id}
        transform={`translate(${x.toFixed(1)} ${layout.laneY(lane)!})`}
        d={outlineOf(glyph.shape, scale.x(toMs) - x, size)}
        fill={ink(glyph.fill)}
        fillOpacity={glyph.fillOpacity}
        stroke={ink(glyph.stroke)}
        strokeWidth={glyph.strokeWidth}
        strokeLinecap="round"
        opacity={glyph.opacity}
      />
    );
  });
});

/** The same marks on a canvas, which thousands of them do not slow down. */
export const MarksCanvas = memo(function MarksCanvas({ picture, size }: MarksProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { theme } = usePreferences();
  const { paneWidth, layout } = picture;
  useEffect(() => {
    const element = canvas.current!;
    const ratio = Math.min(2, devicePixelRatio);
    element.width = Math.ceil(paneWidth * ratio);
    element.height = Math.ceil(layout.height * ratio);
    const context = element.getContext("2d");
    if (context !== null) paint(context, picture, size, ratio);
    // The theme decides what the tokens are.
  }, [picture, size, theme, paneWidth, layout.height]);
  return (
    <canvas
      ref={canvas}
      className="absolute top-0 left-0"
      style={{ width: paneWidth, height: layout.height }}
      aria-hidden
    />
  );
});

function paint(context: CanvasRenderingContext2D, picture: Picture, size: number, ratio: number): void {
  const { marks, scale, layout, strong } = picture;
  const tokens = getComputedStyle(document.documentElement);
  const colors = new Map<Ink, string>();
  const color = (name: Ink) => {
    let value = colors.get(name);
    if (value === undefined) colors.set(name, (value = tokens.getPropertyValue(`--${name}`).trim()));
    return value;
  };
  context.lineCap = "round";
  for (const { event, fromMs, toMs, lane } of marks) {
    const x = scale.x(fromMs);
    const glyph = glyphOf(event, strong.has(event.id));
    const outline = new Path2D(outlineOf(glyph.shape, scale.x(toMs) - x, size));
    context.setTransform(ratio, 0, 0, ratio, x * ratio, layout.laneY(lane)! * ratio);
    if (glyph.fill !== undefined) {
      context.globalAlpha = (glyph.opacity ?? 1) * (glyph.fillOpacity ?? 1);
      context.fillStyle = color(glyph.fill);
      // This fill paints a path; it fills no array.
      // oxlint-disable-next-line unicorn/no-array-fill-with-reference-type
      context.fill(outline);
    }
    if (glyph.stroke !== undefined) {
      context.globalAlpha = glyph.opacity ?? 1;
      context.strokeStyle = color(glyph.stroke);
      context.lineWidth = glyph.strokeWidth ?? 1;
      context.stroke(outline);
    }
  }
}
