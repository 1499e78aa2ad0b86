import type { AlertFilters, AlertSort } from "../../../data/alerts.ts";
import type { Alert } from "../../../data/client.ts";
import { isBefore, matches } from "../matches.ts";

// New alerts wait until the reader lets them in. This decides which are new.

export const WAITING_MAX = 500;

export interface Waiting {
  readonly alerts: readonly Alert[];
  /** More came than are kept, or some were missed: the list has to be asked for again. */
  readonly isOverfull: boolean;
}

export const NONE_WAITING: Waiting = { alerts: [], isOverfull: false };

export interface Seen {
  readonly filters: AlertFilters;
  readonly sort: AlertSort;
  readonly readAtMs: number;
  /** The last row of a list that is in memory as a whole so far; undefined where parts of it are not. */
  readonly lastRow: Alert | undefined;
}

/** Whether an alert that is not among the known rows is new to the list, rather than in a part that is not in memory. */
function isNew(alert: Alert, { filters, sort, readAtMs, lastRow }: Seen): boolean {
  if (!matches(alert, filters)) return false;
  return Date.parse(alert.created_at) > readAtMs || (lastRow !== undefined && isBefore(alert, lastRow, sort));
}

/** After a change of an alert that is not in the list. One that waits and no longer matches leaves. */
export function withArrival(waiting: Waiting, alert: Alert, seen: Seen): Waiting {
  const others = waiting.alerts.filter(({ id }) => id !== alert.id);
  const isKnown = others.length < waiting.alerts.length;
  const belongs = isKnown ? matches(alert, seen.filters) : isNew(alert, seen);
  if (!belongs) return isKnown ? { ...waiting, alerts: others } : waiting;
  if (others.length >= WAITING_MAX) return { ...waiting, isOverfull: true };
  return { ...waiting, alerts: [alert, ...others] };
}
