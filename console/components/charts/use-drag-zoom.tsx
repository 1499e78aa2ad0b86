import { useState, type PointerEvent } from "react";

/** A shorter drag is a click. */
const DRAG_PIXELS_MIN = 4;

interface DragZoomOptions {
  readonly timeAt: (pixels: number) => number;
  /** Undefined: the chart cannot be zoomed. */
  readonly onZoom: ((fromMs: number, toMs: number) => void) | undefined;
  readonly onUnzoom: (() => void) | undefined;
}

/** Zooms a chart by a drag over it, and undoes it by a double click. */
export function useDragZoom({ timeAt, onZoom, onUnzoom }: DragZoomOptions) {
  const [drag, setDrag] = useState<{ start: number; end: number }>();
  const [left, right] = drag ? [Math.min(drag.start, drag.end), Math.max(drag.start, drag.end)] : [0, 0];
  return {
    isDragging: drag !== undefined,
    /** For the element of the chart. */
    handlers: {
      onPointerDown: ({ nativeEvent, currentTarget, pointerId }: PointerEvent<SVGSVGElement>) => {
        if (onZoom === undefined) return;
        currentTarget.setPointerCapture(pointerId);
        setDrag({ start: nativeEvent.offsetX, end: nativeEvent.offsetX });
      },
      onPointerMove: ({ nativeEvent }: PointerEvent<SVGSVGElement>) => {
        if (drag) setDrag({ ...drag, end: nativeEvent.offsetX });
      },
      onPointerUp: () => {
        if (right - left >= DRAG_PIXELS_MIN) onZoom?.(timeAt(left), timeAt(right));
        setDrag(undefined);
      },
      onPointerCancel: () => setDrag(undefined),
      onDoubleClick: onUnzoom,
    },
    /** The range that is being dragged over. */
    range: (top: number, height: number) =>
      drag !== undefined && (
        <rect x={left} width={right - left} y={top} height={height} fill="var(--accent)" opacity={0.25} />
      ),
  };
}
