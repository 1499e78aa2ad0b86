import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { lengthOf, overlaps, type View } from "../../components/axis/view.ts";
import { absoluteRange, type RangeSearch } from "../../components/time/range.ts";
import { useRange } from "../../components/time/use-range.ts";
import { durationText } from "./address.ts";

const ADDRESS_AFTER_MS = 300;
const TICK_MS_MIN = 1000;
const TICKS_PER_VIEW = 1000;

export interface AxisViewState {
  readonly view: View;
  /** The view ends now, and moves with the clock. */
  readonly isFollowing: boolean;
  readonly setView: (view: View) => void;
  /** Writes to the address at once, as a step that the browser can go back from. */
  readonly go: (search: Record<string, string | undefined>, view?: View, replace?: boolean) => void;
  readonly follow: (lengthMs: number) => void;
}

/** The view is the range of the address. While a hand moves it, it is ahead of the address, which follows when the hand rests. */
export function useAxisView(): AxisViewState {
  const navigate = useNavigate();
  const search = useSearch({ from: "/axis" });
  const range = useRange();
  const address = `${search.range ?? ""} ${search.from ?? ""} ${search.to ?? ""}`;
  const [ahead, setAhead] = useState<{ view: View; of: string }>();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);

  const isAhead = ahead !== undefined && ahead.of === address;
  const isFollowing = !isAhead && range.isRelative;
  const clockView = useClock(isFollowing, range.toMs - range.fromMs);
  const { fromMs, toMs } = isAhead ? ahead.view : isFollowing ? clockView : range;
  const view = useMemo(() => ({ fromMs, toMs }), [fromMs, toMs]);

  const write = useCallback(
    (parts: Record<string, string | undefined>, replace: boolean) =>
      void navigate({
        to: "/axis",
        replace,
        search: ((previous: Record<string, unknown>) => ({ ...previous, ...parts })) as never,
      }),
    [navigate],
  );
  const setView = useCallback(
    (next: View) => {
      setAhead({ view: next, of: address });
      clearTimeout(timer.current);
      timer.current = setTimeout(
        () => write(rangeParts(absoluteRange(next.fromMs, next.toMs)), true),
        ADDRESS_AFTER_MS,
      );
    },
    [address, write],
  );
  const unwritten = useRef<View>(undefined);
  useEffect(() => {
    unwritten.current = isAhead ? view : undefined;
  });
  const go = useCallback(
    (parts: Record<string, string | undefined>, next?: View, replace = false) => {
      clearTimeout(timer.current);
      const own = next ?? unwritten.current;
      write({ ...parts, ...(own && rangeParts(absoluteRange(own.fromMs, own.toMs))) }, replace);
    },
    [write],
  );
  const follow = useCallback(
    (lengthMs: number) => {
      clearTimeout(timer.current);
      setAhead(undefined);
      write({ range: durationText(lengthMs), from: undefined, to: undefined }, true);
    },
    [write],
  );
  return { view, isFollowing, setView, go, follow };
}

const rangeParts = ({ range, from, to }: RangeSearch) => ({ range, from, to });

/** The last `lengthMs`, moving on by about a pixel at a time. */
function useClock(isOn: boolean, lengthMs: number): View {
  const [nowMs, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isOn) return;
    const tick = () => setNow(Date.now());
    tick();
    const interval = setInterval(tick, Math.max(TICK_MS_MIN, lengthMs / TICKS_PER_VIEW));
    return () => clearInterval(interval);
  }, [isOn, lengthMs]);
  return useMemo(() => ({ fromMs: nowMs - lengthMs, toMs: nowMs }), [nowMs, lengthMs]);
}

/** The view when it has rested: what questions and lists go by. */
export function useSettled(view: View, restMs: number): View {
  const [settled, setSettled] = useState(view);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(view), restMs);
    return () => clearTimeout(timer);
  }, [view, restMs]);
  // What is elsewhere was not reached by hand: there is nothing to wait for.
  const current = isJump(settled, view) ? view : settled;
  if (current !== settled) setSettled(current);
  return current;
}

const ZOOM_MAX = 3;

function isJump(from: View, to: View): boolean {
  const zoom = lengthOf(from) / lengthOf(to);
  return zoom > ZOOM_MAX || zoom < 1 / ZOOM_MAX || !overlaps(from, to.fromMs, to.toMs);
}
