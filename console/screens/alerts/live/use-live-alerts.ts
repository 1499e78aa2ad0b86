import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState, type RefObject } from "react";
import { alertDetailQuery, type AlertPage } from "../../../data/alerts.ts";
import type { Alert, AlertDetail } from "../../../data/client.ts";
import { mayPrefetch } from "../../../data/limits.ts";
import { useAlertStream } from "../../../data/stream.ts";
import { NONE_WAITING, withArrival, type Seen, type Waiting } from "./waiting.ts";

// What the stream brings. Known alerts change in place and are tinted for a second; new ones wait.

const TINT_MS = 1000;
/** Counts and charts are asked for again this long after a change, however many come. */
const RECOUNT_MS = 5000;

const COUNTED = new Set<unknown>(["tallies", "histogram", "groups"]);

/** Puts the alert in the place of its earlier state wherever it is shown. True if it is in a list. */
export function replaceAlert(client: QueryClient, alert: Alert): boolean {
  let isListed = false;
  client.setQueriesData<AlertPage>({ queryKey: ["alerts", "page"] }, (page) => {
    if (page === undefined || !page.alerts.some(({ id }) => id === alert.id)) return page;
    isListed = true;
    return { ...page, alerts: page.alerts.map((each) => (each.id === alert.id ? alert : each)) };
  });
  const { queryKey } = alertDetailQuery(alert.id);
  if (client.getQueryData(queryKey) !== undefined) {
    client.setQueryData<AlertDetail>(queryKey, (detail) => detail && { ...detail, ...alert });
  }
  return isListed;
}

export function recount(client: QueryClient): void {
  void client.invalidateQueries({
    predicate: ({ queryKey }) => queryKey[0] === "alerts" && COUNTED.has(queryKey[1]),
  });
}

export interface LiveAlerts {
  readonly waiting: Waiting;
  readonly tinted: ReadonlySet<string>;
  /** Alerts that were let in, the latest first. */
  readonly fresh: readonly Alert[];
  /** Lets all in that wait. */
  letIn(): void;
  forget(): void;
}

interface State {
  readonly key: string;
  readonly waiting: Waiting;
  readonly fresh: readonly Alert[];
}

/** `listKey` names the list: another starts with nothing that waits. */
export function useLiveAlerts(seen: RefObject<Seen | undefined>, listKey: string): LiveAlerts {
  const client = useQueryClient();
  const [state, setState] = useState<State>({ key: listKey, waiting: NONE_WAITING, fresh: [] });
  const current = state.key === listKey ? state : { key: listKey, waiting: NONE_WAITING, fresh: [] };
  const [tinted, setTinted] = useState<ReadonlySet<string>>(new Set());
  const timers = useRef(new Set<ReturnType<typeof setTimeout>>());
  const recounting = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef(current);
  useEffect(() => {
    latest.current = current;
  });
  useEffect(
    () => () => {
      for (const timer of timers.current) clearTimeout(timer);
      clearTimeout(recounting.current);
      recounting.current = undefined;
    },
    [],
  );

  const update = useCallback((change: (before: State) => State) => {
    setState((before) => change(before.key === latest.current.key ? before : latest.current));
  }, []);
  const tint = useCallback((id: string) => {
    setTinted((ids) => new Set(ids).add(id));
    const timer = setTimeout(() => {
      timers.current.delete(timer);
      setTinted((ids) => new Set([...ids].filter((each) => each !== id)));
    }, TINT_MS);
    timers.current.add(timer);
  }, []);

  const onAlert = useCallback(
    (alert: Alert) => {
      const isFresh = latest.current.fresh.some(({ id }) => id === alert.id);
      const replaced = (alerts: readonly Alert[]) => alerts.map((each) => (each.id === alert.id ? alert : each));
      if (isFresh) update((before) => ({ ...before, fresh: replaced(before.fresh) }));
      const list = seen.current;
      if (replaceAlert(client, alert) || isFresh) tint(alert.id);
      else if (list !== undefined) {
        update((before) => ({ ...before, waiting: withArrival(before.waiting, alert, list) }));
      }
      // The timeline of an open alert has a new line.
      void client.invalidateQueries({ queryKey: alertDetailQuery(alert.id).queryKey });
      recounting.current ??= setTimeout(() => {
        recounting.current = undefined;
        if (mayPrefetch()) recount(client);
      }, RECOUNT_MS);
    },
    [client, tint, update, seen],
  );
  const onGap = useCallback(
    () => update((before) => ({ ...before, waiting: { ...before.waiting, isOverfull: true } })),
    [update],
  );
  useAlertStream(onAlert, onGap);

  return {
    waiting: current.waiting,
    tinted,
    fresh: current.fresh,
    letIn: () => setState({ ...current, fresh: [...current.waiting.alerts, ...current.fresh], waiting: NONE_WAITING }),
    forget: () => setState({ ...current, fresh: [], waiting: NONE_WAITING }),
  };
}
