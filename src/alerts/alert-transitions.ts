import {
  COMMENTS_MAX,
  type AlertSummary,
  type Comment,
  type MadeException,
  type TimelineEntry,
} from "../model/alert.ts";
import { ALERT_TAGS_MAX, changeTags, type TagChange } from "../model/alert-tags.ts";
import { STATUSES, type Resolution, type Status } from "../model/alert-state.ts";
import { unreachable } from "../lib/unreachable.ts";
import { isSameWork, workStateOf, type WorkState } from "./work-state.ts";

// Transitions that people make on an alert: the statuses that allow each, and the timeline entries that it adds.

export type Transition =
  | { readonly action: "acknowledge"; readonly comment?: string | undefined; readonly assignee?: string | undefined }
  | {
      readonly action: "resolve";
      readonly resolution: Resolution;
      readonly comment?: string | undefined;
      readonly actionsTaken?: readonly string[] | undefined;
      /** The exception that was added to the rule with the resolution. */
      readonly exception?: MadeException | undefined;
    }
  | { readonly action: "reopen"; readonly comment?: string | undefined }
  | { readonly action: "assign"; readonly assignee: string | null; readonly comment?: string | undefined }
  | ({ readonly action: "tag"; readonly comment?: string | undefined } & TagChange)
  | { readonly action: "comment"; readonly comment: string }
  /** Takes a change back, unless somebody has changed the alert since. */
  | { readonly action: "restore"; readonly before: WorkState; readonly after: WorkState; readonly comment?: undefined };

/** A transition that the alert does not allow, or an alert that does not exist. */
export class TransitionRefused extends Error {
  readonly kind: "not_found" | "conflict";
  constructor(kind: TransitionRefused["kind"], message: string) {
    super(message);
    this.name = "TransitionRefused";
    this.kind = kind;
  }
}

export interface TransitionResult {
  readonly alert: AlertSummary;
  readonly entries: readonly TimelineEntry[];
  readonly comment: Comment | undefined;
}

/** The actor and time of a transition, and the ids for the entries that it adds. */
export interface TransitionContext {
  readonly actor: string;
  readonly at: number;
  newEntryId(): string;
  newCommentId(): string;
}

const ALLOWED_FROM = {
  acknowledge: ["open", "acknowledged"],
  resolve: ["open", "acknowledged"],
  reopen: ["acknowledged", "resolved"],
  assign: STATUSES,
  tag: STATUSES,
  comment: STATUSES,
  restore: STATUSES,
} as const satisfies Record<Transition["action"], readonly Status[]>;

const PAST_TENSE = {
  acknowledge: "acknowledged",
  resolve: "resolved",
  reopen: "reopened",
  assign: "assigned",
  tag: "tagged",
  comment: "commented",
  restore: "restored",
} as const;

/** Returns the alert after the transition, or a refusal if its status does not allow the transition. */
export function applyTransition(
  alert: AlertSummary,
  transition: Transition,
  context: TransitionContext,
): TransitionResult | TransitionRefused {
  const from: readonly Status[] = ALLOWED_FROM[transition.action];
  if (!from.includes(alert.status)) {
    const message = `alert ${alert.id} is ${alert.status} and cannot be ${PAST_TENSE[transition.action]}`;
    return new TransitionRefused("conflict", message);
  }
  if (transition.action === "restore" && !isSameWork(workStateOf(alert), transition.after)) {
    return new TransitionRefused("conflict", `alert ${alert.id} has been changed since and stays as it is`);
  }
  const { at, actor } = context;
  const changed = changedFields(alert, transition, at);
  if ((changed.tags?.length ?? 0) > ALERT_TAGS_MAX) {
    const message = `alert ${alert.id} would have ${changed.tags!.length} tags; the maximum is ${ALERT_TAGS_MAX}`;
    return new TransitionRefused("conflict", message);
  }
  const entries: TimelineEntry[] = timelineEntriesFor(alert, changed, transition).map((entry) => ({
    id: context.newEntryId(),
    at,
    actor,
    ...entry,
  }));
  const { comment: body } = transition;
  if (body === undefined && entries.length === 0) return { alert, entries, comment: undefined };
  if (body === undefined) return { alert: nextVersion(alert, changed), entries, comment: undefined };
  if (alert.commentCount >= COMMENTS_MAX) {
    return new TransitionRefused(
      "conflict",
      `alert ${alert.id} is ${alert.status} and has ${COMMENTS_MAX} comments, the maximum; no comment was added`,
    );
  }
  const comment: Comment = { id: context.newCommentId(), body, author: actor, createdAt: at };
  entries.push({ id: context.newEntryId(), at, actor, kind: "commented", comment });
  return { alert: nextVersion(alert, { ...changed, commentCount: alert.commentCount + 1 }), entries, comment };
}

function nextVersion(alert: AlertSummary, changed: Partial<AlertSummary>): AlertSummary {
  return { ...alert, ...changed, version: alert.version + 1 };
}

function changedFields(alert: AlertSummary, transition: Transition, at: number): Partial<AlertSummary> {
  switch (transition.action) {
    case "acknowledge":
      return {
        status: "acknowledged",
        assignee: transition.assignee ?? alert.assignee,
        acknowledgedAt: alert.acknowledgedAt ?? at,
        firstAcknowledgedAt: alert.firstAcknowledgedAt ?? at,
      };
    case "resolve":
      return {
        status: "resolved",
        resolution: transition.resolution,
        actionsTaken: transition.actionsTaken ?? [],
        resolvedAt: at,
      };
    case "reopen":
      // The assignee knows the case best and keeps it until an acknowledgement names somebody else.
      return { status: "open", acknowledgedAt: null, resolvedAt: null, resolution: null, actionsTaken: [] };
    case "assign":
      return { assignee: transition.assignee };
    case "tag":
      return { tags: changeTags(alert.tags ?? [], transition) };
    case "comment":
      return {};
    case "restore":
      return transition.before;
    default:
      return unreachable(transition);
  }
}

type EntryBody = TimelineEntry extends infer Each
  ? Each extends TimelineEntry
    ? Omit<Each, "id" | "at" | "actor">
    : never
  : never;

/** The timeline entries besides the comment. */
function timelineEntriesFor(
  before: AlertSummary,
  changed: Partial<AlertSummary>,
  transition: Transition,
): readonly EntryBody[] {
  if (transition.action === "restore") return entriesOfRestore(before, transition.before);
  const entry = timelineEntryFor(before, changed, transition);
  return entry === undefined ? [] : [entry];
}

/** A restored alert has the entries of the transitions that lead back, in the words that every reader of a timeline knows. */
function entriesOfRestore(from: AlertSummary, to: WorkState): readonly EntryBody[] {
  const entries: EntryBody[] = [];
  if (from.status !== to.status) {
    if (from.status === "resolved" || to.status === "open") entries.push({ kind: "reopened" });
    if (to.status === "acknowledged") entries.push({ kind: "acknowledged", assignee: to.assignee });
    if (to.status === "resolved" && to.resolution !== null) {
      entries.push({ kind: "resolved", resolution: to.resolution, actionsTaken: to.actionsTaken });
    }
  }
  if (from.assignee !== to.assignee) entries.push({ kind: "assigned", assignee: to.assignee });
  const [known, tags] = [from.tags ?? [], to.tags ?? []];
  const added = tags.filter((tag) => !known.includes(tag));
  const removed = known.filter((tag) => !tags.includes(tag));
  if (added.length + removed.length > 0) entries.push({ kind: "tagged", added, removed });
  return entries;
}

/** Undefined if only a comment was added. */
function timelineEntryFor(
  before: AlertSummary,
  changed: Partial<AlertSummary>,
  transition: Exclude<Transition, { action: "restore" }>,
): EntryBody | undefined {
  switch (transition.action) {
    case "acknowledge": {
      const assignee = changed.assignee ?? null;
      if (before.status === "open") return { kind: "acknowledged", assignee };
      return assignee === null || assignee === before.assignee ? undefined : { kind: "assigned", assignee };
    }
    case "resolve":
      return {
        kind: "resolved",
        resolution: transition.resolution,
        actionsTaken: transition.actionsTaken ?? [],
        ...(transition.exception && { exception: transition.exception }),
      };
    case "reopen":
      return { kind: "reopened" };
    case "assign":
      return transition.assignee === before.assignee ? undefined : { kind: "assigned", assignee: transition.assignee };
    case "tag": {
      const [known, tags] = [before.tags ?? [], changed.tags ?? []];
      const added = tags.filter((tag) => !known.includes(tag));
      const removed = known.filter((tag) => !tags.includes(tag));
      return added.length + removed.length === 0 ? undefined : { kind: "tagged", added, removed };
    }
    case "comment":
      return undefined;
    default:
      return unreachable(transition);
  }
}
