import { startTransition, useEffect, useState } from "react";
import { lengthOf, type View } from "./view.ts";

const REST_MS = 140;
/** Of what is drawn beyond the edges. */
const PAN_SHARE_MAX = 0.7;

/**
 * The view for which the picture is drawn. While a hand pans, the browser moves the drawn picture, and nothing is drawn again until the
 * hand rests or comes near the edge of what is drawn. While it zooms, the picture is stretched until the next one is ready.
 */
export function useDrawnView(view: View, margin: number): View {
  const [drawn, setDrawn] = useState(view);
  useEffect(() => {
    if (view.fromMs === drawn.fromMs && view.toMs === drawn.toMs) return;
    const isSameLength = Math.abs(lengthOf(view) - lengthOf(drawn)) < 2;
    const isNear = Math.abs(view.fromMs - drawn.fromMs) < lengthOf(view) * margin * PAN_SHARE_MAX;
    if (!isSameLength || !isNear) {
      startTransition(() => setDrawn(view));
      return;
    }
    const timer = setTimeout(() => startTransition(() => setDrawn(view)), REST_MS);
    return () => clearTimeout(timer);
  }, [view, drawn, margin]);
  return drawn;
}

/** Moves and stretches what was drawn for one view to where it is in another. */
export function paneTransform(view: View, drawn: View, width: number, marginWidth: number): string {
  const stretch = lengthOf(drawn) / lengthOf(view);
  const shift = ((drawn.fromMs - view.fromMs) / lengthOf(view)) * width - stretch * marginWidth;
  return `translate3d(${shift}px,0,0)${stretch === 1 ? "" : ` scaleX(${stretch})`}`;
}
