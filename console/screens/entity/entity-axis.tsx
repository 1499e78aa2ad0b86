import { useMemo } from "react";
import { Axis } from "../../components/axis/axis.tsx";
import { useAxisData } from "../../components/axis/use-axis-data.ts";
import type { Entity } from "../../components/entities/entity.ts";
import { useNavigate } from "@tanstack/react-router";
import { Panel, SectionHeading } from "../../components/ui/heading.tsx";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";

interface EntityAxisProps {
  readonly entity: Entity;
  readonly fromMs: number;
  readonly toMs: number;
}

/** What it did, on one time axis. */
export function EntityAxis({ entity, fromMs, toMs }: EntityAxisProps) {
  const navigate = useNavigate();
  const view = useMemo(() => ({ fromMs, toMs }), [fromMs, toMs]);
  const entities = useMemo(() => [entity], [entity]);
  const data = useAxisData(view, { entities, hasTraffic: false });
  const name = `${entity.kind}:${entity.value}`;
  return (
    <Panel className="col-span-full min-w-0">
      <SectionHeading
        right={
          <ScreenLink
            to="/axis"
            search={{ entity: name }}
            className="text-xs font-medium whitespace-nowrap text-accent hover:underline"
          >
            Open on the time axis
          </ScreenLink>
        }
      >
        On one time axis
      </SectionHeading>
      <div
        // Lanes may be wider than a phone; keys must reach them.
        tabIndex={0}
        role="region"
        aria-label="Lanes"
        className={`h-60 overflow-auto ${data.isStale ? "opacity-60" : ""}`}
      >
        {data.error !== null ? (
          <Failure error={data.error} onRetry={data.retry} />
        ) : data.isPending ? (
          <Skeleton className="h-full" />
        ) : data.eventCount === 0 && data.alerts.length === 0 ? (
          <Empty title="Nothing in this time" />
        ) : (
          <div className="min-w-[300px]">
            <Axis
              view={view}
              events={data.events}
              alerts={data.alerts}
              heat={data.heat}
              untilMs={data.untilMs}
              onAlert={(alert) => void navigate({ to: "/alerts", search: { view: "all", alert } as never })}
            />
          </div>
        )}
      </div>
    </Panel>
  );
}
