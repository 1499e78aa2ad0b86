import type { Collectors } from "./site.ts";

// Exporters, senders and webhooks as one list: what each is, how much it sends, and whether that is well.

export type Health = "receiving" | "trouble" | "silent";

export interface LastLine {
  readonly text: string;
  readonly at: string;
  /** In words: what became of it. */
  readonly outcome: string;
  readonly isUnderstood: boolean;
}

export interface Source {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly perMinute: number;
  readonly unit: "packets" | "lines";
  readonly history: readonly number[];
  readonly health: Health;
  readonly summary: string;
  readonly lastSeen: string | null;
  readonly lastLine: LastLine | null;
  /** Counters for who looks closer. */
  readonly facts: readonly (readonly [name: string, value: string | number])[];
}

const VERSIONS: Readonly<Record<number, string>> = {
  5: "NetFlow v5",
  9: "NetFlow v9",
  10: "IPFIX",
  105: "sFlow v5",
  106: "EVE flows",
};

const COLLECTORS: Readonly<Record<string, string>> = {
  syslog: "Syslog",
  syslog_tls: "Syslog over TLS",
  eve: "Suricata EVE",
};

type WireLine = NonNullable<Collectors["senders"][number]["last_line"]>;

function lineOf(line: WireLine | null): LastLine | null {
  if (line === null) return null;
  const { text, at, format, type, message } = line;
  if (message !== null) return { text, at, outcome: `Refused: ${message}`, isUnderstood: false };
  if (type === "unparsed" || (format === null && type === null)) {
    return { text, at, outcome: "Kept, but not understood", isUnderstood: false };
  }
  const what = type === null ? "nothing new in it" : type.replaceAll("_", " ");
  return { text, at, outcome: `Understood as ${format ?? "an event"}: ${what}`, isUnderstood: true };
}

function exporterSource(exporter: Collectors["exporters"][number]): Source {
  const missing = exporter.absent_templates.map(({ id }) => id).join(", ");
  return {
    id: `exporter ${exporter.address}`,
    name: exporter.address,
    kind: exporter.versions.map((version) => VERSIONS[version] ?? `version ${version}`).join(", "),
    perMinute: exporter.per_minute,
    unit: "packets",
    history: exporter.history,
    health: exporter.state === "receiving" ? "receiving" : exporter.state === "silent" ? "silent" : "trouble",
    summary: exporter.summary,
    lastSeen: exporter.last_seen,
    lastLine: null,
    facts: [
      ["Packets", exporter.packets],
      ["Records", exporter.records],
      ["Templates", exporter.templates],
      ["Missing templates", missing === "" ? "none" : missing],
      ["Lost", exporter.lost],
      ["Sampling", exporter.sampling_rate === 1 ? "every packet" : `1 in ${exporter.sampling_rate}`],
    ],
  };
}

const sumOf = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((sum, value) => sum + value, 0);

function senderSource(sender: Collectors["senders"][number]): Source {
  return {
    id: `sender ${sender.collector} ${sender.transport} ${sender.address}`,
    name: sender.address === "others" ? "Others" : sender.address,
    kind: `${COLLECTORS[sender.collector] ?? sender.collector}, ${sender.transport.toUpperCase()}`,
    perMinute: sender.per_minute,
    unit: "lines",
    history: sender.history,
    health: sender.state === "receiving" ? "receiving" : sender.state === "silent" ? "silent" : "trouble",
    summary: sender.summary,
    lastSeen: sender.last_seen,
    lastLine: lineOf(sender.last_line),
    facts: [
      ["Lines", sender.lines],
      ["Events", sender.events],
      ["Flows", sender.flows],
      ["Refused", sumOf(sender.refused)],
      ["Waiting", sender.waiting],
    ],
  };
}

const SILENT_MS = 15 * 60_000;

function webhookSource(hook: Collectors["webhooks"][number], nowMs: number): Source {
  const isSilent = hook.last_seen === null || nowMs - Date.parse(hook.last_seen) > SILENT_MS;
  const isRefused =
    hook.last_refusal !== null &&
    hook.last_seen !== null &&
    Date.parse(hook.last_refusal.at) >= Date.parse(hook.last_seen);
  return {
    id: `webhook ${hook.name}`,
    name: `Webhook ${hook.name}`,
    kind: `POST /v1/collect/${hook.name}`,
    perMinute: hook.per_minute,
    unit: "lines",
    history: hook.history,
    health: isRefused ? "trouble" : isSilent ? "silent" : "receiving",
    summary: isRefused
      ? `Refused: ${hook.last_refusal!.message}`
      : isSilent
        ? "Nothing in the last 15 minutes"
        : "Receiving",
    lastSeen: hook.last_seen,
    lastLine: lineOf(hook.last_line),
    facts: [
      ["Requests", hook.requests],
      ["Events", hook.events],
      ["Refused", sumOf(hook.refused)],
    ],
  };
}

const ORDER: Record<Health, number> = { trouble: 0, receiving: 1, silent: 2 };

/** Trouble first, then the busiest. A webhook that was never called is left out: it is an offer, not a source. */
export function sourcesOf(collectors: Collectors, nowMs: number): Source[] {
  return [
    ...collectors.exporters.map(exporterSource),
    ...collectors.senders.map(senderSource),
    ...collectors.webhooks.filter(({ requests }) => requests > 0).map((hook) => webhookSource(hook, nowMs)),
  ].toSorted((a, b) => ORDER[a.health] - ORDER[b.health] || b.perMinute - a.perMinute || a.name.localeCompare(b.name));
}
