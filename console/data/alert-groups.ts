import { queryOptions } from "@tanstack/react-query";
import type { AlertFilters } from "./alerts.ts";
import { searchAlerts, type SearchBucket } from "./alert-search.ts";
import type { Severity } from "./client.ts";
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
  /** A few of the titles, to find the words that they share. */
  readonly titles: readonly string[];
  readonly assignees: readonly string[];
  /** Some have nobody. */
  readonly isPartlyUnassigned: boolean;
  readonly when: readonly { readonly atMs: number; readonly count: number }[];
}

/** Rules past this are left out; a site has a few hundred. */
const GROUPS_MAX = 1000;
const TITLES_MAX = 5;
const PEOPLE_MAX = 3;

export const alertGroupsQuery = (filters: AlertFilters, stepMs: number, generation: number) =>
  queryOptions({
    queryKey: ["alerts", "groups", filters, stepMs, generation],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const { aggregations, total } = await searchAlerts(
        filters,
        {
          rules: {
            terms: { field: "rule_name", size: GROUPS_MAX },
            aggs: {
              severities: { terms: { field: "severity", size: SEVERITIES.length } },
              sources: { terms: { field: "source", size: 1 } },
              titles: { terms: { field: "title", size: TITLES_MAX } },
              people: { terms: { field: "assignee", size: PEOPLE_MAX } },
              assigned: { count: { field: "assignee" } },
              events: { stats: { field: "event_count" } },
              score: { stats: { field: "ai_analysis.threat_score" } },
              last: { stats: { field: "last_event_at" } },
              when: { histogram: { field: "last_event_at", interval: `${Math.round(stepMs / 1000)}s` } },
            },
          },
        },
        signal,
      );
      return { total, groups: aggregations["rules"]!.buckets!.map(readGroup) };
    },
  });

function readGroup(bucket: SearchBucket): AlertGroup {
  const part = (name: string) => bucket[name] as Exclude<SearchBucket[string], string | number>;
  const keys = (name: string) => part(name).buckets!.map(({ key }) => String(key));
  return {
    rule: String(bucket.key),
    count: bucket.count,
    severity: SEVERITIES.find((severity) => keys("severities").includes(severity)) ?? "info",
    source: keys("sources")[0] ?? "custom",
    eventCount: part("events").sum ?? 0,
    score: numberOf(part("score").max),
    lastMs: Date.parse(String(part("last").max)),
    titles: keys("titles"),
    assignees: keys("people"),
    isPartlyUnassigned: (part("assigned").value ?? 0) < bucket.count,
    when: part("when")
      .buckets!.filter(({ count }) => count > 0)
      .map(({ key, count }) => ({ atMs: Date.parse(String(key)), count })),
  };
}

const numberOf = (value: unknown) => (typeof value === "number" ? value : null);
