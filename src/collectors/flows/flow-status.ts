import type { RateStatus } from "../../lib/minute-counts.ts";

// The status of the flow collectors and of the exporters that send to them.

/** Reasons why received data did not become flows. Every drop counts under exactly one of them. */
export const DROP_REASONS = [
  "ring_full",
  "not_allowed",
  "too_many_exporters",
  "exporter_evicted",
  "too_many_connections",
  "unknown_version",
  "truncated",
  "malformed",
  "no_template",
  "bad_template",
  "template_evicted",
  "template_expired",
  "template_file_damaged",
  "no_address",
  "too_late",
] as const;

export type DropReason = (typeof DROP_REASONS)[number];

/** Reasons that mean that an exporter's data cannot be decoded. The others concern limits, or data that was decoded. */
const DECODING_FAILURES: ReadonlySet<DropReason> = new Set([
  "unknown_version",
  "truncated",
  "malformed",
  "no_template",
  "bad_template",
]);

export const isDecodingFailure = (reason: DropReason) => DECODING_FAILURES.has(reason);

export type Drops = Readonly<Record<DropReason, number>>;

/** The message for a flow that ended too long ago to be added to a window. */
export function lateMessage(lateMaxMs: number): string {
  return `a flow ended more than ${lateMaxMs / 1000} s before it was reported (flows.late_seconds)`;
}

/** The health of an exporter in one word; `summary` explains it in a sentence. */
export const EXPORTER_STATES = ["receiving", "no_template", "no_records", "failing", "silent"] as const;

export type ExporterState = (typeof EXPORTER_STATES)[number];

/** 5, 9, 10 (IPFIX), 105 (sFlow v5), 106 (EVE): as in FlowRows. */
export type FlowVersion = 5 | 9 | 10 | 105 | 106;

export interface TimedMessage {
  readonly message: string;
  readonly atMs: number;
}

export interface MissingTemplate {
  readonly id: number;
  /** Times of the first and the last data for it. */
  readonly sinceMs: number;
  readonly lastMs: number;
  /** Data sets that were dropped because it did not arrive. */
  readonly droppedSets: number;
  /** Why it is not there; null if the exporter has not sent it. */
  readonly reason: string | null;
}

export interface ExporterStatus {
  readonly address: string;
  /** Export versions seen from it. */
  readonly versions: readonly FlowVersion[];
  readonly state: ExporterState;
  readonly summary: string;
  readonly packets: number;
  /** Of packets. */
  readonly rate: RateStatus;
  /** Flow records decoded; a bidirectional record counts once. */
  readonly records: number;
  /** Records that describe the exporter rather than traffic. */
  readonly optionRecords: number;
  readonly firstSeenMs: number;
  /** When the last packet arrived; null if there is only a connection. */
  readonly lastSeenMs: number | null;
  readonly lastRecordMs: number | null;
  /** Ports that it sends from, as far as they are known: each has its own templates and sequence numbers. */
  readonly sessions: number;
  readonly templates: number;
  /** Ids of templates that data needs and that are not known yet. */
  readonly missingTemplates: readonly number[];
  /** The same in detail. */
  readonly absentTemplates: readonly MissingTemplate[];
  /** Data sets kept until their template arrives. */
  readonly waitingSets: number;
  /** Gaps in the sequence numbers, and the units (packets, flows or records) missing in them. */
  readonly gaps: number;
  readonly lost: number;
  /** The last sampling rate applied; 1 without sampling. */
  readonly samplingRate: number;
  /** The offset of its clock from ours; beyond the configured skew its times are corrected by this. */
  readonly clockOffsetMs: number;
  readonly clockCorrected: boolean;
  readonly drops: Drops;
  readonly lastError: TimedMessage | null;
}

export interface ListenerStatus {
  readonly name: "netflow" | "ipfix" | "sflow";
  readonly transport: "udp" | "tcp";
  readonly address: string;
  readonly port: number;
  readonly packets: number;
  readonly bytes: number;
  /** The receive buffer that the system granted; null for TCP. */
  readonly receiveBufferBytes: number | null;
  /** Open connections; null for UDP. */
  readonly connections: number | null;
  /** Datagrams that the system dropped because they arrived faster than they were read; null if it does not report them. */
  readonly systemDrops: number | null;
}

export interface WindowsStatus {
  /** Tuples in open windows. */
  readonly openTuples: number;
  /** Rows of closed windows that are not stored yet. */
  readonly waitingRows: number;
  readonly writtenRows: number;
  /** Records added to overflow rows because the table was full. */
  readonly foldedRecords: number;
  readonly lateRecords: number;
  readonly earlyFlushes: number;
  /** Failed writes of open windows to the journal. */
  readonly journalFailures: number;
  /** Hosts, peers and ports that host summaries hold in memory. */
  readonly summaryEntries: number;
  /** Rows that no summary counts in full: their minute was evicted, or the memory limit was reached. */
  readonly uncountedRows: number;
  /** Busy hosts without a summary because too many were busy at once. */
  readonly hostsLeft: number;
}

/** Totals over all exporters since the start, evicted ones included. */
export interface ExporterTotals {
  readonly records: number;
  readonly lost: number;
}

export interface CollectorsStatus {
  readonly listeners: readonly ListenerStatus[];
  readonly exporters: readonly ExporterStatus[];
  /** Senders that are not allowed, most recently seen first. */
  readonly refused: readonly { readonly address: string; readonly packets: number; readonly lastSeenMs: number }[];
  /** Drops over all senders, those not listed above included. */
  readonly drops: Drops;
  readonly totals: ExporterTotals;
  readonly ring: { readonly bytes: number; readonly usedBytes: number };
  readonly windows: WindowsStatus;
}

export function noDrops(): Record<DropReason, number> {
  return Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as Record<DropReason, number>;
}
