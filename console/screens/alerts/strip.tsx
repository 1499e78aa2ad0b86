import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { SeverityHistogram } from "../../components/charts/severity-histogram.tsx";
import { absoluteRange, readRange, type RangeSearch } from "../../components/time/range.ts";
import { useSetRange } from "../../components/time/use-range.ts";
import { Skeleton } from "../../components/ui/states.tsx";
import { alertHistogramQuery } from "../../data/alert-search.ts";
import type { AlertFilters } from "../../data/alerts.ts";
import { stepFor } from "./steps.ts";

interface StripProps {
  readonly filters: AlertFilters;
  readonly range: { readonly fromMs: number; readonly toMs: number };
  readonly search: Readonly<Record<string, string | undefined>>;
}

const BARS_MAX = 84;
const HEIGHT = 64;

/** Alerts by time and severity. Drag to cut the time; double click to undo that. */
export function Strip({ filters, range, search }: StripProps) {
  const setRange = useSetRange();
  const before = useRef<RangeSearch[]>([]);
  const stepMs = stepFor(range.toMs - range.fromMs, BARS_MAX);
  const isCounted = filters.event_id === undefined;
  const { data, isPlaceholderData, isPending } = useQuery({
    ...alertHistogramQuery(filters, stepMs),
    enabled: isCounted,
    placeholderData: keepPreviousData,
  });
  if (isCounted && isPending) return <Skeleton className="mx-4 h-16 shrink-0" />;
  return (
    <div
      aria-busy={isPlaceholderData}
      className={`px-4 ${isPlaceholderData ? "opacity-60" : ""}`}
      style={{ height: HEIGHT }}
    >
      <SeverityHistogram
        of="alert"
        buckets={data ?? []}
        stepMs={stepMs}
        fromMs={range.fromMs}
        toMs={range.toMs}
        height={HEIGHT}
        onZoom={(fromMs, toMs) => {
          before.current.push(readRange(search));
          setRange(absoluteRange(fromMs, toMs));
        }}
        onUnzoom={() => {
          const last = before.current.pop();
          if (last !== undefined) setRange(last);
        }}
      />
    </div>
  );
}
