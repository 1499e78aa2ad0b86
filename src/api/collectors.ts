import { z } from "zod";
import { DROP_REASONS, EXPORTER_STATES, type CollectorsStatus } from "../collectors/status.ts";
import { formatTime } from "../lib/time.ts";
import { data, endpoint, type Endpoint } from "./endpoint.ts";

// How the collectors do, and each of those who send to them: to see why a gateway's flows do not show up.

const counter = z.int().min(0);
const timeSchema = z.iso.datetime();
const dropsSchema = z
  .object(Object.fromEntries(DROP_REASONS.map((reason) => [reason, counter])))
  .describe("what arrived and did not become flows, by reason");

const exporterSchema = z
  .object({
    address: z.string(),
    versions: z.array(z.int()).describe("of the export: 5, 9, 10 (IPFIX), 105 (sFlow v5)"),
    state: z.enum(EXPORTER_STATES),
    summary: z.string().describe("how it does, in words"),
    packets: counter,
    records: counter,
    option_records: counter.describe("records that tell of the exporter itself, such as its sampling rate"),
    first_seen: timeSchema,
    last_seen: timeSchema.nullable().describe("null: connected, but silent"),
    last_record: timeSchema.nullable(),
    templates: counter,
    missing_templates: z.array(z.int()).describe("ids that data came for and that are not known yet"),
    waiting_sets: counter.describe("sets of data that are kept until their template comes"),
    gaps: counter.describe("how often numbers in the sequence were missing"),
    lost: counter.describe("packets, flows or records that went missing with them"),
    sampling_rate: z.number(),
    clock_offset_ms: z.int(),
    clock_corrected: z.boolean(),
    drops: dropsSchema,
    last_error: z.object({ message: z.string(), at: timeSchema }).nullable(),
  })
  .meta({ id: "FlowExporter" });

const collectorsSchema = z
  .object({
    listeners: z.array(
      z.object({
        name: z.enum(["netflow", "ipfix", "sflow"]),
        transport: z.enum(["udp", "tcp"]),
        address: z.string(),
        port: z.int(),
        packets: counter,
        bytes: counter,
        receive_buffer_bytes: counter.nullable(),
        connections: counter.nullable(),
      }),
    ),
    exporters: z.array(exporterSchema),
    refused: z
      .array(z.object({ address: z.string(), packets: counter, last_seen: timeSchema }))
      .describe("senders that are not among the allowed exporters, the last one seen first"),
    drops: dropsSchema,
    ring: z.object({ bytes: counter, used_bytes: counter }),
    windows: z.object({
      open_tuples: counter,
      waiting_rows: counter,
      written_rows: counter,
      folded_records: counter,
      late_records: counter,
      early_flushes: counter,
    }),
  })
  .meta({ id: "Collectors" });

export type StatusOfCollectors = () => CollectorsStatus | Promise<CollectorsStatus>;

export function collectorEndpoints(statusOfCollectors: StatusOfCollectors): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/v1/collectors",
      operationId: "getCollectors",
      tag: "Flows",
      summary: "How collecting goes",
      about: "Each exporter with what came from it, what is missing and the last error in words.",
      scopes: ["events:read"],
      answers: { 200: { about: "listeners, exporters and what was dropped", data: collectorsSchema } },
      handle: async () => data(toAnswer(await statusOfCollectors())),
    }),
  ];
}

const timeOrNull = (ms: number | null) => (ms === null ? null : formatTime(ms));

function toAnswer({
  listeners,
  exporters,
  refused,
  drops,
  ring,
  windows,
}: CollectorsStatus): z.input<typeof collectorsSchema> {
  return {
    listeners: listeners.map(({ receiveBufferBytes, ...listener }) => ({
      ...listener,
      receive_buffer_bytes: receiveBufferBytes,
    })),
    exporters: exporters.map((exporter) => ({
      address: exporter.address,
      versions: [...exporter.versions],
      state: exporter.state,
      summary: exporter.summary,
      packets: exporter.packets,
      records: exporter.records,
      option_records: exporter.optionRecords,
      first_seen: formatTime(exporter.firstSeenMs),
      last_seen: timeOrNull(exporter.lastSeenMs),
      last_record: timeOrNull(exporter.lastRecordMs),
      templates: exporter.templates,
      missing_templates: [...exporter.missingTemplates],
      waiting_sets: exporter.waitingSets,
      gaps: exporter.gaps,
      lost: exporter.lost,
      sampling_rate: exporter.samplingRate,
      clock_offset_ms: exporter.clockOffsetMs,
      clock_corrected: exporter.clockCorrected,
      drops: { ...exporter.drops },
      last_error: exporter.lastError && {
        message: exporter.lastError.message,
        at: formatTime(exporter.lastError.atMs),
      },
    })),
    refused: refused.map(({ address, packets, lastSeenMs }) => ({
      address,
      packets,
      last_seen: formatTime(lastSeenMs),
    })),
    drops: { ...drops },
    ring: { bytes: ring.bytes, used_bytes: ring.usedBytes },
    windows: {
      open_tuples: windows.openTuples,
      waiting_rows: windows.waitingRows,
      written_rows: windows.writtenRows,
      folded_records: windows.foldedRecords,
      late_records: windows.lateRecords,
      early_flushes: windows.earlyFlushes,
    },
  };
}
