import { queryOptions } from "@tanstack/react-query";
import { searchAlerts, type SearchAnswer } from "./alert-search.ts";
import type { Tally } from "./alert-tally.ts";
import type { AlertFilters, Status } from "./alerts.ts";
import type { Severity } from "./client.ts";

// How many alerts there are of each status, severity and assignee: the counts of several views for one request.

const PEOPLE_MAX = 1000;

export const alertTalliesQuery = (range: Pick<AlertFilters, "from" | "to" | "time">) =>
  queryOptions({
    queryKey: ["alerts", "tallies", range],
    queryFn: async ({ signal }): Promise<Tally[]> => {
      const aggs = {
        statuses: {
          terms: { field: "status", size: 3 },
          aggs: {
            severities: { terms: { field: "severity", size: 5 } },
            people: { terms: { field: "assignee", size: PEOPLE_MAX } },
          },
        },
      };
      const { aggregations } = await searchAlerts(range, { aggs, signal });
      return aggregations["statuses"]!.buckets!.map((bucket) => {
        const byAssignee = new Map<string, number>();
        for (const { key, count } of (bucket["people"] as SearchAnswer).buckets!) {
          const name = String(key).toLowerCase();
          byAssignee.set(name, (byAssignee.get(name) ?? 0) + count);
        }
        const severities = (bucket["severities"] as SearchAnswer).buckets!;
        return {
          status: bucket.key as Status,
          bySeverity: new Map(severities.map(({ key, count }) => [key as Severity, count])),
          byAssignee,
        };
      });
    },
  });
