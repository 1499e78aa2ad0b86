import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { AreaChart } from "../../components/charts/area-chart.tsx";
import { EntityLink } from "../../components/entities/entity-link.tsx";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { talkersQuery, trafficQuery } from "../../data/flows.ts";
import { bytes, bytesPerSecond } from "../../text/numbers.ts";

const TALKERS = 3;
const NO_FILTER = {};

export function TrafficNow({ fromMs, toMs }: { fromMs: number; toMs: number }) {
  const range = useMemo(() => ({ from: fromMs, to: toMs }), [fromMs, toMs]);
  const traffic = useQuery(trafficQuery(NO_FILTER, range, undefined));
  const talkers = useQuery(talkersQuery(NO_FILTER, range, "src", TALKERS));
  const seconds = traffic.data?.interval_secs ?? 1;
  const values = (traffic.data?.series[0]?.bytes ?? []).map((value) => value / seconds);
  return (
    <>
      <SectionHeading
        right={
          <ScreenLink to="/flows" className="text-xs font-medium text-accent hover:underline">
            Flows
          </ScreenLink>
        }
      >
        Traffic
      </SectionHeading>
      <div className="min-h-56">
        {traffic.error !== null && traffic.data === undefined ? (
          <Failure error={traffic.error} onRetry={() => void traffic.refetch()} />
        ) : traffic.data === undefined ? (
          <Skeleton className="h-56" />
        ) : values.every((value) => value === 0) ? (
          <Empty title="No flows in this time">
            <ScreenLink to="/sources" search={{ connect: "unifi-flows" }} className="text-accent underline">
              Connect an exporter
            </ScreenLink>
          </Empty>
        ) : (
          <>
            <AreaChart
              label="Traffic over time"
              title="Traffic over time"
              timesMs={traffic.data.timestamps}
              stepMs={seconds * 1000}
              series={[{ name: "traffic", values }]}
              format={bytesPerSecond}
              height={140}
            />
            <ol aria-label="Top talkers" className="mt-2 space-y-1">
              {(talkers.data ?? []).map(({ key, bytes: sent }) => (
                <li key={key} className="flex items-center text-sm">
                  <EntityLink kind="address" value={key} />
                  <ScreenLink to="/flows" search={{ src: key }} className="ml-auto text-ink2 hover:underline">
                    {bytes(sent)}
                  </ScreenLink>
                </li>
              ))}
            </ol>
          </>
        )}
      </div>
    </>
  );
}
