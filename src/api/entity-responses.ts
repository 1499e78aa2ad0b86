import { z } from "zod";
import { ENTITY_KINDS } from "../model/entity.ts";
import { SEVERITIES } from "../model/event.ts";
import { STATUSES } from "../model/alert-state.ts";
import { alertSchema } from "../model/alert.ts";
import { ALERT_EXAMPLE } from "./alert-examples.ts";

// Response schemas and examples of the entity endpoints.

export const kindSchema = z.enum(ENTITY_KINDS);
const timeSchema = z.iso.datetime();
const count = (description: string) => z.number().describe(description).meta({ type: "integer", format: "int64" });

const summarySchema = z
  .object({
    kind: kindSchema,
    value: z.string(),
    first_seen: timeSchema,
    last_seen: timeSchema,
    events: z.int().describe("events that name it"),
  })
  .meta({ id: "EntitySummary" });

export const matchesSchema = z
  .object({
    entities: z.array(summarySchema).describe("times and counts are those of the range that was read"),
    total: z.int().describe("all matches in the range that was read"),
    from: timeSchema.describe("start of the range that was read"),
    to: timeSchema.describe("end of the range that was read"),
    complete: z
      .boolean()
      .describe("false: `from` is later than requested, or events of an earlier version are still being counted"),
  })
  .meta({ id: "EntityMatches" });

/** One number for each value; those without events are 0. */
const perValue = <Value extends string>(values: readonly Value[]) =>
  z.object(Object.fromEntries(values.map((value) => [value, z.int()])) as Record<Value, z.ZodInt>);

const series = z.object({
  bytes: z.array(count("one for each timestamp")),
  packets: z.array(count("one for each timestamp")),
  flow_count: z.array(count("one for each timestamp")),
});
const sums = { bytes: count("sum over the flows"), packets: count("sum over the flows"), flow_count: z.int() };
const peers = z.array(z.object({ address: z.string(), hostname: z.string().nullable(), ...sums }));

/** The parts of an entity that are asked for separately. */
export const ENTITY_PARTS = ["seen", "events", "related", "alerts", "traffic"] as const;
export type EntityPart = (typeof ENTITY_PARTS)[number];

export const entitySchema = z
  .object({
    kind: kindSchema,
    value: z.string().describe("addresses in canonical form"),
    from: timeSchema,
    to: timeSchema,
    interval_secs: z.int(),
    timestamps: z.array(timeSchema).describe("starts of the points of `events.over_time` and `traffic`"),
    seen: z
      .object({
        first_seen: timeSchema.nullable(),
        last_seen: timeSchema.nullable(),
        events: z.int(),
        complete: z.boolean().describe("false: events of an earlier version are still being counted"),
      })
      .nullable()
      .describe("in all stored events, regardless of the range; times are null if none names it"),
    events: z
      .object({
        total: z.int(),
        by_severity: perValue(SEVERITIES),
        by_type: z.array(z.object({ type: z.string(), events: z.int() })).describe("the most frequent first"),
        other_types: z.int().describe("events of types that are not listed"),
        over_time: z.array(z.int()).describe("one for each timestamp"),
      })
      .nullable(),
    related: z
      .object({
        entities: z
          .array(summarySchema)
          .describe("entities that occur in the same events: by kind, the most frequent first, then the last seen"),
        events_read: z.int().describe("the newest events of the range, which were read for this"),
        complete: z.boolean().describe("false: the range has more events, or some entities are left out"),
      })
      .nullable(),
    alerts: z
      .object({
        total: z.int(),
        by_status: perValue(STATUSES),
        by_severity: perValue(SEVERITIES),
        newest: z.array(alertSchema),
      })
      .nullable()
      .describe("alerts created in the range"),
    traffic: z
      .object({
        in: series.describe("flows to the address"),
        out: series.describe("flows from the address"),
        peers_in: peers.describe("sources of the most bytes"),
        peers_out: peers.describe("destinations of the most bytes"),
        ports: z.array(z.object({ port: z.string(), ...sums })).describe("service ports, as in top talkers"),
      })
      .nullable()
      .describe("null for other kinds than addresses"),
    hostname: z.string().nullable().describe("reverse DNS of an address; null: none, or not yet"),
    enrichment: z
      .looseObject({})
      .describe("what enrichment knows now: `geo`, `abuse_ipdb` and `lists`, as in events; empty: nothing"),
    unavailable: z
      .array(
        z.object({
          part: z.enum(ENTITY_PARTS),
          reason: z.enum(["missing_scope", "deadline", "refused"]),
          message: z.string(),
        }),
      )
      .describe("parts that are null although they apply, and why"),
  })
  .meta({ id: "EntityDetail" });

const SUMMARY_EXAMPLE = {
  kind: "user",
  value: "ada.morin",
  first_seen: "2026-10-20T06:58:12.000Z",
  last_seen: "2026-11-15T08:30:00.000Z",
  events: 412,
} as const;

export const MATCHES_EXAMPLE = {
  entities: [SUMMARY_EXAMPLE],
  total: 1,
  from: "2026-10-16T00:00:00.000Z",
  to: "2026-11-16T00:00:00.000Z",
  complete: true,
};

export const ENTITY_EXAMPLE = {
  kind: "address",
  value: "10.20.1.14",
  from: "2026-11-14T00:00:00.000Z",
  to: "2026-11-16T00:00:00.000Z",
  interval_secs: 86_400,
  timestamps: ["2026-11-14T00:00:00.000Z", "2026-11-15T00:00:00.000Z"],
  seen: {
    first_seen: "2026-10-20T06:58:12.000Z",
    last_seen: "2026-11-15T08:30:00.000Z",
    events: 96,
    complete: true,
  },
  events: {
    total: 3,
    by_severity: { critical: 0, high: 0, medium: 2, low: 0, info: 1 },
    by_type: [
      { type: "login_failure", events: 2 },
      { type: "dhcp_lease", events: 1 },
    ],
    other_types: 0,
    over_time: [1, 2],
  },
  related: { entities: [{ ...SUMMARY_EXAMPLE, events: 2 }], events_read: 3, complete: true },
  alerts: {
    total: 1,
    by_status: { open: 1, acknowledged: 0, resolved: 0 },
    by_severity: { critical: 0, high: 1, medium: 0, low: 0, info: 0 },
    newest: [ALERT_EXAMPLE],
  },
  traffic: {
    in: { bytes: [0, 4_120_000], packets: [0, 4_700], flow_count: [0, 60] },
    out: { bytes: [0, 134_080], packets: [0, 300], flow_count: [0, 58] },
    peers_in: [{ address: "192.0.2.80", hostname: null, bytes: 4_120_000, packets: 4_700, flow_count: 60 }],
    peers_out: [{ address: "192.0.2.80", hostname: null, bytes: 134_080, packets: 300, flow_count: 58 }],
    ports: [{ port: "443", bytes: 4_254_080, packets: 5_000, flow_count: 118 }],
  },
  hostname: "laptop-ada.example.org",
  enrichment: {},
  unavailable: [],
};
