import { useQuery } from "@tanstack/react-query";
import { age } from "../../components/time/format.ts";
import { useNow } from "../../components/time/use-range.ts";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { SeverityBars } from "../../components/ui/severity.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { openAlertsQuery } from "../../data/home.ts";
import { exact } from "../../text/numbers.ts";

export function Untouched() {
  const { data, error, refetch } = useQuery(openAlertsQuery);
  const nowMs = useNow();
  return (
    <>
      <SectionHeading
        right={
          data !== undefined &&
          data.untouchedTotal > 0 && (
            <ScreenLink
              to="/alerts"
              search={{ view: "all", status: "open" }}
              className="text-xs font-medium text-accent hover:underline"
            >
              All {exact(data.untouchedTotal)}
            </ScreenLink>
          )
        }
      >
        Nobody has looked at these, oldest first
      </SectionHeading>
      <div className="min-h-56">
        {error !== null && data === undefined ? (
          <Failure error={error} onRetry={() => void refetch()} />
        ) : data === undefined ? (
          <Skeleton className="h-56" />
        ) : data.untouched.length === 0 ? (
          <Empty title="Every alert has been looked at">New ones appear here and in the queue.</Empty>
        ) : (
          <ul>
            {data.untouched.map((alert) => (
              <li key={alert.id} className="border-b border-line last:border-0">
                <ScreenLink
                  to="/alerts"
                  search={{ view: "all", alert: alert.id }}
                  className="flex items-center gap-3 rounded-md px-1 py-2.5 hover:bg-hover/60"
                >
                  <SeverityBars severity={alert.severity} />
                  <span className="min-w-0 flex-1 truncate text-sm">{alert.title}</span>
                  <span className="text-xs whitespace-nowrap text-ink3">{age(alert.created_at, nowMs)}</span>
                </ScreenLink>
              </li>
            ))}
          </ul>
        )}
      </div>
    </>
  );
}
