import { alertExportView } from "../model/alert.ts";
import { EXPORTED_ALERTS_MAX } from "../model/alert-export.ts";
import type { AlertFilter, AlertStore } from "../store/ports/alert-store.ts";
import { QueryRefused } from "../store/ports/store-errors.ts";

/** Alerts that are read together. */
const ALERTS_CHUNK = 200;

/** The matching alerts as JSON texts, newest first. Those that are removed meanwhile are left out. */
export async function* alertRows(
  store: Pick<AlertStore, "ids" | "getMany">,
  filter: AlertFilter,
  context: { readonly client: string; readonly signal: AbortSignal },
): AsyncGenerator<readonly string[]> {
  const { total, ids } = await store.ids(filter, EXPORTED_ALERTS_MAX, context);
  if (total > EXPORTED_ALERTS_MAX) throw tooManyAlerts(total);
  for (let at = 0; at < ids.length; at += ALERTS_CHUNK) {
    const alerts = await store.getMany(ids.slice(at, at + ALERTS_CHUNK));
    context.signal.throwIfAborted();
    yield alerts.flatMap((alert) => (alert ? [JSON.stringify(alertExportView(alert))] : []));
  }
}

export function tooManyAlerts(total: number): QueryRefused {
  const [found, max] = [total, EXPORTED_ALERTS_MAX].map((count) => count.toLocaleString("en"));
  return new QueryRefused("query", `${found} alerts match; an export has at most ${max}: narrow the filters`);
}
