import { z } from "zod";
import { DURATION, formatDuration, parseDuration } from "../lib/duration.ts";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { DAY_MS, formatTime } from "../lib/time.ts";
import { boundParameter, refuseBackwards } from "../model/time-bound.ts";
import type { AlertTotals, AlertTrends } from "../store/ports/alert-store.ts";
import type { Store } from "../store/ports/store.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { invalid } from "./problems.ts";
import { integerParameter } from "./query-parameters.ts";
import { data } from "./response.ts";

const STATS_MS_DEFAULT = 30 * DAY_MS;

/** Intervals of one answer. */
const INTERVALS_MAX = 1000;
const RULES_DEFAULT = 10;
const RULES_MAX = 50;

const meanSchema = z.string().nullable().describe("such as 45s, 12m, 2h 15m or 3d 4h; null if no alert counts");
const totalsShape = {
  total: z.int(),
  by_status: z.object({ open: z.int(), acknowledged: z.int(), resolved: z.int() }),
  by_severity: z.object({ critical: z.int(), high: z.int(), medium: z.int(), low: z.int(), info: z.int() }),
  mean_time_to_acknowledge: meanSchema,
  mean_time_to_resolve: meanSchema,
};
const secondsSchema = z.number().nullable().describe("the mean in seconds; null if no alert counts");
const intervalSchema = z
  .object({
    from: z.string().describe("start of the interval; `total` counts alerts created in it and in the range"),
    ...totalsShape,
    mean_seconds_to_acknowledge: secondsSchema,
    mean_seconds_to_resolve: secondsSchema,
    by_rule: z.array(z.int()).describe("alerts of each of the `rules`, in their order"),
    other_rules: z.int().describe("alerts of all other rules"),
  })
  .meta({ id: "AlertInterval" });
const statsSchema = z
  .object({
    ...totalsShape,
    rules: z
      .array(z.object({ rule_name: z.string(), count: z.int() }))
      .optional()
      .describe("with `interval`: the rules with the most alerts in the range"),
    intervals: z
      .array(intervalSchema)
      .optional()
      .describe(
        `with \`interval\`: all intervals of the range, oldest first, empty ones included, at most ${INTERVALS_MAX}`,
      ),
  })
  .meta({ id: "AlertStats" });
const intervalParameter = z
  .string()
  .transform((text, context) => {
    const ms = parseDuration(text);
    if (ms !== undefined) return ms;
    context.addIssue({ code: "custom", message: "must be a duration such as 15m, 1h or 1d" });
    return z.NEVER;
  })
  .meta({ type: "string", pattern: DURATION.source })
  .optional()
  .describe("adds the totals of each interval of this length, such as 15m, 1h or 1d");
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
      "`retention.alerts_days` do not count. With `interval` the answer also has the totals of each interval and the counts of the " +
      "`rules` with the most alerts. Intervals start at multiples of their length in UTC; an interval counts by the creation of its " +
      "alerts, also in its means.",
    scopes: ["alerts:read"],
    query: z
      .strictObject({
        from: boundParameter
          .optional()
          .describe("earliest `created_at`, inclusive; also relative, such as `now-7d`; default: 30 days before `to`"),
        to: boundParameter.optional().describe("latest `created_at`, exclusive; default: now"),
        interval: intervalParameter,
        rules: integerParameter(
          1,
          RULES_MAX,
          `rules to count by themselves; with \`interval\` only, default ${RULES_DEFAULT}`,
        ),
      })
      .refine(({ interval, rules }) => rules === undefined || interval !== undefined, {
        path: ["rules"],
        message: "is only allowed with interval",
      })
      .superRefine(refuseBackwards, BESIDE_OTHERS),
    responses: { 200: { description: "the statistics", data: statsSchema, example: STATS_EXAMPLE } },
    handle: async ({ query: { from, to, interval: intervalMs, rules: rulesMax = RULES_DEFAULT } }) => {
      const fromMs = from ?? (to ?? now()) - STATS_MS_DEFAULT;
      const totals = totalsView(await store.alerts.totals({ fromMs, toMs: to }));
      if (intervalMs === undefined) return data(totals);
      // The end of the present millisecond, so that the last interval has the alerts that `total` has.
      const toMs = to ?? Math.max(fromMs, now()) + 1;
      refuseManyIntervals((toMs - fromMs) / intervalMs);
      const trends = await store.alerts.trends({ fromMs, toMs, intervalMs, rulesMax });
      return data({ ...totals, ...trendsView(trends) });
    },
  });
}

function refuseManyIntervals(count: number): void {
  if (count <= INTERVALS_MAX - 1) return;
  const message = `would make more than ${INTERVALS_MAX.toLocaleString("en")} intervals: make it longer or the range shorter`;
  throw invalid([{ field: "interval", message }]);
}

function totalsView(totals: AlertTotals) {
  const mean = (ms: number | null) => (ms === null ? null : formatDuration(ms));
  return {
    total: totals.total,
    by_status: totals.byStatus,
    by_severity: totals.bySeverity,
    mean_time_to_acknowledge: mean(totals.acknowledgeMs),
    mean_time_to_resolve: mean(totals.resolveMs),
  };
}

function trendsView({ rules, intervals }: AlertTrends): Pick<z.infer<typeof statsSchema>, "rules" | "intervals"> {
  const seconds = (ms: number | null) => (ms === null ? null : ms / 1000);
  return {
    rules: rules.map(({ name, count }) => ({ rule_name: name, count })),
    intervals: intervals.map(({ startMs, totals, byRule, otherRules }) => ({
      from: formatTime(startMs),
      ...totalsView(totals),
      mean_seconds_to_acknowledge: seconds(totals.acknowledgeMs),
      mean_seconds_to_resolve: seconds(totals.resolveMs),
      by_rule: [...byRule],
      other_rules: otherRules,
    })),
  };
}
