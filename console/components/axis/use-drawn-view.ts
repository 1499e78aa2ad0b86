import { startTransition, useEffect, useState } from "react";
import { lengthOf, widened, type View } from "./view.ts";

const REST_MS = 140;
/** How far the picture may be stretched, or pressed, until it is drawn again. */
const STRETCH_MAX = 1.6;

/**
 * The view for which the picture is drawn. While a hand pans or zooms, the browser moves and stretches the drawn picture, and nothing is
 * drawn again until the hand rests, or what is drawn no longer covers the view, or is stretched too much.
 */
export function useDrawnView(view: View, margin: number): View {
  const [drawn, setDrawn] = useState(view);
  useEffect(() => {
    if (view.fromMs === drawn.fromMs && view.toMs === drawn.toMs) return;
    if (!isCovered(view, drawn, margin)) {
      startTransition(() => setDrawn(view));
      return;
    }
    const timer = setTimeout(() => startTransition(() => setDrawn(view)), REST_MS);
    return () => clearTimeout(timer);
  }, [view, drawn, margin]);
  return drawn;
}

function isCovered(view: View, drawn: View, margin: number): boolean {
  const stretch = lengthOf(drawn) / lengthOf(view);
  const pane = widened(drawn, margin);
  return stretch <= STRETCH_MAX && stretch >= 1 / STRETCH_MAX && view.fromMs >= pane.fromMs && view.toMs <= pane.toMs;
}

/** Moves and stretches what was drawn for one view to where it is in another. */
export function paneTransform(view: View, drawn: View, width: number, marginWidth: number): string {
  const stretch = lengthOf(drawn) / lengthOf(view);
  const shift = ((drawn.fromMs - view.fromMs) / lengthOf(view)) * width - stretch * marginWidth;
  return `translate3d(${shift}px,0,0)${stretch === 1 ? "" : ` scaleX(${stretch})`}`;
}
