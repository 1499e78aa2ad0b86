import { useEffect, useRef, useState, type RefObject } from "react";

/** The width that the layout gives an element, for charts that are drawn to the pixel. */
export function useWidth<Element extends HTMLElement>(): [RefObject<Element | null>, number] {
  const box = useRef<Element>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}
