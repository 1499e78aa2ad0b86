import type { AlertFilters, Status } from "./alerts.ts";
import type { Severity } from "./client.ts";

export interface Tally {
  readonly status: Status;
  readonly bySeverity: ReadonlyMap<Severity, number>;
  /** By address in lower case. */
  readonly byAssignee: ReadonlyMap<string, number>;
}

/** The number that match; undefined for filters that the tallies do not know. */
export function tallied(tallies: readonly Tally[], filters: AlertFilters): number | undefined {
  const { status, severity, assignee, from: _, to: __, time: ___, ...others } = filters;
  const isKnown = Object.keys(others).length === 0 && (severity === undefined || assignee === undefined);
  if (!isKnown || assignee?.includes("none") === true) return undefined;
  const counted = tallies.filter((tally) => status?.includes(tally.status) ?? true);
  return counted.reduce((sum, { bySeverity, byAssignee }) => {
    const counts =
      assignee === undefined
        ? [...bySeverity].filter(([each]) => severity?.includes(each) ?? true).map(([, count]) => count)
        : assignee.map((name) => byAssignee.get(name.toLowerCase()) ?? 0);
    return counts.reduce((total, count) => total + count, sum);
  }, 0);
}
