import { z } from "zod";
import { formatDuration } from "../lib/duration.ts";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { DAY_MS } from "../lib/time.ts";
import { boundParameter, refuseBackwards } from "../model/query.ts";
import type { AlertTotals, Store } from "../store/store.ts";
import { data, endpoint, type Endpoint } from "./endpoint.ts";

const STATS_MS_DEFAULT = 30 * DAY_MS;

const meanSchema = z.string().nullable().describe("45s, 12m, 2h 15m or 3d 4h; null where there is none");
const statsSchema = z
  .object({
    total: z.int(),
    by_status: z.object({ open: z.int(), acknowledged: z.int(), resolved: z.int() }),
    by_severity: z.object({ critical: z.int(), high: z.int(), medium: z.int(), low: z.int(), info: z.int() }),
    mean_time_to_acknowledge: meanSchema,
    mean_time_to_resolve: meanSchema,
  })
  .meta({ id: "AlertStats" });
const STATS_EXAMPLE = {
  total: 42,
  by_status: { open: 5, acknowledged: 7, resolved: 30 },
  by_severity: { critical: 2, high: 10, medium: 20, low: 8, info: 2 },
  mean_time_to_acknowledge: "12m",
  mean_time_to_resolve: "2h 15m",
};

/** How many alerts there were, of which kind, and how soon people were at them. */
export function alertStatsEndpoint({ store, now }: { store: Pick<Store, "alerts">; now: () => number }): Endpoint {
  return endpoint({
    method: "GET",
    path: "/v1/alerts/stats",
    operationId: "getAlertStats",
    tag: "Alerts",
    summary: "Totals and mean times",
    about:
      "Of alerts that were created in the range, by default the last 30 days. Both means run from the creation of each alert. To " +
      "acknowledge it takes until somebody first did: a reopen does not make it unseen, and a second acknowledgement does not make the " +
      "first one later. To resolve it takes until the resolution that stands: an alert that was reopened is not resolved, and counts " +
      "again, up to its new resolution, once it is. Alerts that `retention.alerts_days` has removed do not count.",
    scopes: ["alerts:read"],
    query: z
      .strictObject({
        from: boundParameter.optional().describe("of created_at, inclusive; default: 30 days before to"),
        to: boundParameter.optional().describe("of created_at, exclusive; default: now"),
      })
      .superRefine(refuseBackwards, BESIDE_OTHERS),
    answers: { 200: { about: "the statistics", data: statsSchema, example: STATS_EXAMPLE } },
    handle: async ({ query: { from, to } }) => {
      const fromMs = from ?? (to ?? now()) - STATS_MS_DEFAULT;
      return data(statsView(await store.alerts.totals({ fromMs, toMs: to })));
    },
  });
}

function statsView(totals: AlertTotals): z.infer<typeof statsSchema> {
  const mean = (ms: number | null) => (ms === null ? null : formatDuration(ms));
  return {
    total: totals.total,
    by_status: totals.byStatus,
    by_severity: totals.bySeverity,
    mean_time_to_acknowledge: mean(totals.acknowledgeMs),
    mean_time_to_resolve: mean(totals.resolveMs),
  };
}
