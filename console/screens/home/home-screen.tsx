import { useMemo } from "react";
import { useRange } from "../../components/time/use-range.ts";
import { Icon } from "../../components/ui/icons.tsx";
import { Panel } from "../../components/ui/heading.tsx";
import { useMay } from "../../data/session.ts";
import { AlertTrend } from "./alert-trend.tsx";
import { HandlingTimes } from "./handling-times.tsx";
import { NoisyRules } from "./noisy-rules.tsx";
import { OpenNow } from "./open-now.tsx";
import { SourcesHealth } from "./sources-health.tsx";
import { TrafficNow } from "./traffic-now.tsx";
import { Untouched } from "./untouched.tsx";

/** The state of the site at a glance; each number leads to the list behind it. */
export function HomeScreen() {
  const range = useRange();
  const { fromMs, toMs } = range;
  const span = useMemo(
    () => ({ from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }),
    [fromMs, toMs],
  );
  const mayReadEvents = useMay("events:read");
  return (
    <main className="h-full overflow-y-auto p-4">
      <div className="mx-auto grid max-w-[1500px] grid-cols-2 gap-4 max-lg:grid-cols-1">
        <div className="col-span-full flex items-center gap-3">
          <h1 className="text-lg font-semibold tracking-tight">Home</h1>
          <span className="text-sm text-ink3">{range.label}</span>
          {mayReadEvents && (
            <a
              href={`/v1/reports/shift?format=html&from=${span.from}&to=${span.to}`}
              target="_blank"
              rel="noreferrer"
              className="ml-auto inline-flex h-8 items-center gap-2 rounded-md border border-line2/70 bg-raised px-3 text-sm font-medium hover:bg-hover"
            >
              <Icon name="printer" size={14} />
              Shift report
            </a>
          )}
        </div>
        <div className="col-span-full grid grid-cols-[2fr_1fr_1fr] gap-4 max-lg:grid-cols-1">
          <OpenNow />
          <HandlingTimes span={span} />
        </div>
        <Panel className="col-span-full">
          <AlertTrend span={span} fromMs={fromMs} toMs={toMs} />
        </Panel>
        <Panel>
          <Untouched />
        </Panel>
        <Panel>
          <NoisyRules span={span} />
        </Panel>
        {mayReadEvents && (
          <>
            <Panel>
              <SourcesHealth />
            </Panel>
            <Panel>
              <TrafficNow fromMs={fromMs} toMs={toMs} />
            </Panel>
          </>
        )}
      </div>
    </main>
  );
}
