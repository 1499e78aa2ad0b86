import { duration } from "../../../components/time/format.ts";
import type { BulkResult, Change } from "../../../data/alert-changes.ts";
import type { Alert, AlertDetail } from "../../../data/client.ts";
import { count, exact } from "../../../text/numbers.ts";
import { actorName, lastMove, RESOLUTION_WORDS } from "../detail/timeline-words.ts";

// What a change did, in a sentence.

/** What was done to `alerts`. */
export function doneWords(change: Change, alerts: string): string {
  switch (change.action) {
    case "acknowledge":
      return `Acknowledged ${alerts}${change.assignee === undefined ? "" : ` for ${change.assignee}`}`;
    case "resolve":
      return `Resolved ${alerts} as ${RESOLUTION_WORDS[change.resolution]}${change.exception === undefined ? "" : ", with an exception"}`;
    case "reopen":
      return `Opened ${alerts} again`;
    case "assign":
      return change.assignee === null ? `Took ${alerts} from the assignee` : `Assigned ${alerts} to ${change.assignee}`;
    case "comment":
      return `Commented on ${alerts}`;
    case "tag":
      return `Tagged ${alerts} ${change.tags.join(", ")}`;
    case "untag":
      return `Removed the tag ${change.tags.join(", ")} from ${alerts}`;
    default:
      return change satisfies never;
  }
}

export function bulkWords(change: Change, result: BulkResult): string {
  const done = doneWords(change, count(result.succeededCount, "alert"));
  const refused =
    result.failedCount === 0
      ? ""
      : `; ${exact(result.failedCount)} ${result.failedCount === 1 ? "was" : "were"} refused: ${result.failed[0]?.message ?? "the service did not say why"}`;
  const left = result.remaining === 0 ? "" : `; ${exact(result.remaining)} are left, do it again for those`;
  return `${done}${refused}${left}`;
}

/** What taking a change of many alerts back did. */
export function undoneWords(change: Change, result: BulkResult): string {
  const { succeededCount, failedCount } = result;
  const done = succeededCount === 0 ? "Nothing was taken back" : `Taken back for ${count(succeededCount, "alert")}`;
  const left =
    failedCount === 0
      ? ""
      : `; ${exact(failedCount)} ${failedCount === 1 ? "stays as it is, because somebody has" : "stay as they are, because somebody has"} changed ${failedCount === 1 ? "it" : "them"} since`;
  const hasComment = "comment" in change && change.comment !== undefined && change.comment !== "";
  return `${done}${left}${hasComment && succeededCount > 0 ? ". The comment stays in the timeline" : ""}`;
}

const MOVED = { acknowledged: "Acknowledged", resolved: "Resolved", reopened: "Opened again" } as const;

const agoBy = ({ at, actor }: AlertDetail["timeline"][number], nowMs: number) =>
  `${duration(Math.max(0, nowMs - Date.parse(at)))} ago by ${actorName(actor)}`;

/** Somebody was faster: "Resolved 4 s ago by eva". */
export function conflictWords(alert: AlertDetail, nowMs: number): string {
  const move = lastMove(alert.timeline);
  if (move === undefined) return `The alert is ${alert.status} already; nothing was changed`;
  return `${MOVED[move.kind as keyof typeof MOVED]} ${agoBy(move, nowMs)}; nothing was changed`;
}

const WORKED: ReadonlySet<string> = new Set([...Object.keys(MOVED), "assigned", "tagged"]);

/** A change of one alert was not taken back: somebody has changed the alert since. */
export function leftWords(alert: AlertDetail, nowMs: number): string {
  const last = alert.timeline.findLast(({ kind }) => WORKED.has(kind));
  return `Nothing was taken back: the alert was changed ${last === undefined ? "since" : agoBy(last, nowMs)}`;
}

/** The alert as the change leaves it, until the service says so. */
export function afterChange(alert: Alert, change: Change): Alert {
  switch (change.action) {
    case "acknowledge":
      return { ...alert, status: "acknowledged", assignee: change.assignee ?? alert.assignee };
    case "resolve":
      return { ...alert, status: "resolved", resolution: change.resolution };
    case "reopen":
      return { ...alert, status: "open", resolution: null };
    case "assign":
      return { ...alert, assignee: change.assignee };
    case "tag":
      return { ...alert, tags: [...new Set([...alert.tags, ...change.tags])].toSorted() };
    case "untag":
      return { ...alert, tags: alert.tags.filter((tag) => !change.tags.includes(tag)) };
    case "comment":
      return alert;
    default:
      return change satisfies never;
  }
}
