import { z } from "zod";
import { DROP_REASONS, EXPORTER_STATES, type CollectorsStatus } from "../collectors/status.ts";
import type { InletStatus, LastRefusal, PostStatus } from "../collectors/inlet/status.ts";
import { FILE_STATES, LINE_COLLECTORS, LINE_TRANSPORTS, SENDER_STATES, Tally } from "../collectors/inlet/status.ts";
import { REFUSAL_REASONS } from "../collectors/reading.ts";
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
    versions: z.array(z.int()).describe("of the export: 5, 9, 10 (IPFIX), 105 (sFlow v5), 106 (EVE)"),
    state: z.enum(EXPORTER_STATES),
    summary: z.string().describe("how it does, in words"),
    packets: counter,
    records: counter,
    option_records: counter.describe("records that tell of the exporter itself, such as its sampling rate"),
    first_seen: timeSchema,
    last_seen: timeSchema.nullable().describe("null: connected, but silent"),
    last_record: timeSchema.nullable(),
    sessions: counter.describe("ports that it sends from; each has templates and a numbering of its own"),
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

const countsShape = {
  lines: counter,
  events: counter,
  flows: counter,
  nothing: counter.describe("understood, and nothing new in it"),
  refused: z
    .object(Object.fromEntries(REFUSAL_REASONS.map((reason) => [reason, counter])))
    .describe("what came and did not become events, by reason"),
};
const lastRefusalSchema = z
  .object({
    reason: z.enum(REFUSAL_REASONS),
    message: z.string(),
    sample: z.string().describe("the beginning of what was refused"),
    at: timeSchema,
  })
  .nullable();

const senderSchema = z
  .object({
    address: z.string().describe("others: those that there was no room to remember"),
    collector: z.enum(LINE_COLLECTORS),
    transport: z.enum(LINE_TRANSPORTS),
    state: z.enum(SENDER_STATES),
    summary: z.string().describe("how it does, in words"),
    connections: counter,
    waiting: counter.describe("lines that are here and not handed on yet"),
    ...countsShape,
    first_seen: timeSchema,
    last_seen: timeSchema,
    last_refusal: lastRefusalSchema,
  })
  .meta({ id: "LineSender" });

const collectorsSchema = z
  .object({
    listeners: z.array(
      z.object({
        name: z.enum(["netflow", "ipfix", "sflow", ...LINE_COLLECTORS]),
        transport: z.enum(["udp", "tcp", "tls", "unix"]),
        address: z.string().describe("of a Unix socket: its path"),
        port: z.int().nullable().describe("null: a Unix socket"),
        packets: counter.describe("datagrams, or messages out of streams"),
        bytes: counter,
        receive_buffer_bytes: counter.nullable(),
        connections: counter.nullable(),
        system_drops: counter
          .nullable()
          .describe(
            "datagrams that the system dropped since they came faster than they were read; null: it does not say",
          ),
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
      journal_failures: counter.describe("how often open windows could not be written down against a crash"),
      summary_entries: counter.describe("hosts, peers and ports that summaries of hosts hold in memory"),
      uncounted_rows: counter.describe(
        "rows that no summary counts, or not fully: their minute is no longer in memory, or there was no room for them",
      ),
      hosts_left: counter.describe("busy hosts that got no summary since too many were busy at once"),
    }),
    collected: z.object(countsShape).describe("what syslog, EVE and webhooks brought, by everyone"),
    senders: z.array(senderSchema).describe("who sends syslog and EVE"),
    webhooks: z.array(
      z.object({
        name: z.string(),
        requests: counter,
        ...countsShape,
        last_seen: timeSchema.nullable(),
        last_refusal: lastRefusalSchema,
      }),
    ),
    eve_file: z
      .object({
        path: z.string(),
        state: z.enum(FILE_STATES),
        summary: z.string(),
        offset: counter.describe("all before it is stored"),
        size: counter,
        lag_bytes: counter,
      })
      .nullable()
      .describe("the file that is followed; null: none"),
  })
  .meta({ id: "Collectors" });

export interface AllCollectors {
  readonly flows: CollectorsStatus;
  readonly lines: InletStatus;
  readonly posts: readonly PostStatus[];
}

export type StatusOfCollectors = () => Promise<AllCollectors>;

export function collectorEndpoints(statusOfCollectors: StatusOfCollectors): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/v1/collectors",
      operationId: "getCollectors",
      tag: "Collectors",
      summary: "How collecting goes",
      about: "Each exporter and each sender with what came from it, what is missing and the last error in words.",
      scopes: ["events:read"],
      answers: {
        200: { about: "listeners, exporters, senders and what was dropped or refused", data: collectorsSchema },
      },
      handle: async () => data(toAnswer(await statusOfCollectors())),
    }),
  ];
}

const timeOrNull = (ms: number | null) => (ms === null ? null : formatTime(ms));

const refusalOrNull = (refusal: LastRefusal | null) =>
  refusal && { reason: refusal.reason, message: refusal.message, sample: refusal.sample, at: formatTime(refusal.atMs) };

function toAnswer({ flows, lines, posts }: AllCollectors): z.input<typeof collectorsSchema> {
  return { ...flowsAnswer(flows, lines), ...linesAnswer(lines, posts) };
}

function linesAnswer({ senders, total, file }: InletStatus, posts: readonly PostStatus[]) {
  const collected = new Tally();
  for (const counts of [total, ...posts]) collected.add(counts);
  return {
    collected: collected.counts(),
    senders: senders.map(({ firstSeenMs, lastSeenMs, lastRefusal, ...sender }) => ({
      ...sender,
      refused: { ...sender.refused },
      first_seen: formatTime(firstSeenMs),
      last_seen: formatTime(lastSeenMs),
      last_refusal: refusalOrNull(lastRefusal),
    })),
    webhooks: posts.map(({ lastSeenMs, lastRefusal, ...post }) => ({
      ...post,
      refused: { ...post.refused },
      last_seen: timeOrNull(lastSeenMs),
      last_refusal: refusalOrNull(lastRefusal),
    })),
    eve_file: file && {
      path: file.path,
      state: file.state,
      summary: file.summary,
      offset: file.offset,
      size: file.size,
      lag_bytes: file.lagBytes,
    },
  };
}

function flowsAnswer(
  { listeners, exporters, refused, drops, ring, windows }: CollectorsStatus,
  { listeners: lineListeners }: InletStatus,
) {
  return {
    listeners: [...listeners, ...lineListeners].map(({ receiveBufferBytes, systemDrops, ...listener }) => ({
      ...listener,
      receive_buffer_bytes: receiveBufferBytes,
      system_drops: systemDrops,
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
      sessions: exporter.sessions,
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
      journal_failures: windows.journalFailures,
      summary_entries: windows.summaryEntries,
      uncounted_rows: windows.uncountedRows,
      hosts_left: windows.hostsLeft,
    },
  };
}
