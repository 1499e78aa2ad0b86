import { z } from "zod";
import { RESOLUTIONS, STATUSES } from "../model/alert-state.ts";
import { severitySchema } from "../model/event-schema.ts";

// The data of a shift report. The page shows it and nothing else, so that both formats agree.

/** Limits of the lists. Each has the number of all beside its rows. */
export const HANDLED_MAX = 50;
export const OPEN_MAX = 30;
export const RULES_SHOWN_MAX = 10;
export const TALKERS_MAX = 10;
export const SOURCES_MAX = 40;
export const MESSAGES_MAX = 20;
export const COMMENT_CHARACTERS_MAX = 200;

const count = z.int().min(0);
const time = z.iso.datetime();
const bySeverity = z
  .object({ critical: count, high: count, medium: count, low: count, info: count })
  .meta({ id: "SeverityCounts" });
const figure = z
  .object({ total: count, previous: count.describe("in the period before"), by_severity: bySeverity })
  .meta({ id: "ShiftFigure" });
const mean = z
  .object({
    value: z.number().nullable().describe("seconds; null if no alert counts"),
    previous: z.number().nullable().describe("in the period before"),
  })
  .meta({ id: "ShiftMean" });

const alertFields = {
  alert_id: z.string(),
  title: z.string(),
  severity: severitySchema,
  rule_name: z.string(),
  status: z.enum(STATUSES),
  assignee: z.string().nullable(),
};

export const shiftReportSchema = z
  .object({
    site: z.string(),
    generated_at: time,
    from: time,
    to: time,
    previous_from: time.describe("start of the period before, which ends at `from` and is as long"),
    timezone: z.string(),
    alerts: z.object({
      created: figure,
      acknowledged: figure.describe("first acknowledged in the range"),
      resolved: figure.describe("resolved in the range, and not reopened since"),
      resolutions: z.object({ true_positive: count, false_positive: count, benign: count, duplicate: count }),
      open: z
        .object({
          total: count,
          unacknowledged: count,
          at_start: count.describe("unresolved when the range began; a reopened alert counts as never resolved"),
          by_severity: bySeverity,
        })
        .describe("open and acknowledged alerts when the report was made"),
      seconds_to_first_look: mean.describe(
        "mean from creation to the first acknowledgement, or to the resolution without one, of alerts first looked at in the range",
      ),
      seconds_to_resolve: mean.describe("mean from creation to resolution, of alerts resolved in the range"),
    }),
    handled: z
      .object({
        total: count,
        items: z.array(
          z.object({
            ...alertFields,
            action: z.enum(["acknowledged", "resolved"]),
            at: time,
            by: z.string().nullable().describe("name of the key; null if unknown"),
            resolution: z.enum(RESOLUTIONS).nullable(),
            last_comment: z
              .object({
                author: z.string(),
                at: time,
                text: z.string().describe(`plain text on one line, at most ${COMMENT_CHARACTERS_MAX} characters`),
              })
              .nullable(),
          }),
        ),
      })
      .describe(`alerts acknowledged or resolved in the range, the last handled first, at most ${HANDLED_MAX}`),
    open: z
      .object({
        total: count,
        oldest_created_at: time.nullable(),
        items: z.array(z.object({ ...alertFields, created_at: time, event_count: count })),
      })
      .describe(`unresolved alerts when the report was made, oldest first; of more than ${OPEN_MAX}, the most severe`),
    trend: z.object({
      interval_seconds: count,
      intervals: z.array(z.object({ from: time, by_severity: bySeverity })),
    }),
    rules: z.object({
      items: z
        .array(
          z.object({
            rule_name: z.string(),
            alerts: count,
            false_positive_share: z
              .number()
              .nullable()
              .describe("from 0 to 1, of the resolved alerts created in the last 90 days; null if there are none"),
          }),
        )
        .describe(`rules with the most alerts created in the range, at most ${RULES_SHOWN_MAX}`),
      other_alerts: count.describe("alerts of all other rules"),
    }),
    traffic: z.object({
      bytes: count.describe("rounded beyond 2^53"),
      flow_count: count,
      previous_bytes: count.describe("in the period before"),
      interval_seconds: count,
      intervals: z.array(z.object({ from: time, bytes: count, previous_bytes: count })),
      talkers: z
        .array(z.object({ address: z.string(), hostname: z.string().nullable(), bytes: count, flow_count: count }))
        .describe(`sources of the most bytes, at most ${TALKERS_MAX}`),
    }),
    sources: z
      .object({
        total: count,
        in_trouble: count,
        items: z.array(
          z.object({
            name: z.string(),
            kind: z.string(),
            healthy: z.boolean(),
            per_minute: z.number().describe("packets, lines or items in the last minute"),
            last_seen: time.nullable(),
            summary: z.string(),
          }),
        ),
      })
      .describe(
        `devices that sent something since the start of the service, those in trouble first, at most ${SOURCES_MAX}`,
      ),
    losses: z.object({
      dropped: z
        .array(z.object({ what: z.string(), count }))
        .describe("data that was dropped or refused since the start of the service, by reason, most first"),
      missing: z.array(z.string()).describe("stored data of the range that was lost"),
      retention_paused: z.boolean(),
      retention_messages: z.array(z.string()).describe("why nothing is removed"),
      disk: z.object({ total_bytes: count, free_bytes: count, used_bytes: count }),
    }),
  })
  .meta({ id: "ShiftReport" });

export type ShiftReport = z.infer<typeof shiftReportSchema>;
