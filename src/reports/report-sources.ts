import type { CollectorsStatus, DropReason, ExporterStatus } from "../collectors/flows/flow-status.ts";
import type { RefusalReason } from "../collectors/formats/reading.ts";
import type { LineReceiverStatus, PostStatus, SenderStatus } from "../collectors/lines/line-status.ts";
import { formatTime } from "../lib/time.ts";
import { SOURCES_MAX, type ShiftReport } from "./shift-report-schema.ts";

// The health of the devices that send, and what was dropped on the way in, in words.

export interface InputStatuses {
  readonly flows: CollectorsStatus;
  readonly lines: LineReceiverStatus;
  readonly posts: readonly PostStatus[];
}

type SourceRow = ShiftReport["sources"]["items"][number];
type Loss = ShiftReport["losses"]["dropped"][number];

export function sourcesOf({ flows, lines, posts }: InputStatuses): ShiftReport["sources"] {
  const rows = [
    ...flows.exporters.map(exporterRow),
    ...lines.senders.map(senderRow),
    ...posts.filter(({ requests }) => requests > 0).map(postRow),
    ...(lines.file ? [fileRow(lines.file)] : []),
  ].sort(
    (a, b) => Number(a.healthy) - Number(b.healthy) || compareTexts(a.name, b.name) || compareTexts(a.kind, b.kind),
  );
  const troubled = rows.filter(({ healthy }) => !healthy).length;
  return { total: rows.length, in_trouble: troubled, items: rows.slice(0, SOURCES_MAX) };
}

const compareTexts = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const timeOrNull = (ms: number | null) => (ms === null ? null : formatTime(ms));

const FLOW_KINDS = { 5: "NetFlow v5", 9: "NetFlow v9", 10: "IPFIX", 105: "sFlow", 106: "EVE" } as const;

function exporterRow({ address, versions, state, summary, rate, lastSeenMs }: ExporterStatus): SourceRow {
  return {
    name: address,
    kind: versions.map((version) => FLOW_KINDS[version]).join(", ") || "flows",
    healthy: state === "receiving",
    per_minute: rate.perMinute,
    last_seen: timeOrNull(lastSeenMs),
    summary,
  };
}

const LINE_KINDS = { syslog: "syslog", syslog_tls: "syslog over TLS", eve: "EVE" } as const;

function senderRow({ address, collector, transport, state, summary, rate, lastSeenMs }: SenderStatus): SourceRow {
  return {
    name: address,
    kind: transport === "tls" ? LINE_KINDS[collector] : `${LINE_KINDS[collector]}, ${transport}`,
    healthy: state === "receiving",
    per_minute: rate.perMinute,
    last_seen: formatTime(lastSeenMs),
    summary,
  };
}

function postRow({ name, rate, lastSeenMs, lastLine }: PostStatus): SourceRow {
  const isRefused = lastLine?.outcome === "refused";
  return {
    name,
    kind: "webhook",
    healthy: !isRefused,
    per_minute: rate.perMinute,
    last_seen: timeOrNull(lastSeenMs),
    summary: isRefused ? `the last item was refused: ${lastLine.message}` : "receiving",
  };
}

function fileRow({ path, state, summary }: NonNullable<LineReceiverStatus["file"]>): SourceRow {
  return { name: path, kind: "EVE file", healthy: state === "reading", per_minute: 0, last_seen: null, summary };
}

const DROPS: Readonly<Record<DropReason, string>> = {
  ring_full: "flow packets that arrived faster than they could be decoded",
  not_allowed: "flow packets from senders that are not allowed",
  too_many_exporters: "flow packets from exporters past the limit",
  exporter_evicted: "flow data of exporters that were evicted",
  too_many_connections: "connections of exporters past the limit",
  unknown_version: "flow packets of an unknown version",
  truncated: "flow packets that were cut short",
  malformed: "flow packets that were malformed",
  no_template: "flow data whose template did not arrive",
  bad_template: "flow data with a faulty template",
  template_evicted: "flow data whose template was evicted",
  template_expired: "flow data whose template had expired",
  template_file_damaged: "flow templates that could not be restored",
  no_address: "flows without an address",
  too_late: "flows that were reported too late",
};

const REFUSALS: Readonly<Record<RefusalReason, string>> = {
  not_text: "log lines that were not text",
  too_long: "log lines that were too long",
  malformed: "log lines or webhook items that were malformed",
  unknown_kind: "webhook items of an unknown kind",
  not_allowed: "log lines from senders that are not allowed",
  too_many_connections: "log connections past the limit",
  too_fast: "log lines of senders that were too fast",
  queue_full: "log lines for which the queue was full",
  cut_off: "log lines that were cut off",
  handshake_failed: "log connections whose TLS handshake failed",
  bad_signature: "webhooks with a wrong signature",
  too_late: "log lines that arrived too late",
};

/** What did not become events or flows since the start of the service, by reason, most first. */
export function lossesOf({ flows, lines, posts }: InputStatuses): Loss[] {
  const refused = (reason: RefusalReason) =>
    [lines.total, ...posts].reduce((sum, counts) => sum + counts.refused[reason], 0);
  const overrun = [...flows.listeners, ...lines.listeners].reduce(
    (sum, { systemDrops }) => sum + (systemDrops ?? 0),
    0,
  );
  const losses: Loss[] = [
    { what: "datagrams that the operating system dropped", count: overrun },
    { what: "flow records or packets missing in the exporters' numbering", count: flows.totals.lost },
    ...entriesOf(DROPS).map(([reason, what]) => ({ what, count: flows.drops[reason] })),
    ...entriesOf(REFUSALS).map(([reason, what]) => ({ what, count: refused(reason) })),
  ];
  return losses.filter(({ count }) => count > 0).sort((a, b) => b.count - a.count);
}

function entriesOf<Name extends string>(words: Readonly<Record<Name, string>>): [Name, string][] {
  return Object.entries(words) as [Name, string][];
}
