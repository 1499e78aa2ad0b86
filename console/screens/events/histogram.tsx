import { useRef } from "react";
import { useSearch } from "@tanstack/react-router";
import { SeverityHistogram } from "../../components/charts/severity-histogram.tsx";
import { absoluteRange, readRange, type RangeSearch } from "../../components/time/range.ts";
import { useSetRange } from "../../components/time/use-range.ts";
import { Button } from "../../components/ui/button.tsx";
import { Skeleton } from "../../components/ui/states.tsx";
import type { EventCounts } from "../../data/events.ts";
import type { HistogramStep } from "./histogram-step.ts";

interface HistogramProps {
  readonly counts: EventCounts | undefined;
  readonly error: Error | null;
  readonly isDimmed: boolean;
  readonly fromMs: number;
  readonly toMs: number;
  readonly step: HistogramStep;
  readonly onRetry: () => void;
}

const HEIGHT = 76;

/** Events over time by severity. */
export function Histogram({ counts, error, isDimmed, fromMs, toMs, step, onRetry }: HistogramProps) {
  const setRange = useSetRange();
  const search: Record<string, unknown> = useSearch({ strict: false });
  const before = useRef<RangeSearch[]>([]);
  if (error !== null && counts === undefined) {
    return (
      // The list says why.
      <div className="flex h-[76px] items-center justify-center gap-3 text-xs text-ink3">
        The counts could not be loaded.
        <Button look="quiet" icon="refresh-cw" onClick={onRetry}>
          Try again
        </Button>
      </div>
    );
  }
  if (counts === undefined) return <Skeleton className="h-[76px]" />;
  return (
    <div aria-busy={isDimmed} className={isDimmed ? "opacity-60" : ""}>
      <SeverityHistogram
        of="event"
        buckets={counts.buckets}
        stepMs={step.ms}
        fromMs={fromMs}
        toMs={toMs}
        height={HEIGHT}
        onZoom={(zoomFromMs, zoomToMs) => {
          before.current.push(readRange(search));
          setRange(absoluteRange(Math.round(zoomFromMs), Math.round(zoomToMs)));
        }}
        onUnzoom={() => setRange(before.current.pop() ?? {})}
      />
    </div>
  );
}
