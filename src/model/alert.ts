import { z } from "zod";
import { formatTime } from "../lib/time.ts";
import { addGroupEntities, ALERT_ENTITIES_MAX, NO_ENTITIES, type AlertEntity } from "./alert-entity.ts";
import { RESOLUTIONS, STATUSES, type Resolution, type Status } from "./alert-state.ts";
import { alertMatchSchema, alertMatchView, type AlertMatch } from "./alert-match.ts";
import { ENTITY_KINDS } from "./entity.ts";
import type { JsonObject, Severity } from "./event.ts";
import { eventSchema, severitySchema } from "./event-schema.ts";
import type { EventMark, Group } from "./finding.ts";
import { NOTIFICATION_REASONS, type NotificationReason } from "./notification.ts";
import type { Channel } from "./rule.ts";

// An alert collects the deduplicated findings of a rule, from the first match until somebody resolves it.

export const COMMENT_BYTES_MAX = 64 * 1024;
export const COMMENTS_MAX = 1000;
export const ACTIONS_TAKEN_MAX = 100;
export const BULK_ALERTS_MAX = 500;
/** Alerts that one change by a query covers. */
export const BULK_QUERY_ALERTS_MAX = 10_000;

export interface AiAnalysis {
  readonly summary: string;
  readonly threat_score: number;
  /** `builtin`, or the host of the model. */
  readonly provider: string;
  readonly model?: string | undefined;
  readonly reasoning: readonly string[];
  readonly suggested_actions: readonly string[];
  readonly analysed_at: string;
  /** Why the built-in scorer replaced the model. */
  readonly provider_error?: string | undefined;
}

export const SUMMARY_CHARACTERS_MAX = 1000;

const aiAnalysisSchema = z
  .object({
    summary: z.string().max(SUMMARY_CHARACTERS_MAX).describe("plain text; do not render it as markup"),
    threat_score: z.int().min(0).max(100),
    provider: z.string().describe("builtin, or the host of the model's service"),
    model: z.string().optional(),
    reasoning: z.array(z.string()).describe("plain text"),
    suggested_actions: z.array(z.string()).describe("plain text, for a person to review"),
    analysed_at: z.string(),
    provider_error: z.string().optional().describe("why the built-in scorer replaced the model"),
  })
  .meta({ id: "AiAnalysis" });

export interface Alert {
  readonly id: string;
  /** The rule as it was when it matched: alerts outlive edits and deletion of the rule. */
  readonly rule: {
    readonly id: string;
    readonly name: string;
    readonly description: string;
    readonly tags: readonly string[];
  };
  /** The `dedupKey` of its findings. Stored alerts contain this name, so it stays. */
  readonly foldKey: string;
  readonly group: Group | null;
  /** As in AlertEntities. Absent in older records until their events have been read. */
  readonly entities?: readonly AlertEntity[] | undefined;
  readonly entitiesCut?: true | undefined;
  readonly title: string;
  readonly description: string;
  readonly severity: Severity;
  readonly status: Status;
  readonly source: string;
  readonly eventCount: number;
  readonly firstEventAt: number;
  readonly lastEventAt: number;
  readonly createdAt: number;
  readonly enrichment: JsonObject;
  readonly aiAnalysis: AiAnalysis | null;
  readonly assignee: string | null;
  readonly resolution: Resolution | null;
  readonly actionsTaken: readonly string[];
  /** Reset to null when the alert is reopened. */
  readonly acknowledgedAt: number | null;
  readonly resolvedAt: number | null;
  /** The first acknowledgement ever, for the mean time to acknowledge. */
  readonly firstAcknowledgedAt: number | null;
  readonly commentCount: number;
  /** Given by people, sorted. Absent in older records: none. */
  readonly tags?: readonly string[] | undefined;
  /** Channels of the rule at its last match. Absent in older records. */
  readonly channels?: readonly Channel[] | undefined;
  /** The definition of the rule at its last match. Absent in older records. */
  readonly definitionId?: string | undefined;
  /** Newest first. */
  readonly relatedEvents: readonly EventMark[];
  /** Increases with every change, to detect concurrent transitions. */
  readonly version: number;
}

/** Initial state of an alert. */
export const UNTOUCHED = {
  status: "open",
  aiAnalysis: null,
  assignee: null,
  resolution: null,
  actionsTaken: [],
  acknowledgedAt: null,
  resolvedAt: null,
  firstAcknowledgedAt: null,
  commentCount: 0,
  version: 1,
} as const satisfies Partial<Alert>;

/** The fields that a list or a transition needs. */
export type AlertSummary = Omit<Alert, "relatedEvents">;

export interface Comment {
  readonly id: string;
  readonly body: string;
  readonly author: string;
  readonly createdAt: number;
}

/** The exception that was created when the alert was resolved as a false positive. */
export interface MadeException {
  readonly id: string;
  readonly reason: string;
}

export const SYSTEM = "system";

interface Happened {
  readonly id: string;
  readonly at: number;
  /** The name of the key that did it, or `system`. */
  readonly actor: string;
}

/**
 * `repeated`: sent, possibly not for the first time. `delayed`: will be retried. `failed`: given up.
 * `not_configured`: the rule names a channel that this service does not have.
 */
export const NOTIFIED_OUTCOMES = ["sent", "repeated", "delayed", "failed", "not_configured"] as const;
export type NotifiedOutcome = (typeof NOTIFIED_OUTCOMES)[number];

export type TimelineEntry = Happened &
  (
    | {
        readonly kind: "created";
        /** Number of events at creation; absent in older records. */
        readonly count?: number | undefined;
      }
    | {
        readonly kind: "events_added";
        readonly count: number;
        readonly severity?: Severity | undefined;
        /** For an absence, which adds no event: time of the last event before the new silence. */
        readonly silentSince?: number | undefined;
      }
    | { readonly kind: "acknowledged"; readonly assignee: string | null }
    | { readonly kind: "assigned"; readonly assignee: string | null }
    | { readonly kind: "tagged"; readonly added: readonly string[]; readonly removed: readonly string[] }
    | { readonly kind: "commented"; readonly comment: Comment }
    | {
        readonly kind: "resolved";
        readonly resolution: Resolution;
        readonly actionsTaken: readonly string[];
        readonly exception?: MadeException | undefined;
      }
    | { readonly kind: "reopened" }
    | {
        readonly kind: "notified";
        readonly channel: string;
        readonly outcome: NotifiedOutcome;
        readonly reason: NotificationReason;
        /** Why it was not delivered, or not to all recipients. */
        readonly error?: string | undefined;
      }
    | { readonly kind: "analysed"; readonly provider: string }
  );
export type TimelineKind = TimelineEntry["kind"];

const commentSchema = z
  .object({
    id: z.string(),
    body: z.string().describe("Markdown as it was sent"),
    author: z.string(),
    created_at: z.string(),
  })
  .meta({ id: "AlertComment" });
export { commentSchema };

const KINDS = [
  "created",
  "events_added",
  "acknowledged",
  "assigned",
  "tagged",
  "commented",
  "resolved",
  "reopened",
  "notified",
  "analysed",
] as const satisfies readonly TimelineKind[];

const timelineEntrySchema = z
  .object({
    id: z.string(),
    at: z.string(),
    kind: z.enum(KINDS),
    actor: z.string().describe("the name of the key, or system"),
    count: z.int().optional().describe("created, events_added: number of events; 0 for an absence"),
    silent_since: z
      .string()
      .optional()
      .describe("events_added: the missing events came back and have been absent again since this time"),
    severity: severitySchema.optional().describe("events_added: the severity that the alert was raised to"),
    assignee: z.string().nullable().optional().describe("acknowledged, assigned"),
    added: z.array(z.string()).optional().describe("tagged: tags that were added"),
    removed: z.array(z.string()).optional().describe("tagged: tags that were removed"),
    comment: commentSchema.optional().describe("commented"),
    resolution: z.enum(RESOLUTIONS).optional().describe("resolved"),
    actions_taken: z.array(z.string()).optional().describe("resolved"),
    exception: z
      .object({ id: z.string(), reason: z.string() })
      .optional()
      .describe("resolved: the exception that was added to the rule"),
    channel: z.string().optional().describe("notified"),
    outcome: z.enum(NOTIFIED_OUTCOMES).optional().describe("notified; delayed: will be retried, failed: given up"),
    reason: z.enum(NOTIFICATION_REASONS).optional().describe("notified: change of the alert"),
    error: z.string().optional().describe("notified: why it was not delivered"),
    provider: z.string().optional().describe("analysed"),
  })
  .meta({ id: "TimelineEntry" });

const groupSchema = z
  .object({
    field: z.string().describe("path of the rule's `group_by`, or several separated by commas"),
    value: z.string(),
  })
  .meta({ id: "AlertGroup" });
const alertEntitySchema = z
  .object({
    kind: z.enum(ENTITY_KINDS),
    value: z.string(),
    count: z.int().describe("events of the alert that name it; 0 for the group of an absence"),
  })
  .meta({ id: "AlertEntity" });

/** An alert in a list. */
export const alertSchema = z
  .object({
    id: z.string().describe("alt_ and a time-ordered id"),
    rule_name: z.string(),
    title: z.string(),
    description: z.string(),
    severity: severitySchema,
    status: z.enum(STATUSES),
    source: z.string(),
    event_count: z.int(),
    first_event_at: z.string(),
    last_event_at: z.string(),
    created_at: z.string(),
    enrichment: z.looseObject({}),
    ai_analysis: aiAnalysisSchema.nullable().describe("null until the alert is analysed"),
    assignee: z.string().nullable(),
    resolution: z.enum(RESOLUTIONS).nullable(),
    tags: z.array(z.string()).describe("given by people; the tags of the rule are in `rule.tags`"),
    group: groupSchema.nullable().describe("the values that the rule groups by; null for a rule without groups"),
    entities: z
      .array(alertEntitySchema)
      .max(ALERT_ENTITIES_MAX)
      .describe(
        `addresses, users, doors, cameras, devices and phones that its events name: at most ${ALERT_ENTITIES_MAX}, the most ` +
          "frequent first, then the one seen last",
      ),
    entities_cut: z
      .boolean()
      .describe(`true if there were more than ${ALERT_ENTITIES_MAX}: the least frequent are missing`),
  })
  .meta({ id: "Alert" });

/** One alert in full. */
export const alertDetailSchema = alertSchema
  .extend({
    actions_taken: z.array(z.string()),
    acknowledged_at: z.string().nullable(),
    resolved_at: z.string().nullable(),
    rule: z.object({ id: z.string(), name: z.string(), description: z.string(), tags: z.array(z.string()) }),
    related_events: z.array(eventSchema).describe("the newest 50, newest first"),
    related_events_total: z.int(),
    timeline: z.array(timelineEntrySchema).describe("oldest first"),
    match: alertMatchSchema
      .nullable()
      .describe("why the alert fired; null for an alert of an earlier version whose rule has changed since or is gone"),
  })
  .meta({ id: "AlertDetail" });

export function alertView(alert: AlertSummary): z.infer<typeof alertSchema> {
  return {
    id: alert.id,
    rule_name: alert.rule.name,
    title: alert.title,
    description: alert.description,
    severity: alert.severity,
    status: alert.status,
    source: alert.source,
    event_count: alert.eventCount,
    first_event_at: formatTime(alert.firstEventAt),
    last_event_at: formatTime(alert.lastEventAt),
    created_at: formatTime(alert.createdAt),
    enrichment: alert.enrichment,
    ai_analysis: alert.aiAnalysis && analysisView(alert.aiAnalysis),
    assignee: alert.assignee,
    resolution: alert.resolution,
    tags: [...(alert.tags ?? [])],
    group: alert.group,
    entities: (alert.entities ?? addGroupEntities(NO_ENTITIES, alert.group).entities).map((entity) => ({ ...entity })),
    entities_cut: alert.entitiesCut === true,
  };
}

function analysisView({ reasoning, suggested_actions, ...rest }: AiAnalysis): z.infer<typeof aiAnalysisSchema> {
  return { ...rest, reasoning: [...reasoning], suggested_actions: [...suggested_actions] };
}

/** An alert with all of its own fields, without events and timeline. */
export function alertExportView(alert: AlertSummary) {
  return {
    ...alertView(alert),
    actions_taken: alert.actionsTaken,
    acknowledged_at: alert.acknowledgedAt === null ? null : formatTime(alert.acknowledgedAt),
    resolved_at: alert.resolvedAt === null ? null : formatTime(alert.resolvedAt),
    rule: alert.rule,
  };
}

/** The view as JSON text, since `related` are the JSON texts of the events. */
export function alertDetailText(
  alert: Alert,
  timeline: readonly TimelineEntry[],
  related: readonly string[],
  match: AlertMatch | null,
): string {
  const head = JSON.stringify({
    ...alertExportView(alert),
    related_events_total: alert.eventCount,
    timeline: timeline.map(timelineView),
    match: match && alertMatchView(match),
  });
  return `${head.slice(0, -1)},"related_events":[${related.join(",")}]}`;
}

export function commentView(comment: Comment): z.infer<typeof commentSchema> {
  return { id: comment.id, body: comment.body, author: comment.author, created_at: formatTime(comment.createdAt) };
}

function timelineView(entry: TimelineEntry): z.infer<typeof timelineEntrySchema> {
  const { id, at, kind, actor, ...rest } = entry;
  const happened = { id, at: formatTime(at), kind, actor };
  if (entry.kind === "commented") return { ...happened, comment: commentView(entry.comment) };
  if (entry.kind === "resolved") {
    const { resolution, actionsTaken, exception } = entry;
    return { ...happened, resolution, actions_taken: [...actionsTaken], ...(exception && { exception }) };
  }
  if (entry.kind === "events_added") {
    const { count, severity, silentSince } = entry;
    const silence = silentSince === undefined ? {} : { silent_since: formatTime(silentSince) };
    return { ...happened, count, ...(severity && { severity }), ...silence };
  }
  return { ...happened, ...(rest as object) };
}
