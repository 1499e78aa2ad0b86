import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { readRange, resolveRange, type RangeSearch, type TimeRange } from "./range.ts";
import { useZone } from "./zone.ts";

const MINUTE_MS = 60_000;

/** The time to the minute. Lists that follow the clock ask again each minute, not at each render. */
export function useNow(): number {
  const [nowMs, setNow] = useState(minute);
  useEffect(() => {
    const timer = setInterval(() => setNow(minute()), MINUTE_MS / 4);
    return () => clearInterval(timer);
  }, []);
  return nowMs;
}

const minute = () => Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS;

/** The range in the address, which all screens share. */
export function useRange(): TimeRange {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const nowMs = useNow();
  const zone = useZone();
  const { range, from, to } = readRange(search);
  // The zone is in the label.
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  return useMemo(() => resolveRange({ range, from, to }, nowMs), [range, from, to, nowMs, zone]);
}

export function useSetRange(): (range: RangeSearch) => void {
  const navigate = useNavigate();
  return (range) =>
    void navigate({
      to: ".",
      search: ((previous: Record<string, unknown>) => ({
        ...previous,
        range: undefined,
        from: undefined,
        to: undefined,
        ...range,
      })) as never,
    });
}
