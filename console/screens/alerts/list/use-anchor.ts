import { useEffect, useLayoutEffect, useRef, type RefObject } from "react";
import { indexOf } from "./alert-list.tsx";
import type { Layout, Place } from "./layout.ts";

/**
 * Keeps the cursor's row, or else the first in sight, at its pixel when rows come or go above it. Returns the element below
 * the rows: where too few rows lie below to scroll as far as that takes, it makes room.
 */
export function useAnchor(
  layout: Layout,
  cursor: Place | undefined,
  height: number,
  scroller: RefObject<HTMLDivElement | null>,
  /** The pixel at the top, as of the last scroll event. */
  scrolled: number,
): RefObject<HTMLDivElement | null> {
  const room = useRef<HTMLDivElement>(null);
  const before = useRef<{ layout: Layout; height: number }>(undefined);
  useLayoutEffect(() => {
    const box = scroller.current;
    const previous = before.current;
    before.current = { layout, height };
    if (box === null || previous === undefined || previous.layout.count === 0 || previous.height !== height) return;
    const cursorIndex = cursor === undefined ? -1 : indexOf(previous.layout, cursor);
    const stays = (at: number) => {
      const place = previous.layout.at(at);
      return place === undefined || indexOf(layout, place) === at;
    };
    // Most renders move no row. Asking the browser where it is would make it lay the page out in the middle of each of them.
    if (stays(cursorIndex) && stays(Math.ceil(scrolled / height))) return;
    const first = Math.ceil(box.scrollTop / height);
    const last = Math.floor((box.scrollTop + box.clientHeight) / height) - 1;
    const anchorIndex = cursorIndex >= first && cursorIndex <= last ? cursorIndex : first;
    const place = previous.layout.at(anchorIndex);
    const index = place === undefined ? -1 : indexOf(layout, place);
    if (index < 0 || index === anchorIndex) return;
    const top = box.scrollTop + (index - anchorIndex) * height;
    setRoom(room.current!, top + box.clientHeight - heightOfRows(box, room.current!));
    box.scrollTo(0, top);
  });
  useEffect(() => {
    const box = scroller.current;
    if (box === null) return;
    // On the way up the room goes again, as far as it is out of sight.
    const takeBack = () => {
      const needed = box.scrollTop + box.clientHeight - heightOfRows(box, room.current!);
      if (needed < room.current!.offsetHeight) setRoom(room.current!, needed);
    };
    box.addEventListener("scroll", takeBack, { passive: true });
    return () => box.removeEventListener("scroll", takeBack);
  }, [scroller]);
  return room;
}

/** The rows and what follows them, without the room. */
const heightOfRows = (box: HTMLElement, room: HTMLElement) => room.offsetTop - firstTop(box);
const firstTop = (box: HTMLElement) => (box.firstElementChild as HTMLElement).offsetTop;

function setRoom(room: HTMLElement, pixels: number): void {
  room.style.height = `${Math.max(0, Math.ceil(pixels))}px`;
}
