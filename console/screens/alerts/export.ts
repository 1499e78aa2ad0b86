import type { Alert } from "../../data/client.ts";

// The list as a file.

const COLUMNS: readonly (readonly [string, (alert: Alert) => unknown])[] = [
  ["id", ({ id }) => id],
  ["severity", ({ severity }) => severity],
  ["status", ({ status }) => status],
  ["title", ({ title }) => title],
  ["rule_name", (alert) => alert.rule_name],
  ["source", ({ source }) => source],
  ["event_count", (alert) => alert.event_count],
  ["threat_score", (alert) => alert.ai_analysis?.threat_score],
  ["assignee", ({ assignee }) => assignee],
  ["resolution", ({ resolution }) => resolution],
  ["tags", ({ tags }) => tags.join(" ")],
  ["first_event_at", (alert) => alert.first_event_at],
  ["last_event_at", (alert) => alert.last_event_at],
  ["created_at", (alert) => alert.created_at],
];

export function toCsv(alerts: readonly Alert[]): string {
  const lines = [
    COLUMNS.map(([name]) => name).join(","),
    ...alerts.map((alert) => COLUMNS.map(([, read]) => cell(read(alert))).join(",")),
  ];
  return `${lines.join("\r\n")}\r\n`;
}

/** A spreadsheet would run a text that starts like a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = typeof value === "string" && FORMULA.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
