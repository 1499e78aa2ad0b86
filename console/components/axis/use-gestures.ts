import { useEffect, useRef, useState, type RefObject } from "react";
import { moved, lengthOf, stretched, zoomed, type View } from "./view.ts";

// Wheel zooms at the pointer, drag pans, shift-drag draws a stretch to zoom to. Fingers scroll the page instead.

const WHEEL_PER_PIXEL = 0.0016;
const LINE_PIXELS = 30;
const CLICK_PIXELS_MAX = 4;
const BOX_MS = 300;

export interface Stretch {
  readonly fromX: number;
  readonly toX: number;
}

interface GestureOptions {
  readonly view: View;
  readonly onView: ((view: View) => void) | undefined;
  readonly onClick: (x: number, y: number) => void;
}

/** Returns the stretch that is being drawn, if any. */
export function useGestures(
  plot: RefObject<HTMLDivElement | null>,
  isShown: boolean,
  { view, onView, onClick }: GestureOptions,
): Stretch | undefined {
  const [stretch, setStretch] = useState<Stretch>();
  const current = useRef({ view, onView, onClick });
  useEffect(() => {
    current.current = { view, onView, onClick };
  });
  useEffect(() => {
    const element = plot.current;
    if (element === null) return;
    let next: View | undefined;
    let frame = 0;
    /** At most one new view a frame, however often the mouse reports. */
    const show = (wanted: View) => {
      next = wanted;
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        const wantedView = next!;
        next = undefined;
        current.current.onView?.(wantedView);
      });
    };
    let drag: { x: number; y: number; view: View; isStretch: boolean; isClick: boolean } | undefined;
    // Asking where the element is makes the browser lay out the page at once: not for each report of the mouse.
    let box = element.getBoundingClientRect();
    let boxAtMs = 0;
    const place = (event: MouseEvent) => {
      if (drag === undefined && event.timeStamp - boxAtMs > BOX_MS) {
        box = element.getBoundingClientRect();
        boxAtMs = event.timeStamp;
      }
      const { left, top, width } = box;
      return { x: event.clientX - left, y: event.clientY - top, width };
    };
    const wheel = (event: WheelEvent) => {
      if (current.current.onView === undefined || event.ctrlKey) return;
      event.preventDefault();
      const { x, width } = place(event);
      const from = next ?? current.current.view;
      const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
      const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (isSideways) {
        show(moved(from, (((event.deltaX || event.deltaY) * pixels) / width) * lengthOf(from)));
      } else {
        show(
          zoomed(from, Math.exp(event.deltaY * pixels * WHEEL_PER_PIXEL), from.fromMs + (x / width) * lengthOf(from)),
        );
      }
    };
    const down = (event: PointerEvent) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      boxAtMs = 0;
      const { x, y } = place(event);
      drag = { x, y, view: current.current.view, isStretch: event.shiftKey, isClick: true };
      element.setPointerCapture(event.pointerId);
    };
    const move = (event: PointerEvent) => {
      if (drag === undefined) return;
      const { x, y, width } = place(event);
      if (Math.abs(x - drag.x) >= CLICK_PIXELS_MAX || Math.abs(y - drag.y) >= CLICK_PIXELS_MAX) drag.isClick = false;
      if (drag.isClick || current.current.onView === undefined) return;
      if (drag.isStretch) setStretch({ fromX: Math.min(drag.x, x), toX: Math.max(drag.x, x) });
      else show(moved(drag.view, ((drag.x - x) / width) * lengthOf(drag.view)));
    };
    const up = (event: PointerEvent) => {
      if (drag === undefined) return;
      const { x, width } = place(event);
      const ended = drag;
      drag = undefined;
      setStretch(undefined);
      if (ended.isClick) {
        current.current.onClick(ended.x, ended.y);
        return;
      }
      if (!ended.isStretch) return;
      const at = (px: number) => ended.view.fromMs + (px / width) * lengthOf(ended.view);
      current.current.onView?.(stretched(at(ended.x), at(x)));
    };
    const cancel = () => {
      drag = undefined;
      setStretch(undefined);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    element.addEventListener("pointerdown", down);
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", up);
    element.addEventListener("pointercancel", cancel);
    return () => {
      cancelAnimationFrame(frame);
      element.removeEventListener("wheel", wheel);
      element.removeEventListener("pointerdown", down);
      element.removeEventListener("pointermove", move);
      element.removeEventListener("pointerup", up);
      element.removeEventListener("pointercancel", cancel);
    };
    // Listens to the element, which is there only when it is shown.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [plot, isShown]);
  return stretch;
}
