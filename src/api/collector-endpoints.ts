import { z } from "zod";
import { DROP_REASONS, EXPORTER_STATES, type CollectorsStatus } from "../collectors/flows/flow-status.ts";
import type { LastLine, LineReceiverStatus, LastRefusal, PostStatus } from "../collectors/lines/line-status.ts";
import type { UnparsedSample } from "../collectors/lines/unparsed-samples.ts";
import {
  FILE_STATES,
  LINE_COLLECTORS,
  LINE_OUTCOMES,
  LINE_TRANSPORTS,
  SENDER_STATES,
  CollectTally,
} from "../collectors/lines/line-status.ts";
import { REFUSAL_REASONS } from "../collectors/formats/reading.ts";
import { TAUGHT_FAULT_KINDS, type TaughtStatus } from "../collectors/formats/taught-status.ts";
import { HISTORY_MINUTES, type RateStatus } from "../lib/minute-counts.ts";
import { formatTime } from "../lib/time.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { data } from "./response.ts";

// The status of the collectors and their senders, to find out why the flows of a gateway are missing.

const counter = z.int().min(0);
const timeSchema = z.iso.datetime();
const dropsSchema = z
  .object(Object.fromEntries(DROP_REASONS.map((reason) => [reason, counter])))
  .describe("input that did not become flows, by reason");

const rateShape = {
  per_minute: counter.describe("about how many arrived in the last 60 seconds"),
  history: z
    .array(counter)
    .describe(
      `how many arrived in each of the last ${HISTORY_MINUTES} minutes, oldest first; the last one is the current minute`,
    ),
};

const exporterSchema = z
  .object({
    address: z.string(),
    versions: z.array(z.int()).describe("export versions: 5, 9, 10 (IPFIX), 105 (sFlow v5), 106 (EVE)"),
    state: z.enum(EXPORTER_STATES),
    summary: z.string().describe("the state in words"),
    packets: counter,
    ...rateShape,
    records: counter,
    option_records: counter.describe("records about the exporter itself, such as its sampling rate"),
    first_seen: timeSchema,
    last_seen: timeSchema.nullable().describe("null: connected, but nothing received yet"),
    last_record: timeSchema.nullable(),
    sessions: counter.describe("source ports; each has its own templates and sequence numbers"),
    templates: counter,
    missing_templates: z.array(z.int()).describe("ids of templates that data refers to and that have not arrived yet"),
    absent_templates: z
      .array(
        z.object({
          id: z.int(),
          since: timeSchema.describe("first data that needed it"),
          last_data: timeSchema,
          dropped_sets: counter,
          reason: z.string().nullable().describe("null: the exporter has not sent it"),
        }),
      )
      .describe("the missing templates in detail"),
    waiting_sets: counter.describe("data sets kept until their template arrives"),
    gaps: counter.describe("gaps in the sequence numbers"),
    lost: counter.describe("packets, flows or records lost in these gaps"),
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
  nothing: counter.describe("items that were understood and contain nothing new"),
  unparsed: counter.describe("lines that no format understood, whether they are kept or not"),
  generic: counter.describe(
    "lines of unknown programs that are JSON, pairs or CSV: their fields were read by common names",
  ),
  refused: z
    .object(Object.fromEntries(REFUSAL_REASONS.map((reason) => [reason, counter])))
    .describe("input that did not become events, by reason"),
};
const lastRefusalSchema = z
  .object({
    reason: z.enum(REFUSAL_REASONS),
    message: z.string(),
    sample: z.string().describe("the start of the refused input"),
    at: timeSchema,
  })
  .nullable();

const lastLineSchema = z
  .object({
    text: z.string().describe("its start as plain text: control characters replaced, secrets in JSON redacted"),
    at: timeSchema,
    outcome: z.enum(LINE_OUTCOMES).describe("nothing: understood, without news"),
    format: z
      .string()
      .nullable()
      .describe("format that understood it, such as cef, eve or the name of the webhook; null: none did"),
    type: z.string().nullable().describe("type of its first event; unparsed: kept, but not understood"),
    message: z.string().nullable().describe("refused: why"),
  })
  .nullable()
  .describe("the last input and how it was understood");

const unparsedSamplesSchema = z
  .array(
    z.object({
      text: z.string().describe("the start of the newest such line: control characters replaced, secrets redacted"),
      program: z.string().nullable().describe("program that wrote it; null: the line names none"),
      at: timeSchema,
      lines: counter.describe("lines that begin alike"),
    }),
  )
  .describe(
    "kinds of lines that no format understood, at most 5, the most frequent first; a format of your own can read them",
  );

const senderSchema = z
  .object({
    address: z.string().describe("`others` stands for the senders past the limit"),
    collector: z.enum(LINE_COLLECTORS),
    transport: z.enum(LINE_TRANSPORTS),
    state: z.enum(SENDER_STATES),
    summary: z.string().describe("the state in words"),
    connections: counter,
    waiting: counter.describe("lines received and not yet processed"),
    ...countsShape,
    ...rateShape,
    first_seen: timeSchema,
    last_seen: timeSchema,
    last_line: lastLineSchema,
    unparsed_samples: unparsedSamplesSchema,
    last_refusal: lastRefusalSchema,
  })
  .meta({ id: "LineSender" });

const taughtSchema = z
  .object({
    folder: z.string().nullable().describe("collectors.formats_dir; null: off"),
    formats: z
      .array(
        z.object({
          name: z.string(),
          about: z.string(),
          file: z.string(),
          line: z.int(),
          loaded_at: timeSchema,
          kept: z.boolean().describe("true: the file has changed since and has faults; this is its last good version"),
          replaces_shipped: z
            .boolean()
            .describe("true: it is in use instead of the format of this name that is shipped"),
          lines: counter.describe("lines that it has read since the start, over syslog"),
        }),
      )
      .describe("formats in use, in the order in which they are tried"),
    faults: z
      .array(
        z.object({
          kind: z
            .enum(TAUGHT_FAULT_KINDS)
            .describe(
              "refused: not in use as written; test: a test in the file fails; overlap: it reads lines of another format",
            ),
          file: z.string().describe("empty: the folder"),
          line: z.int(),
          path: z.string().describe("the field; empty: the whole file"),
          message: z.string(),
        }),
      )
      .describe("at most 100"),
  })
  .meta({ id: "TaughtFormats" });

const collectorsSchema = z
  .object({
    listeners: z.array(
      z.object({
        name: z.enum(["netflow", "ipfix", "sflow", ...LINE_COLLECTORS]),
        transport: z.enum(["udp", "tcp", "tls", "unix"]),
        address: z.string().describe("for a Unix socket, its path"),
        port: z.int().nullable().describe("null for a Unix socket"),
        packets: counter.describe("datagrams, or messages of streams"),
        bytes: counter,
        receive_buffer_bytes: counter.nullable(),
        connections: counter.nullable(),
        system_drops: counter
          .nullable()
          .describe(
            "datagrams dropped by the operating system because they arrived faster than they were read; null: unknown",
          ),
      }),
    ),
    exporters: z.array(exporterSchema),
    refused: z
      .array(z.object({ address: z.string(), packets: counter, last_seen: timeSchema }))
      .describe("senders that are not allowed exporters, most recently seen first"),
    drops: dropsSchema,
    ring: z.object({ bytes: counter, used_bytes: counter }),
    windows: z.object({
      open_tuples: counter,
      waiting_rows: counter,
      written_rows: counter,
      folded_records: counter,
      late_records: counter,
      early_flushes: counter,
      journal_failures: counter.describe("failed writes of the journal that protects open windows against a crash"),
      summary_entries: counter.describe("hosts, peers and ports that the host summaries hold in memory"),
      uncounted_rows: counter.describe(
        "rows missing from summaries in whole or in part: their minute was no longer in memory, or the memory limit was reached",
      ),
      hosts_left: counter.describe("busy hosts without a summary because too many were busy at once"),
    }),
    collected: z.object(countsShape).describe("totals for syslog, EVE and webhooks"),
    senders: z.array(senderSchema).describe("senders of syslog and EVE"),
    webhooks: z.array(
      z.object({
        name: z.string(),
        requests: counter,
        ...countsShape,
        ...rateShape,
        last_seen: timeSchema.nullable(),
        last_line: lastLineSchema,
        unparsed_samples: unparsedSamplesSchema,
        last_refusal: lastRefusalSchema,
      }),
    ),
    eve_file: z
      .object({
        path: z.string(),
        state: z.enum(FILE_STATES),
        summary: z.string(),
        offset: counter.describe("everything before this offset is stored"),
        size: counter,
        lag_bytes: counter,
      })
      .nullable()
      .describe("the tailed file; null: none"),
    taught_formats: taughtSchema,
  })
  .meta({ id: "Collectors" });

export interface CollectorStatuses {
  readonly flows: CollectorsStatus;
  readonly lines: LineReceiverStatus;
  readonly posts: readonly PostStatus[];
  readonly taught: TaughtStatus;
}

export type GetCollectorStatuses = () => Promise<CollectorStatuses>;

export function collectorEndpoints(getStatuses: GetCollectorStatuses): Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/v1/collectors",
      operationId: "getCollectors",
      tag: "Collectors",
      summary: "Get the status of the collectors",
      description:
        "Lists each exporter and sender with its counters, its rate over the last hour, the last line received and how it " +
        "was understood, missing data and last error.",
      scopes: ["events:read"],
      responses: {
        200: { description: "listeners, exporters, senders, drops and refusals", data: collectorsSchema },
      },
      handle: async () => data(collectorsView(await getStatuses())),
    }),
  ];
}

const timeOrNull = (ms: number | null) => (ms === null ? null : formatTime(ms));

const refusalOrNull = (refusal: LastRefusal | null) =>
  refusal && { reason: refusal.reason, message: refusal.message, sample: refusal.sample, at: formatTime(refusal.atMs) };

const rateView = ({ perMinute, history }: RateStatus) => ({ per_minute: perMinute, history: [...history] });

function lastLineView(line: LastLine | null): z.input<typeof lastLineSchema> {
  if (line === null) return null;
  const { text, atMs, outcome, format, type, message } = line;
  return { text, at: formatTime(atMs), outcome, format, type, message };
}

const samplesView = (samples: readonly UnparsedSample[]) =>
  samples.map(({ text, program, atMs, lines }) => ({ text, program, at: formatTime(atMs), lines }));

function collectorsView({ flows, lines, posts, taught }: CollectorStatuses): z.input<typeof collectorsSchema> {
  return { ...flowsView(flows, lines), ...linesView(lines, posts), taught_formats: taughtView(taught, lines) };
}

function taughtView(
  { folder, formats, faults }: TaughtStatus,
  lines: LineReceiverStatus,
): z.input<typeof taughtSchema> {
  return {
    folder,
    formats: formats.map(({ readAtMs, isKept, replacesShipped, ...format }) => ({
      ...format,
      loaded_at: formatTime(readAtMs),
      kept: isKept,
      replaces_shipped: replacesShipped,
      lines: lines.formats[format.name] ?? 0,
    })),
    faults: [...faults],
  };
}

function linesView({ senders, total, file }: LineReceiverStatus, posts: readonly PostStatus[]) {
  const collected = new CollectTally();
  for (const counts of [total, ...posts]) collected.add(counts);
  return {
    collected: collected.counts(),
    senders: senders.map(({ firstSeenMs, lastSeenMs, lastRefusal, lastLine, unparsedSamples, rate, ...sender }) => ({
      ...sender,
      ...rateView(rate),
      last_line: lastLineView(lastLine),
      unparsed_samples: samplesView(unparsedSamples),
      refused: { ...sender.refused },
      first_seen: formatTime(firstSeenMs),
      last_seen: formatTime(lastSeenMs),
      last_refusal: refusalOrNull(lastRefusal),
    })),
    webhooks: posts.map(({ lastSeenMs, lastRefusal, lastLine, unparsedSamples, rate, ...post }) => ({
      ...post,
      ...rateView(rate),
      last_line: lastLineView(lastLine),
      unparsed_samples: samplesView(unparsedSamples),
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

function flowsView(
  { listeners, exporters, refused, drops, ring, windows }: CollectorsStatus,
  { listeners: lineListeners }: LineReceiverStatus,
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
      ...rateView(exporter.rate),
      records: exporter.records,
      option_records: exporter.optionRecords,
      first_seen: formatTime(exporter.firstSeenMs),
      last_seen: timeOrNull(exporter.lastSeenMs),
      last_record: timeOrNull(exporter.lastRecordMs),
      sessions: exporter.sessions,
      templates: exporter.templates,
      missing_templates: [...exporter.missingTemplates],
      absent_templates: exporter.absentTemplates.map(({ id, sinceMs, lastMs, droppedSets, reason }) => ({
        id,
        since: formatTime(sinceMs),
        last_data: formatTime(lastMs),
        dropped_sets: droppedSets,
        reason,
      })),
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
