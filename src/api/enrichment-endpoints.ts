import { z } from "zod";
import type { EnrichmentFault, EnrichmentStatus } from "../enrichment/enrichment-status.ts";
import { formatTime } from "../lib/time.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { data } from "./response.ts";

// The status of enrichment, to find out why an event has no country or no score.

const counter = z.int().min(0);
const timeSchema = z.iso.datetime();
const faultSchema = z
  .object({ message: z.string(), at: timeSchema })
  .nullable()
  .describe("the last failure; null once it succeeds again");

const enrichmentSchema = z
  .object({
    geo: z
      .object({
        builtin: z.boolean().describe("true: the bundled file, which has approximate countries only"),
        kind: z.string().nullable().describe("database type according to the file; null: no file could be read"),
        built_at: timeSchema.nullable(),
        read_at: timeSchema.nullable(),
        fault: faultSchema,
      })
      .nullable()
      .describe("null: disabled"),
    lists: z.array(
      z.object({
        name: z.string(),
        from: z.string().describe("file name, host of the URL, or `api`"),
        addresses: counter,
        networks: counter,
        domains: counter,
        bad_lines: counter,
        left_out: counter.describe("entries past the size limit of a list"),
        read_at: timeSchema.nullable(),
        fault: faultSchema,
      }),
    ),
    abuse_ipdb: z
      .object({
        per_day: counter,
        used_today: counter.describe("lookups on the current UTC day"),
        waiting: counter.describe("addresses queued for lookup"),
        known: counter.describe("addresses with a cached report"),
        paused_until: timeSchema.nullable(),
        fault: faultSchema,
      })
      .nullable()
      .describe("null: no API key is configured"),
  })
  .meta({ id: "Enrichment" });

export function enrichmentEndpoints(status: () => EnrichmentStatus): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/v1/enrichment",
      operationId: "getEnrichment",
      tag: "Events",
      summary: "Get the status of enrichment",
      description: "Returns the geolocation file, the lists and the reputation lookups, each with its last failure.",
      scopes: ["events:read"],
      responses: { 200: { description: "the status", data: enrichmentSchema } },
      handle: async () => data(enrichmentView(status())),
    }),
  ];
}

const timeOrNull = (ms: number | null) => (ms === null ? null : formatTime(ms));
const faultOrNull = (fault: EnrichmentFault | null) => fault && { message: fault.message, at: formatTime(fault.atMs) };

function enrichmentView({ geo, lists, reputation }: EnrichmentStatus): z.input<typeof enrichmentSchema> {
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
