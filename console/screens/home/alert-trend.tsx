import { useQuery } from "@tanstack/react-query";
import { SeverityHistogram } from "../../components/charts/severity-histogram.tsx";
import { absoluteRange } from "../../components/time/range.ts";
import { useSetRange } from "../../components/time/use-range.ts";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { Failure, Skeleton } from "../../components/ui/states.tsx";
import { alertTrendQuery, type TimeSpan } from "../../data/home.ts";

const HEIGHT = 150;

export function AlertTrend({ span, fromMs, toMs }: { span: TimeSpan; fromMs: number; toMs: number }) {
  const trend = useQuery(alertTrendQuery(span));
  const setRange = useSetRange();
  return (
    <>
      <SectionHeading
        right={
          <ScreenLink
            to="/alerts"
            search={{ view: "everything" }}
            className="text-xs font-medium text-accent hover:underline"
          >
            All alerts
          </ScreenLink>
        }
      >
        Alerts over time
      </SectionHeading>
      {trend.error !== null && trend.data === undefined ? (
        <Failure error={trend.error} onRetry={() => void trend.refetch()} />
      ) : trend.data === undefined ? (
        <Skeleton className="h-[150px]" />
      ) : (
        <div aria-busy={trend.isPlaceholderData} className={trend.isPlaceholderData ? "opacity-60" : ""}>
          <SeverityHistogram
            of="alert"
            buckets={trend.data.buckets}
            stepMs={trend.data.stepMs}
            fromMs={fromMs}
            toMs={toMs}
            height={HEIGHT}
            onZoom={(from, to) => setRange(absoluteRange(from, to))}
            onUnzoom={() => setRange({})}
          />
        </div>
      )}
    </>
  );
}
