import { z } from "zod";
import { CLASSES, SEVERITIES } from "./event.ts";

// Schemas of events. Separate from event.ts, so that threads that never validate events need not load zod.

const EVENT_TYPE_CHARACTERS_MAX = 128;

export const severitySchema = z.enum(SEVERITIES);
export const classSchema = z.enum(CLASSES);
export const typeSchema = z
  .string()
  .min(1, { abort: true })
  .max(EVENT_TYPE_CHARACTERS_MAX)
  .regex(
    /^[\p{L}\p{N}](?:[\p{L}\p{N}_.:/ -]*[\p{L}\p{N}_.:/-])?$/u,
    "must be letters, digits, spaces and _ . : / - only, start with a letter or digit and not end with a space",
  );

export const eventSchema = z
  .object({
    id: z.string().describe("evt_ and a time-ordered id"),
    type: z.string(),
    source: z.string(),
    class: classSchema,
    severity: severitySchema,
    timestamp: z.string().describe("ISO 8601, UTC"),
    raw: z.record(z.string(), z.unknown()).describe("fields reported by the source"),
    enrichment: z
      .looseObject({
        geo: z.looseObject({ country: z.string().optional(), city: z.string().optional() }).optional(),
        abuse_ipdb: z.looseObject({ score: z.number().int().optional() }).optional(),
        lists: z
          .array(z.string())
          .optional()
          .describe("names of the lists that contain an address or domain of the event"),
      })
      .describe("fields added by the service"),
  })
  .meta({ id: "Event" });
