// What the collectors say of themselves and of those who send to them.

/** Why something that arrived did not become flows. Every drop is counted under exactly one of these. */
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

/** Reasons that say that what an exporter sends cannot be read. Others are about room, or about what was read. */
const DECODING_FAILURES: ReadonlySet<DropReason> = new Set([
  "unknown_version",
  "truncated",
  "malformed",
  "no_template",
  "bad_template",
]);

export const isDecodingFailure = (reason: DropReason) => DECODING_FAILURES.has(reason);

export type Drops = Readonly<Record<DropReason, number>>;

/** Of a flow that nothing is added to any more. */
export function lateWords(lateMaxMs: number): string {
  return `a flow ended more than ${lateMaxMs / 1000} s before it was told of (flows.late_seconds)`;
}

/** How a person would say in a word how an exporter does; `summary` says it in a sentence. */
export const EXPORTER_STATES = ["receiving", "no_template", "no_records", "failing", "silent"] as const;

export type ExporterState = (typeof EXPORTER_STATES)[number];

/** 5, 9, 10 (IPFIX), 105 (sFlow v5), 106 (EVE): as in FlowRows. */
export type FlowVersion = 5 | 9 | 10 | 105 | 106;

export interface ExporterStatus {
  readonly address: string;
  /** Export versions seen from it. */
  readonly versions: readonly FlowVersion[];
  readonly state: ExporterState;
  readonly summary: string;
  readonly packets: number;
  /** Flow records decoded; a bidirectional record counts once. */
  readonly records: number;
  /** Records that describe the exporter rather than traffic. */
  readonly optionRecords: number;
  readonly firstSeenMs: number;
  /** When a packet last came; null where there is only a connection. */
  readonly lastSeenMs: number | null;
  readonly lastRecordMs: number | null;
  /** Ports that it sends from, as far as they are remembered: each has templates and a numbering of its own. */
  readonly sessions: number;
  readonly templates: number;
  /** Ids of templates that data came for and that are not known yet. */
  readonly missingTemplates: readonly number[];
  /** Sets of data that are kept until their template comes. */
  readonly waitingSets: number;
  /** How often numbers in the sequence were missing, and how many units (packets, flows or records) that were. */
  readonly gaps: number;
  readonly lost: number;
  /** The last sampling rate that was applied; 1 where every packet counts. */
  readonly samplingRate: number;
  /** How far its clock is from ours; beyond the bound its times are corrected by this. */
  readonly clockOffsetMs: number;
  readonly clockCorrected: boolean;
  readonly drops: Drops;
  readonly lastError: { readonly message: string; readonly atMs: number } | null;
}

export interface ListenerStatus {
  readonly name: "netflow" | "ipfix" | "sflow";
  readonly transport: "udp" | "tcp";
  readonly address: string;
  readonly port: number;
  readonly packets: number;
  readonly bytes: number;
  /** What the system gave for the receive buffer; null for TCP. */
  readonly receiveBufferBytes: number | null;
  /** Open connections; null for UDP. */
  readonly connections: number | null;
  /** Datagrams that the system dropped since they came faster than they were read; null where it does not say. */
  readonly systemDrops: number | null;
}

export interface WindowsStatus {
  /** Tuples in windows that are not closed yet. */
  readonly openTuples: number;
  /** Rows of closed windows that the store has not taken yet. */
  readonly waitingRows: number;
  readonly writtenRows: number;
  /** Records that were added to "other" rows since the table was full. */
  readonly foldedRecords: number;
  readonly lateRecords: number;
  readonly earlyFlushes: number;
  /** How often open windows could not be written down against a crash. */
  readonly journalFailures: number;
  /** Hosts, peers and ports that summaries of hosts hold in memory. */
  readonly summaryEntries: number;
  /** Rows that no summary counts, or not fully: their minute was evicted, or there was no room for them. */
  readonly uncountedRows: number;
  /** Busy hosts that got no summary since too many were busy at once. */
  readonly hostsLeft: number;
}

/** Over all exporters since the start, those that are forgotten included. */
export interface ExporterTotals {
  readonly records: number;
  readonly lost: number;
}

export interface CollectorsStatus {
  readonly listeners: readonly ListenerStatus[];
  readonly exporters: readonly ExporterStatus[];
  /** Senders that are not among the allowed exporters, the last one seen first. */
  readonly refused: readonly { readonly address: string; readonly packets: number; readonly lastSeenMs: number }[];
  /** Over everything, senders that are not listed above included. */
  readonly drops: Drops;
  readonly totals: ExporterTotals;
  readonly ring: { readonly bytes: number; readonly usedBytes: number };
  readonly windows: WindowsStatus;
}

export function noDrops(): Record<DropReason, number> {
  return Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as Record<DropReason, number>;
}
