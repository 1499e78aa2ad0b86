import { useMemo } from "react";
import type { AlertDetail } from "../../data/client.ts";
import { Failure } from "../ui/states.tsx";
import { Axis } from "./axis.tsx";
import { echoesOf } from "./echoes.ts";
import { laneOf } from "./lanes.ts";
import { threadOf } from "./thread.ts";
import { useAxisData } from "./use-axis-data.ts";
import { bandOf, viewAround } from "./view.ts";
import { isWorthReading } from "./worth-reading.ts";

/** What was around an alert: the small axis of its lanes and of what happened near it. */
export function AlertAxis({ alert }: { alert: AlertDetail }) {
  const view = useMemo(() => viewAround(alert), [alert]);
  const data = useAxisData(view, { hasTraffic: false });
  const thread = useMemo(() => threadOf(alert), [alert]);
  const echoes = useMemo(() => echoesOf(thread, data.events), [thread, data.events]);
  const band = useMemo(() => bandOf(alert), [alert]);
  const only = useMemo(() => {
    const near = data.events.filter((event) => echoes.has(event.id) || isWorthReading(event));
    return new Set([...alert.related_events, ...near].map(laneOf));
  }, [alert.related_events, data.events, echoes]);
  if (data.error !== null) return <Failure error={data.error} onRetry={data.retry} />;
  return (
    <div className={`min-h-48 ${data.isStale ? "opacity-60" : ""}`}>
      <Axis
        mini
        view={view}
        events={data.events}
        alerts={data.alerts}
        thread={thread}
        threadSeverity={alert.severity}
        echoes={echoes}
        band={band}
        chosen={alert.id}
        only={only}
        heat={data.heat}
        untilMs={data.untilMs}
      />
    </div>
  );
}
