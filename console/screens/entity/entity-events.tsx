import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { SeverityHistogram } from "../../components/charts/severity-histogram.tsx";
import type { Entity } from "../../components/entities/entity.ts";
import { absoluteRange } from "../../components/time/range.ts";
import { useSetRange } from "../../components/time/use-range.ts";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import type { EntityDetail } from "../../data/entities.ts";
import { ENTITY_FIELD, entityValue, type Condition } from "../../data/event-conditions.ts";
import { eventCountsQuery } from "../../data/events.ts";
import { exact } from "../../text/numbers.ts";
import { entityFilter } from "./known.ts";
import { Part } from "./part.tsx";

interface EntityEventsProps {
  readonly entity: Entity;
  readonly detail: EntityDetail | undefined;
  readonly fromMs: number;
  readonly toMs: number;
}

const HEIGHT = 110;
const TYPES_MAX = 8;

/** How much happened, when, and of which types. */
export function EntityEvents({ entity, detail, fromMs, toMs }: EntityEventsProps) {
  const setRange = useSetRange();
  const conditions = useMemo<Condition[]>(
    () => [{ field: ENTITY_FIELD, operator: "=", value: entityValue(entity) }],
    [entity],
  );
  const seconds = detail?.interval_secs ?? 3600;
  const counts = useQuery({
    ...eventCountsQuery({ fromMs, toMs, conditions, words: "" }, `${seconds}s`),
    enabled: detail !== undefined,
  });
  const events = detail?.events;
  const filter = entityFilter(entity);
  const most = Math.max(1, ...(events?.by_type ?? []).map((one) => one.events));
  return (
    <Part
      title="Events over time"
      part="events"
      detail={detail}
      minHeight="min-h-56"
      right={
        events != null &&
        events.total > 0 && (
          <ScreenLink to="/events" search={{ filter }} className="text-xs font-medium text-accent hover:underline">
            All {exact(events.total)}
          </ScreenLink>
        )
      }
    >
      {events == null || events.total === 0 ? (
        <Empty title="No event names it in this time">A longer time may show more.</Empty>
      ) : (
        <>
          <div
            aria-busy={counts.isPlaceholderData}
            className={`h-[110px] ${counts.isPlaceholderData ? "opacity-60" : ""}`}
          >
            {counts.error !== null && counts.data === undefined ? (
              <Failure error={counts.error} onRetry={() => void counts.refetch()} />
            ) : counts.data === undefined ? (
              <Skeleton className="h-full" />
            ) : (
              <SeverityHistogram
                of="event"
                buckets={counts.data.buckets}
                stepMs={seconds * 1000}
                fromMs={fromMs}
                toMs={toMs}
                height={HEIGHT}
                onZoom={(zoomFromMs, zoomToMs) => setRange(absoluteRange(Math.round(zoomFromMs), Math.round(zoomToMs)))}
                onUnzoom={() => setRange({})}
              />
            )}
          </div>
          <ul className="mt-3 grid gap-x-6 sm:grid-cols-2">
            {events.by_type.slice(0, TYPES_MAX).map(({ type, events: number }) => (
              <li key={type}>
                <ScreenLink
                  to="/events"
                  search={{ type, filter }}
                  className="relative isolate flex h-7 items-center gap-2 rounded px-2 text-xs text-ink2 hover:bg-hover hover:text-ink"
                >
                  <span
                    aria-hidden
                    className="absolute inset-y-0.5 left-0 -z-10 rounded-sm bg-accent/10"
                    style={{ width: `${(number / most) * 100}%` }}
                  />
                  <span className="min-w-0 flex-1 truncate">{type}</span>
                  <span className="text-ink3">{exact(number)}</span>
                </ScreenLink>
              </li>
            ))}
          </ul>
        </>
      )}
    </Part>
  );
}
