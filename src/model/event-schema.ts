import { z } from "zod";
import { CLASSES, SEVERITIES } from "./event.ts";

// How events are checked and described. Apart from what they are, since threads that never check one need not load it.

const EVENT_TYPE_CHARACTERS_MAX = 128;

export const severitySchema = z.enum(SEVERITIES);
export const classSchema = z.enum(CLASSES);
export const typeSchema = z
  .string()
  .min(1, { abort: true })
  .max(EVENT_TYPE_CHARACTERS_MAX)
  .regex(
    /^[\p{L}\p{N}](?:[\p{L}\p{N}_.:/ -]*[\p{L}\p{N}_.:/-])?$/u,
    "letters, digits, spaces and _ . : / - only, beginning with a letter or digit and not ending with a space",
  );

export const eventSchema = z
  .object({
    id: z.string().describe("evt_ and a time-ordered id"),
    type: z.string(),
    source: z.string(),
    class: classSchema,
    severity: severitySchema,
    timestamp: z.string().describe("ISO 8601, UTC"),
    raw: z.record(z.string(), z.unknown()).describe("what the source said"),
    enrichment: z
      .looseObject({
        geo: z.looseObject({ country: z.string().optional(), city: z.string().optional() }).optional(),
        abuse_ipdb: z.looseObject({ score: z.number().int().optional() }).optional(),
        lists: z.array(z.string()).optional().describe("names of the lists that have an address or a domain of it"),
      })
      .describe("what the service added"),
  })
  .meta({ id: "Event" });
