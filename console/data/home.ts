import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answered, api, SEVERITIES, type Schemas, type Severity } from "./client.ts";

// The questions of the home screen: what is open, how quickly it is looked at, and what makes the noise.

type Bucket = { readonly key: unknown; readonly count: number } & Record<string, unknown>;

const bucketsOf = (result: unknown) => (result as { buckets: readonly Bucket[] }).buckets;

async function searchAlerts(body: Schemas["AlertSearch"], signal: AbortSignal) {
  return (await answered(api.POST("/v1/alerts/search", { body, signal }))).data;
}

/** Unresolved alerts by severity, and those that nobody has looked at, the oldest first. */
export const openAlertsQuery = queryOptions({
  queryKey: ["alerts", "home", "open"],
  queryFn: async ({ signal }) => {
    const [open, untouched] = await Promise.all([
      searchAlerts(
        {
          query: { bool: { must_not: [{ field: "status", equals: "resolved" }] } },
          limit: 0,
          aggs: { severity: { terms: { field: "severity", size: SEVERITIES.length } } },
        },
        signal,
      ),
      searchAlerts(
        {
          query: { bool: { must: [{ field: "status", equals: "open" }] } },
          sort: { created_at: "asc" },
          limit: 5,
        },
        signal,
      ),
    ]);
    const bySeverity = new Map(bucketsOf(open.aggregations["severity"]).map(({ key, count }) => [key, count]));
    return {
      total: open.total,
      bySeverity: SEVERITIES.map((severity) => ({ severity, count: bySeverity.get(severity) ?? 0 })),
      untouched: untouched.results,
      untouchedTotal: untouched.total,
    };
  },
});

export interface TimeSpan {
  readonly from: string;
  readonly to: string;
}

const INTERVALS_MS = [300_000, 900_000, 1_800_000, 3_600_000, 10_800_000, 21_600_000, 86_400_000, 604_800_000];
const BARS_MAX = 90;

const durationText = (ms: number) => (ms % 3_600_000 === 0 ? `${ms / 3_600_000}h` : `${ms / 60_000}m`);

/** Alerts over the range by severity. */
export const alertTrendQuery = ({ from, to }: TimeSpan) =>
  queryOptions({
    queryKey: ["alerts", "home", "trend", from, to],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const lengthMs = Date.parse(to) - Date.parse(from);
      const stepMs = INTERVALS_MS.find((ms) => lengthMs / ms <= BARS_MAX) ?? INTERVALS_MS.at(-1)!;
      const { aggregations } = await searchAlerts(
        {
          query: { time_range: { from, to } },
          limit: 0,
          aggs: {
            when: {
              histogram: { field: "created_at", interval: durationText(stepMs) },
              aggs: { severity: { terms: { field: "severity", size: SEVERITIES.length } } },
            },
          },
        },
        signal,
      );
      const buckets = bucketsOf(aggregations["when"]).map((bucket) => ({
        atMs: Date.parse(String(bucket.key)),
        counts: Object.fromEntries(
          bucketsOf(bucket["severity"]).map(({ key, count }) => [key as Severity, count]),
        ) as Partial<Record<Severity, number>>,
      }));
      return { stepMs, buckets };
    },
  });

export interface HandlingTimes {
  readonly created: number;
  readonly secondsToLook: number | null;
  readonly secondsToClose: number | null;
}

/** Averages of the range, and of the range of the same length before. */
export const handlingTimesQuery = ({ from, to }: TimeSpan) =>
  queryOptions({
    queryKey: ["alerts", "home", "times", from, to],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const lengthMs = Date.parse(to) - Date.parse(from);
      const before = { from: new Date(Date.parse(from) - lengthMs).toISOString(), to: from };
      const [now, earlier] = await Promise.all([times({ from, to }, signal), times(before, signal)]);
      return { now, earlier };
    },
  });

async function times({ from, to }: TimeSpan, signal: AbortSignal): Promise<HandlingTimes> {
  const query = { from, to };
  const { data } = await answered(api.GET("/v1/alerts/stats", { params: { query }, signal }));
  return {
    created: data.total,
    secondsToLook: seconds(data.mean_time_to_acknowledge),
    secondsToClose: seconds(data.mean_time_to_resolve),
  };
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** `2h 15m` in seconds. */
function seconds(text: string | null): number | null {
  if (text === null) return null;
  return [...text.matchAll(/(\d+)([smhd])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * UNIT_SECONDS[unit!]!,
    0,
  );
}

/** The rules with the most alerts in the range, and which share of those that were resolved were false positives. */
export const noisyRulesQuery = ({ from, to }: TimeSpan) =>
  queryOptions({
    queryKey: ["alerts", "home", "rules", from, to],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const { aggregations } = await searchAlerts(
        {
          query: { time_range: { from, to } },
          limit: 0,
          aggs: {
            rules: {
              terms: { field: "rule_name", size: 6 },
              aggs: { resolution: { terms: { field: "resolution", size: 10 } } },
            },
          },
        },
        signal,
      );
      return bucketsOf(aggregations["rules"]).map((bucket) => {
        const resolutions = bucketsOf(bucket["resolution"]);
        const resolved = resolutions.reduce((sum, { count }) => sum + count, 0);
        const wrong = resolutions.find(({ key }) => key === "false_positive")?.count ?? 0;
        return {
          name: String(bucket.key),
          alerts: bucket.count,
          falseShare: resolved === 0 ? null : wrong / resolved,
        };
      });
    },
  });
