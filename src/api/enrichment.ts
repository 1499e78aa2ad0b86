import { z } from "zod";
import type { EnrichmentFault, EnrichmentStatus } from "../enrichment/status.ts";
import { formatTime } from "../lib/time.ts";
import { data, endpoint, type Endpoint } from "./endpoint.ts";

// How enrichment does: to see why an event has no country, or no score.

const counter = z.int().min(0);
const timeSchema = z.iso.datetime();
const faultSchema = z
  .object({ message: z.string(), at: timeSchema })
  .nullable()
  .describe("what went wrong last, until it is right again");

const enrichmentSchema = z
  .object({
    geo: z
      .object({
        builtin: z.boolean().describe("the file that comes with the service: countries, approximate"),
        kind: z.string().nullable().describe("what the file says it is; null: none could be read"),
        built_at: timeSchema.nullable(),
        read_at: timeSchema.nullable(),
        fault: faultSchema,
      })
      .nullable()
      .describe("null: off"),
    lists: z.array(
      z.object({
        name: z.string(),
        from: z.string(),
        addresses: counter,
        networks: counter,
        domains: counter,
        bad_lines: counter,
        left_out: counter.describe("entries beyond those that a list may have"),
        read_at: timeSchema.nullable(),
        fault: faultSchema,
      }),
    ),
    abuse_ipdb: z
      .object({
        per_day: counter,
        used_today: counter.describe("look-ups of this UTC day"),
        waiting: counter.describe("addresses that are to be looked up"),
        known: counter.describe("addresses whose report is at hand"),
        paused_until: timeSchema.nullable(),
        fault: faultSchema,
      })
      .nullable()
      .describe("null: there is no key"),
  })
  .meta({ id: "Enrichment" });

export function enrichmentEndpoints(status: () => EnrichmentStatus): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/v1/enrichment",
      operationId: "getEnrichment",
      tag: "Events",
      summary: "How enrichment goes",
      about: "The file of places, each list and the look-ups of reputations, each with its last fault in words.",
      scopes: ["events:read"],
      answers: { 200: { about: "what enrichment has to hand", data: enrichmentSchema } },
      handle: async () => data(toAnswer(status())),
    }),
  ];
}

const timeOrNull = (ms: number | null) => (ms === null ? null : formatTime(ms));
const faultOrNull = (fault: EnrichmentFault | null) => fault && { message: fault.message, at: formatTime(fault.atMs) };

function toAnswer({ geo, lists, reputation }: EnrichmentStatus): z.input<typeof enrichmentSchema> {
  return {
    geo: geo && {
      builtin: geo.isBuiltin,
      kind: geo.kind,
      built_at: timeOrNull(geo.builtAtMs),
      read_at: timeOrNull(geo.readAtMs),
      fault: faultOrNull(geo.fault),
    },
    lists: lists.map(({ badLines, leftOut, readAtMs, fault, ...list }) => ({
      ...list,
      bad_lines: badLines,
      left_out: leftOut,
      read_at: timeOrNull(readAtMs),
      fault: faultOrNull(fault),
    })),
    abuse_ipdb: reputation && {
      per_day: reputation.perDay,
      used_today: reputation.usedToday,
      waiting: reputation.waiting,
      known: reputation.known,
      paused_until: timeOrNull(reputation.pausedUntilMs),
      fault: faultOrNull(reputation.fault),
    },
  };
}
