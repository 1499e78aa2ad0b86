import { queryOptions } from "@tanstack/react-query";
import type { AlertFilters } from "./alerts.ts";
import { intervalOf, searchAlerts, type SearchAnswer, type SearchBucket } from "./alert-search.ts";
import { answered, api, type Alert, type Severity } from "./client.ts";
import { SEVERITIES } from "./severity.ts";

// Alerts by rule, counted by the service: a group of ten thousand costs as much as one of two.

export interface AlertGroup {
  readonly rule: string;
  readonly count: number;
  /** The worst. */
  readonly severity: Severity;
  readonly source: string;
  readonly eventCount: number;
  /** The highest; null: none is analysed. */
  readonly score: number | null;
  readonly lastMs: number;
  /** A few of its latest alerts, to name it by the words that they share; none of a group that was quiet lately. */
  readonly samples: readonly Pick<Alert, "title" | "group" | "entities">[];
  readonly assignees: readonly string[];
  /** Some have nobody. */
  readonly isPartlyUnassigned: boolean;
  readonly when: readonly { readonly atMs: number; readonly count: number }[];
}

/** Rules past this are left out; a site has a few hundred. */
const GROUPS_MAX = 1000;
/** Alerts that come with the counts. Titles are not aggregated: that would read every alert. */
const SAMPLES_MAX = 100;
const SAMPLES_PER_GROUP_MAX = 5;
const PEOPLE_MAX = 3;

export const alertGroupsQuery = (filters: AlertFilters, stepMs: number, generation: number) =>
  queryOptions({
    queryKey: ["alerts", "groups", filters, stepMs, generation],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const aggs = {
        rules: {
          terms: { field: "rule_name", size: GROUPS_MAX },
          aggs: {
            severities: { terms: { field: "severity", size: SEVERITIES.length } },
            sources: { terms: { field: "source", size: 1 } },
            people: { terms: { field: "assignee", size: PEOPLE_MAX } },
            assigned: { count: { field: "assignee" } },
            events: { stats: { field: "event_count" } },
            score: { stats: { field: "ai_analysis.threat_score" } },
            last: { stats: { field: "last_event_at" } },
            when: { histogram: { field: "last_event_at", interval: intervalOf(stepMs) } },
          },
        },
      };
      const { aggregations, total, atMs, results } = await searchAlerts(filters, { aggs, latest: SAMPLES_MAX, signal });
      const groups = aggregations["rules"]!.buckets!.map((bucket) => readGroup(bucket, results));
      return { total, atMs, groups };
    },
  });

function readGroup(bucket: SearchBucket, latest: readonly Alert[]): AlertGroup {
  const part = (name: string) => bucket[name] as SearchAnswer;
  const keys = (name: string) => part(name).buckets!.map(({ key }) => String(key));
  const rule = String(bucket.key);
  return {
    rule,
    count: bucket.count,
    severity: SEVERITIES.find((severity) => keys("severities").includes(severity)) ?? "info",
    source: keys("sources")[0] ?? "custom",
    eventCount: part("events").sum ?? 0,
    score: numberOf(part("score").max),
    lastMs: Date.parse(String(part("last").max)),
    samples: latest.filter((alert) => alert.rule_name === rule).slice(0, SAMPLES_PER_GROUP_MAX),
    assignees: keys("people"),
    isPartlyUnassigned: (part("assigned").value ?? 0) < bucket.count,
    when: part("when")
      .buckets!.filter(({ count }) => count > 0)
      .map(({ key, count }) => ({ atMs: Date.parse(String(key)), count })),
  };
}

const numberOf = (value: unknown) => (typeof value === "number" ? value : null);

/** A few alerts of a group that has none among the latest of the list. */
export const groupSamplesQuery = (filters: AlertFilters, rule: string) =>
  queryOptions({
    queryKey: ["alerts", "samples", filters, rule],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }): Promise<AlertGroup["samples"]> => {
      const query = { ...filters, rule_name: [rule], limit: SAMPLES_PER_GROUP_MAX };
      return (await answered(api.GET("/v1/alerts", { params: { query: query as never }, signal }))).data;
    },
  });
