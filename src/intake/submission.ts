import { z } from "zod";
import { faultsOf, WITH_NAMES, type Fault } from "../lib/fault.ts";
import { formatTime, parseTime } from "../lib/time.ts";
import type { ClockBounds } from "../model/clock.ts";
import {
  CLASSES,
  CUSTOM_SOURCE,
  SEVERITIES,
  type EventClass,
  type EventDraft,
  type JsonObject,
  type Severity,
} from "../model/event.ts";
import { classSchema, severitySchema, typeSchema } from "../model/event-schema.ts";
import { timeSchema } from "../model/time-bound.ts";

// Validates an event as submitted by a client. The schema is authoritative and words the faults; the fast check gives the same
// answer without allocating, since a batch needs it ten thousand times.

/** Levels of objects and arrays in `data`, itself included. */
export const DATA_DEPTH_MAX = 32;

export const submissionSchema = z
  .strictObject({
    type: typeSchema.describe("event type identifier").meta({ examples: ["login_failure"] }),
    source: z
      .literal(CUSTOM_SOURCE, { error: `must be ${CUSTOM_SOURCE}: other sources are collected, not submitted` })
      .describe(`always ${CUSTOM_SOURCE}`),
    severity: severitySchema.default("info"),
    class: classSchema.default("security"),
    timestamp: timeSchema
      .optional()
      .describe("time of the event; default: now; at most 5 minutes ahead, and within the retention period"),
    data: z
      .record(z.string(), z.unknown())
      .describe(
        `any JSON object, at most ${DATA_DEPTH_MAX} levels deep including itself; becomes raw; integers keep every digit`,
      ),
  })
  .meta({ id: "Submission" });

export type CheckedSubmission =
  | { readonly draft: EventDraft; readonly faults?: undefined }
  | { readonly draft?: undefined; readonly faults: readonly Fault[] };

/** `dataText` is the submission's data as JSON, if the caller has it. */
export function checkSubmission(value: unknown, bounds: ClockBounds, dataText?: string): CheckedSubmission {
  if (isSubmission(value)) {
    const timestampMs = value.timestamp === undefined ? bounds.now : parseTime(value.timestamp)!;
    if (timestampMs >= bounds.earliest && timestampMs <= bounds.latest) {
      return {
        draft: {
          type: value.type,
          source: value.source,
          severity: value.severity ?? "info",
          class: value.class ?? "security",
          timestampMs,
          raw: value.data,
          rawText: dataText,
          enrichment: {},
        },
      };
    }
  }
  const parsed = submissionSchema.safeParse(value, { ...WITH_NAMES, reportInput: true });
  return { faults: [...(parsed.success ? [] : faultsOf(parsed.error)), ...clockFaults(value, bounds)] };
}

function clockFaults(value: unknown, { earliest, latest }: ClockBounds): Fault[] {
  const given = typeof value === "object" && value !== null && "timestamp" in value ? value.timestamp : undefined;
  const ms = typeof given === "string" ? parseTime(given) : undefined;
  if (ms === undefined) return [];
  if (ms > latest) return [{ field: "timestamp", message: "is more than 5 minutes ahead of the server's clock" }];
  if (ms >= earliest) return [];
  return [{ field: "timestamp", message: `is before the retention period, which begins at ${formatTime(earliest)}` }];
}

interface Submission {
  readonly type: string;
  readonly source: typeof CUSTOM_SOURCE;
  readonly severity?: Severity;
  readonly class?: EventClass;
  readonly timestamp?: string;
  readonly data: JsonObject;
}

const severities: ReadonlySet<unknown> = new Set(SEVERITIES);
const classes: ReadonlySet<unknown> = new Set(CLASSES);
// A few types make up most events, and a set lookup is cheaper than a pattern with Unicode classes.
const TYPES_CACHED_MAX = 1000;
const knownTypes = new Set<string>();

/** Gives the same answer as the schema, for every JSON value. */
export function isSubmission(value: unknown): value is Submission {
  if (!isObject(value)) return false;
  for (const key in value) {
    switch (key) {
      case "type":
      case "source":
      case "data":
        break;
      case "severity":
        if (!severities.has(value[key])) return false;
        break;
      case "class":
        if (!classes.has(value[key])) return false;
        break;
      case "timestamp":
        if (typeof value[key] !== "string" || parseTime(value[key]) === undefined) return false;
        break;
      default:
        return false;
    }
  }
  return value["source"] === CUSTOM_SOURCE && isObject(value["data"]) && isType(value["type"]);
}

function isType(value: unknown): boolean {
  if (typeof value !== "string") return false;
  if (knownTypes.has(value)) return true;
  if (!typeSchema.safeParse(value).success) return false;
  if (knownTypes.size < TYPES_CACHED_MAX) knownTypes.add(value);
  return true;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
