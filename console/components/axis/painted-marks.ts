import type { Picture } from "./picture.ts";
import { glyphOf, outlineOf, type Glyph } from "./shapes.ts";

/** Marks that look the same, in one outline: a thousand marks are a few dozen of these. */
export interface PaintedMarks extends Omit<Glyph, "shape"> {
  readonly key: string;
  readonly outline: string;
}

/** The quiet ones first, so that what is strong lies above them. */
export function paintedMarks({ marks, scale, layout, strong }: Picture, size: number): PaintedMarks[] {
  const paints = new Map<string, { glyph: Glyph; isStrong: boolean; outlines: string[] }>();
  for (const { event, fromMs, toMs, lane } of marks) {
    const isStrong = strong.has(event.id);
    const glyph = glyphOf(event, isStrong);
    const { fill = "", fillOpacity = 1, stroke = "", strokeWidth = 0, opacity = 1 } = glyph;
    const key = `${fill} ${fillOpacity} ${stroke} ${strokeWidth} ${opacity} ${isStrong}`;
    const x = scale.x(fromMs);
    const outline = outlineOf(glyph.shape, x, layout.laneY(lane)!, scale.x(toMs) - x, size);
    const paint = paints.get(key);
    if (paint === undefined) paints.set(key, { glyph, isStrong, outlines: [outline] });
    else paint.outlines.push(outline);
  }
  const rank = ({ glyph, isStrong }: { glyph: Glyph; isStrong: boolean }) => (isStrong ? 2 : 0) + (glyph.opacity ?? 1);
  return [...paints]
    .toSorted(([, a], [, b]) => rank(a) - rank(b))
    .map(([key, { glyph, outlines }]) => ({ ...glyph, key, outline: outlines.join("") }));
}
