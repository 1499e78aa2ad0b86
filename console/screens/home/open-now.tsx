import { useQuery } from "@tanstack/react-query";
import { Panel } from "../../components/ui/heading.tsx";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { SEVERITY_TEXT, SeverityBars } from "../../components/ui/severity.tsx";
import { Failure, Skeleton } from "../../components/ui/states.tsx";
import { openAlertsQuery } from "../../data/home.ts";
import { exact, short } from "../../text/numbers.ts";

const REFRESH_MS = 30_000;

export function OpenNow() {
  const open = useQuery({ ...openAlertsQuery, refetchInterval: REFRESH_MS });
  return (
    <Panel className="min-h-28">
      <h2 className="text-xs font-semibold text-ink2">Open now</h2>
      {open.error !== null && open.data === undefined ? (
        <Failure error={open.error} onRetry={() => void open.refetch()} />
      ) : open.data === undefined ? (
        <Skeleton className="mt-2 h-14 max-sm:h-[110px]" />
      ) : (
        <div className="mt-2 flex min-h-14 flex-wrap content-start items-end gap-x-8 gap-y-3 max-sm:min-h-[110px]">
          <ScreenLink to="/alerts" search={{ view: "all" }} className="rounded-md hover:underline">
            <span className="text-[34px] leading-none font-semibold tracking-tight">{short(open.data.total)}</span>
            <span className="ml-2 text-sm text-ink3">{open.data.total === 1 ? "alert" : "alerts"}</span>
          </ScreenLink>
          <ul className="flex flex-wrap gap-x-6 gap-y-2 max-sm:grid max-sm:w-full max-sm:grid-cols-2">
            {open.data.bySeverity
              .filter(({ severity, count }) => count > 0 || severity !== "info")
              .map(({ severity, count }) => (
                <li key={severity}>
                  <ScreenLink
                    to="/alerts"
                    search={{ view: "all", severity }}
                    className="flex items-center gap-2 rounded-md hover:underline"
                  >
                    <SeverityBars severity={severity} size={15} />
                    <span className={`text-xl font-semibold ${SEVERITY_TEXT[severity]}`} title={exact(count)}>
                      {short(count)}
                    </span>
                    <span className="text-xs text-ink3">{severity}</span>
                  </ScreenLink>
                </li>
              ))}
          </ul>
        </div>
      )}
    </Panel>
  );
}
