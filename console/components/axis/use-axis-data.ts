import { useQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import {
  axisAlertsQuery,
  axisEventsQuery,
  axisHeatQuery,
  axisTrafficQuery,
  eventCountQuery,
  EVENTS_MAX,
  MARKED_EVENTS_MAX,
} from "../../data/axis.ts";
import type { Alert, Event } from "../../data/client.ts";
import { useMay } from "../../data/session.ts";
import type { Entity } from "../entities/entity.ts";
import type { Heat } from "./heat.ts";
import type { Traffic } from "./traffic.ts";
import { fetchWindow, overlaps, type View } from "./view.ts";

interface AxisDataOptions {
  readonly entities?: readonly Entity[];
  readonly hasTraffic?: boolean;
  /** Asks nothing yet. */
  readonly isWaiting?: boolean;
  /** Asks again that often, while the axis follows the clock. */
  readonly refreshMs?: number | false;
}

export interface AxisData {
  /** Of the window that was asked for, which is wider than the view. */
  readonly events: readonly Event[];
  readonly heat: Heat | undefined;
  readonly isHeat: boolean;
  /** In the view; about, where only counts are known. */
  readonly eventCount: number;
  readonly alerts: readonly Alert[];
  /** All alerts of the window; `alerts` has the worst of them. */
  readonly alertCount: number;
  readonly traffic: Traffic | undefined;
  readonly untilMs: number;
  /** Nothing to show yet. */
  readonly isPending: boolean;
  /** What is shown belongs to another view. */
  readonly isStale: boolean;
  readonly error: Error | null;
  readonly retry: () => void;
}

const NO_ENTITIES: readonly Entity[] = [];
const NO_EVENTS: readonly Event[] = [];
const NO_ALERTS: readonly Alert[] = [];

/** The events of a view, or counts by lane where they are too many, with its alerts and its traffic. */
export function useAxisData(view: View, options: AxisDataOptions = {}): AxisData {
  const { entities = NO_ENTITIES, hasTraffic = true, isWaiting = false, refreshMs = false } = options;
  const mayReadEvents = useMay("events:read") && !isWaiting;
  const mayReadAlerts = useMay("alerts:read") && !isWaiting;
  const { fromMs, toMs } = fetchWindow(view);
  const question = { fromMs, toMs, entities };
  const refetchInterval = refreshMs;

  const count = useQuery({ ...eventCountQuery(question), enabled: mayReadEvents, refetchInterval });
  const isMany = (count.data ?? 0) > EVENTS_MAX;
  const events = useQuery({
    ...axisEventsQuery(question),
    enabled: mayReadEvents && count.data !== undefined && !count.isPlaceholderData && !isMany,
    refetchInterval,
  });
  const inView = useMemo(
    () =>
      (events.data ?? NO_EVENTS).filter(({ timestamp }) =>
        overlaps(view, Date.parse(timestamp), Date.parse(timestamp)),
      ),
    [events.data, view],
  );
  const isHeat = isMany || inView.length > MARKED_EVENTS_MAX;
  const heat = useQuery({ ...axisHeatQuery(question), enabled: mayReadEvents && isHeat, refetchInterval });
  const alerts = useQuery({ ...axisAlertsQuery(question), enabled: mayReadAlerts, refetchInterval });
  const traffic = useQuery({ ...axisTrafficQuery(question), enabled: mayReadEvents && hasTraffic, refetchInterval });

  const shown = isHeat ? heat : events;
  const eventCount = useMemo(() => {
    if (!isHeat) return inView.length;
    if (heat.data === undefined) return count.data ?? 0;
    let sum = 0;
    for (const cells of heat.data.lanes.values()) {
      for (const cell of cells) if (cell.atMs >= view.fromMs && cell.atMs < view.toMs) sum += cell.count;
    }
    return sum;
  }, [isHeat, inView.length, heat.data, count.data, view]);
  const refetchCount = count.refetch;
  const refetchShown = shown.refetch;
  const retry = useCallback(() => {
    void refetchCount();
    void refetchShown();
  }, [refetchCount, refetchShown]);
  const data: AxisData = {
    events: isHeat ? NO_EVENTS : (events.data ?? NO_EVENTS),
    heat: isHeat ? heat.data : undefined,
    isHeat,
    eventCount,
    alerts: alerts.data?.alerts ?? NO_ALERTS,
    alertCount: alerts.data?.total ?? 0,
    traffic: hasTraffic ? traffic.data : undefined,
    untilMs: Math.min(toMs, count.dataUpdatedAt || toMs),
    isPending: shown.data === undefined,
    isStale: shown.isPlaceholderData || count.isPlaceholderData,
    error: count.error ?? shown.error,
    retry,
  };
  // The same object while nothing in it has changed: who shows it need not render at each frame of a pan.
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  return useMemo(() => data, Object.values(data));
}
