import {
  COMMENTS_MAX,
  type AlertSummary,
  type Comment,
  type MadeException,
  type TimelineEntry,
} from "../model/alert.ts";
import type { Resolution, Status } from "../model/alert-state.ts";

// What people do with an alert: which moves there are from where, and what each leaves behind.

export type Move =
  | { readonly action: "acknowledge"; readonly comment?: string | undefined; readonly assignee?: string | undefined }
  | {
      readonly action: "resolve";
      readonly resolution: Resolution;
      readonly comment?: string | undefined;
      readonly actionsTaken?: readonly string[] | undefined;
      /** What was made of the rule with it. */
      readonly exception?: MadeException | undefined;
    }
  | { readonly action: "reopen"; readonly comment?: string | undefined }
  | { readonly action: "comment"; readonly comment: string };

/** Why nothing was done with an alert. */
export class AlertRefused extends Error {
  readonly kind: "not_found" | "conflict";
  constructor(kind: AlertRefused["kind"], message: string) {
    super(message);
    this.name = "AlertRefused";
    this.kind = kind;
  }
}

export interface Moved {
  readonly alert: AlertSummary;
  readonly entries: readonly TimelineEntry[];
  readonly comment: Comment | undefined;
}

/** Who moves, when, and the ids for what it leaves behind. */
export interface Mover {
  readonly actor: string;
  readonly at: number;
  newEntryId(): string;
  newCommentId(): string;
}

const FROM = {
  acknowledge: ["open", "acknowledged"],
  resolve: ["open", "acknowledged"],
  reopen: ["acknowledged", "resolved"],
  comment: ["open", "acknowledged", "resolved"],
} as const satisfies Record<Move["action"], readonly Status[]>;

const DONE = { acknowledge: "acknowledged", resolve: "resolved", reopen: "reopened", comment: "commented" } as const;

/** The alert after the move, or why it does not allow it as it is now. */
export function moveAlert(alert: AlertSummary, move: Move, mover: Mover): Moved | AlertRefused {
  const from: readonly Status[] = FROM[move.action];
  if (!from.includes(alert.status)) {
    const message = `the alert ${alert.id} is ${alert.status} and cannot be ${DONE[move.action]}`;
    return new AlertRefused("conflict", message);
  }
  const { at, actor } = mover;
  const changed = change(alert, move, at);
  const entries: TimelineEntry[] = [];
  const what = entryOf(alert, changed, move);
  if (what) entries.push({ id: mover.newEntryId(), at, actor, ...what });
  const { comment: body } = move;
  if (body === undefined && entries.length === 0) return { alert, entries, comment: undefined };
  if (body === undefined) return { alert: next(alert, changed), entries, comment: undefined };
  if (alert.commentCount >= COMMENTS_MAX) {
    return new AlertRefused(
      "conflict",
      `the alert ${alert.id} is ${alert.status} and has ${COMMENTS_MAX} comments: no more are taken`,
    );
  }
  const comment: Comment = { id: mover.newCommentId(), body, author: actor, createdAt: at };
  entries.push({ id: mover.newEntryId(), at, actor, kind: "commented", comment });
  return { alert: next(alert, { ...changed, commentCount: alert.commentCount + 1 }), entries, comment };
}

function next(alert: AlertSummary, changed: Partial<AlertSummary>): AlertSummary {
  return { ...alert, ...changed, version: alert.version + 1 };
}

function change(alert: AlertSummary, move: Move, at: number): Partial<AlertSummary> {
  switch (move.action) {
    case "acknowledge":
      return {
        status: "acknowledged",
        assignee: move.assignee ?? alert.assignee,
        acknowledgedAt: alert.acknowledgedAt ?? at,
        firstAcknowledgedAt: alert.firstAcknowledgedAt ?? at,
      };
    case "resolve":
      return {
        status: "resolved",
        resolution: move.resolution,
        actionsTaken: move.actionsTaken ?? [],
        resolvedAt: at,
      };
    case "reopen":
      // Whoever had the case knows it best: it stays with them until somebody acknowledges it for another.
      return { status: "open", acknowledgedAt: null, resolvedAt: null, resolution: null, actionsTaken: [] };
    case "comment":
      return {};
  }
}

type Entry = TimelineEntry extends infer Each
  ? Each extends TimelineEntry
    ? Omit<Each, "id" | "at" | "actor">
    : never
  : never;

/** What stands on the timeline besides the comment; undefined where nothing else happened. */
function entryOf(before: AlertSummary, changed: Partial<AlertSummary>, move: Move): Entry | undefined {
  switch (move.action) {
    case "acknowledge": {
      const assignee = changed.assignee ?? null;
      if (before.status === "open") return { kind: "acknowledged", assignee };
      return assignee === null || assignee === before.assignee ? undefined : { kind: "assigned", assignee };
    }
    case "resolve":
      return {
        kind: "resolved",
        resolution: move.resolution,
        actionsTaken: move.actionsTaken ?? [],
        ...(move.exception && { exception: move.exception }),
      };
    case "reopen":
      return { kind: "reopened" };
    case "comment":
      return undefined;
  }
}
