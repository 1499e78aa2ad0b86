import type { AlertSummary } from "../model/alert.ts";

// What people change on an alert. Detection changes the rest at the same time.

export type WorkState = Pick<
  AlertSummary,
  | "status"
  | "assignee"
  | "resolution"
  | "actionsTaken"
  | "acknowledgedAt"
  | "firstAcknowledgedAt"
  | "resolvedAt"
  | "tags"
>;

export function workStateOf(alert: AlertSummary): WorkState {
  const { status, assignee, resolution, actionsTaken, acknowledgedAt, firstAcknowledgedAt, resolvedAt } = alert;
  const { tags = [] } = alert;
  return { status, assignee, resolution, actionsTaken, acknowledgedAt, firstAcknowledgedAt, resolvedAt, tags };
}

/** Two resolutions differ by their time, even if they say the same. */
export function isSameWork(a: WorkState, b: WorkState): boolean {
  return (
    a.status === b.status &&
    a.assignee === b.assignee &&
    a.resolution === b.resolution &&
    a.acknowledgedAt === b.acknowledgedAt &&
    a.firstAcknowledgedAt === b.firstAcknowledgedAt &&
    a.resolvedAt === b.resolvedAt &&
    isSameList(a.actionsTaken, b.actionsTaken) &&
    isSameList(a.tags ?? [], b.tags ?? [])
  );
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, i) => item === b[i]);
}

/** What a change did to an alert. */
export interface ChangedWork {
  readonly id: string;
  readonly before: WorkState;
  readonly after: WorkState;
}

/** Empty if the change left the work as it was, for example a comment. */
export function changedWork(before: AlertSummary, after: AlertSummary): ChangedWork[] {
  const work = { id: after.id, before: workStateOf(before), after: workStateOf(after) };
  return isSameWork(work.before, work.after) ? [] : [work];
}
