import { z } from "zod";
import { formatDuration } from "../lib/duration.ts";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { DAY_MS } from "../lib/time.ts";
import { boundParameter, refuseBackwards } from "../model/time-bound.ts";
import type { AlertTotals } from "../store/ports/alert-store.ts";
import type { Store } from "../store/ports/store.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { data } from "./response.ts";

const STATS_MS_DEFAULT = 30 * DAY_MS;

const meanSchema = z.string().nullable().describe("such as 45s, 12m, 2h 15m or 3d 4h; null if no alert counts");
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

export function alertStatsEndpoint({ store, now }: { store: Pick<Store, "alerts">; now: () => number }): Endpoint {
  return endpoint({
    method: "GET",
    path: "/v1/alerts/stats",
    operationId: "getAlertStats",
    tag: "Alerts",
    summary: "Get alert totals and mean times",
    description:
      "Covers alerts created in the range, by default the last 30 days. Both means start at the creation of each alert. The mean " +
      "time to acknowledge ends at the first acknowledgement; reopening or acknowledging again does not change it. The mean time to " +
      "resolve ends at the current resolution: a reopened alert counts again once it is resolved. Alerts removed by " +
      "`retention.alerts_days` do not count.",
    scopes: ["alerts:read"],
    query: z
      .strictObject({
        from: boundParameter
          .optional()
          .describe("earliest `created_at`, inclusive; also relative, such as `now-7d`; default: 30 days before `to`"),
        to: boundParameter.optional().describe("latest `created_at`, exclusive; default: now"),
      })
      .superRefine(refuseBackwards, BESIDE_OTHERS),
    responses: { 200: { description: "the statistics", data: statsSchema, example: STATS_EXAMPLE } },
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
