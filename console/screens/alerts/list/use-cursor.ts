import { useEffect, useRef, useState, type RefObject } from "react";
import { indexOf } from "./alert-list.tsx";
import type { Place } from "./layout.ts";
import type { AlertList } from "./use-alert-list.ts";

// The row that keys act on. It moves at once; what it shows follows when it rests.

const REST_MS = 150;
/** Rows that are searched for the alert of the address. */
const SEARCHED_MAX = 300;

export interface Cursor {
  readonly place: Place | undefined;
  readonly index: number;
  /** It has moved, and what is shown does not follow it yet, or never will. */
  readonly isAhead: boolean;
  moveTo(index: number): void;
  /** Without waiting for the rest: a click, or Enter. */
  jumpTo(index: number): void;
}

interface CursorOptions {
  readonly list: AlertList;
  /** Another list starts at its first row. */
  readonly listKey: string;
  readonly alertId: string | undefined;
  readonly rowHeight: number;
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly onRest: (index: number) => void;
}

interface CursorState {
  readonly key: string;
  readonly place: Place | undefined;
  /** The alert of the address when it moved, null for none; undefined until it moves. */
  readonly leftAlert: string | null | undefined;
}

export function useCursor({ list, listKey, alertId, rowHeight, scroller, onRest }: CursorOptions): Cursor {
  const [state, setState] = useState<CursorState>({ key: listKey, place: undefined, leftAlert: undefined });
  const place = state.key === listKey ? state.place : undefined;
  const index = place === undefined ? -1 : indexOf(list.layout, place);
  const rest = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef(onRest);
  useEffect(() => {
    latest.current = onRest;
  });
  useEffect(() => () => clearTimeout(rest.current), []);

  const { layout, isPending } = list;
  const set = (to: number, leftAlert: string | null | undefined = alertId ?? null) => {
    const next = layout.at(to);
    if (next !== undefined) setState({ key: listKey, place: next, leftAlert });
  };

  // The first time, it stands on the alert of the address, or on the first row.
  if (place === undefined && !isPending && layout.count > 0) {
    const start = alertId === undefined ? 0 : findAlert(list, alertId);
    if (start >= 0) set(start, undefined);
  }

  const reveal = (to: number) => {
    const box = scroller.current;
    if (box === null) return;
    const top = to * rowHeight;
    if (top < box.scrollTop) box.scrollTo(0, top);
    else if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTo(0, top + rowHeight - box.clientHeight);
  };
  const moveTo = (to: number) => {
    const next = Math.max(0, Math.min(layout.count - 1, to));
    if (layout.count === 0) return;
    set(next);
    reveal(next);
    clearTimeout(rest.current);
    rest.current = setTimeout(() => latest.current(next), REST_MS);
  };
  return {
    place,
    index,
    isAhead: state.key === listKey && state.leftAlert === (alertId ?? null),
    moveTo,
    jumpTo: (to) => {
      clearTimeout(rest.current);
      set(to);
      reveal(to);
    },
  };
}

function findAlert(list: AlertList, id: string): number {
  for (let index = 0; index < Math.min(list.layout.count, SEARCHED_MAX); index++) {
    const row = list.rowAt(index);
    if (row?.kind === "alert" && row.alert.id === id) return index;
  }
  return -1;
}
