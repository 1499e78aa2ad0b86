import type { TimelineEntry } from "../../../data/client.ts";
import { count } from "../../../text/numbers.ts";

export const RESOLUTION_WORDS = {
  true_positive: "a real attack",
  false_positive: "a false positive",
  benign: "harmless",
  duplicate: "a duplicate",
} as const;

export const actorName = (actor: string) => (actor === "system" ? "Tocsin" : actor);

/** What somebody did, after their name. */
export function entryWords(entry: TimelineEntry): string {
  switch (entry.kind) {
    case "created":
      return entry.count === 0
        ? "raised it because nothing came"
        : `raised it from ${count(entry.count ?? 1, "event")}`;
    case "events_added": {
      const raised = entry.severity === undefined ? "" : `, which made it ${entry.severity}`;
      return `added ${count(entry.count ?? 1, "event")}${raised}`;
    }
    case "acknowledged":
      return entry.assignee ? `acknowledged it for ${entry.assignee}` : "acknowledged it";
    case "assigned":
      return entry.assignee ? `gave it to ${entry.assignee}` : "took it from its assignee";
    case "tagged": {
      const parts = [
        ...((entry.added?.length ?? 0) > 0 ? [`tagged it ${entry.added!.join(", ")}`] : []),
        ...((entry.removed?.length ?? 0) > 0 ? [`removed the tag ${entry.removed!.join(", ")}`] : []),
      ];
      return parts.join(" and ");
    }
    case "commented":
      return "wrote";
    case "resolved":
      return `resolved it as ${entry.resolution === undefined ? "done" : RESOLUTION_WORDS[entry.resolution]}`;
    case "reopened":
      return "opened it again";
    case "notified":
      return notifiedWords(entry);
    case "analysed":
      return "scored it";
    default:
      return entry.kind satisfies never;
  }
}

function notifiedWords({ channel = "a channel", outcome, error }: TimelineEntry): string {
  const why = error === undefined ? "" : ` (${error})`;
  switch (outcome) {
    case "failed":
      return `could not notify ${channel}${why}`;
    case "delayed":
      return `will try again to notify ${channel}${why}`;
    case "not_configured":
      return `did not notify ${channel}, which is not set up`;
    default:
      return `notified ${channel}`;
  }
}

const STATUS_KINDS = new Set<TimelineEntry["kind"]>(["acknowledged", "resolved", "reopened"]);

/** The latest change of status: who was faster. */
export const lastMove = (timeline: readonly TimelineEntry[]) => timeline.findLast(({ kind }) => STATUS_KINDS.has(kind));
