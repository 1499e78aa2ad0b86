import type { Resolution } from "../model/alert-state.ts";
import { counted, number, percent, timeSpan } from "./report-words.ts";
import type { ShiftReport } from "./shift-report-schema.ts";

// The figures of a report as sentences.

/** What a resolution is called, of several alerts and of one. */
const RESOLUTION_WORDS: Readonly<Record<Resolution, { readonly many: string; readonly one: string }>> = {
  true_positive: { many: "true positives", one: "true positive" },
  false_positive: { many: "false positives", one: "false positive" },
  benign: { many: "benign", one: "benign" },
  duplicate: { many: "duplicates", one: "duplicate" },
};

export function resolutionWord(resolution: Resolution): string {
  return RESOLUTION_WORDS[resolution].one;
}

/** The change of a count against the period before. */
export function changeOf({ total, previous }: { readonly total: number; readonly previous: number }): string {
  if (previous === 0) return total === 0 ? "none before either" : "none in the period before";
  if (total === previous) return "as many as in the period before";
  const more = total > previous ? "more" : "fewer";
  return `${number(Math.abs(total - previous))} ${more} than the ${number(previous)} before`;
}

/** The change of a mean against the period before. */
export function paceOf({
  value,
  previous,
}: {
  readonly value: number | null;
  readonly previous: number | null;
}): string {
  if (value === null) return previous === null ? "no alert, as in the period before" : `${timeSpan(previous)} before`;
  if (previous === null) return "no alert in the period before";
  const difference = timeSpan(Math.abs(value - previous));
  if (timeSpan(value) === timeSpan(previous)) return "as in the period before";
  return `${difference} ${value < previous ? "quicker" : "slower"} than the ${timeSpan(previous)} before`;
}

export function summarise(report: ShiftReport): string[] {
  const { alerts, sources, losses, open, generated_at } = report;
  const sentences = [`${newSentence(report)}.`];
  if (alerts.resolved.total > 0) sentences.push(`${resolvedSentence(alerts)}.`);
  if (alerts.open.total === 0) sentences.push("No alert is open.");
  else {
    const worst = alerts.open.by_severity.critical;
    const untouched = alerts.open.unacknowledged;
    const oldest = open.oldest_created_at;
    const age = oldest === null ? undefined : (Date.parse(generated_at) - Date.parse(oldest)) / 1000;
    sentences.push(
      [
        `${counted(alerts.open.total, "alert is", "alerts are")} still open`,
        worst > 0 ? `${number(worst)} of them critical` : "none of them critical",
        untouched === 0 ? "all in hand" : `${number(untouched)} not yet acknowledged`,
        ...(age === undefined ? [] : [`the oldest for ${timeSpan(Math.max(0, age))}`]),
      ].join(", ") + ".",
    );
  }
  if (sources.in_trouble > 0)
    sentences.push(`${counted(sources.in_trouble, "source needs", "sources need")} attention.`);
  if (losses.missing.length > 0) sentences.push("Stored data of this period is missing.");
  if (losses.retention_paused) sentences.push("Retention is paused until an operator confirms it.");
  return sentences;
}

function newSentence({ alerts: { created } }: ShiftReport): string {
  const count = created.total === 0 ? "No new alert" : counted(created.total, "new alert");
  return `${count}, ${changeOf(created)}`;
}

function resolvedSentence({ resolved, resolutions }: ShiftReport["alerts"]): string {
  const parts = (Object.keys(RESOLUTION_WORDS) as Resolution[])
    .filter((resolution) => resolutions[resolution] > 0)
    .map((resolution) => {
      const count = resolutions[resolution];
      return `${number(count)} ${RESOLUTION_WORDS[resolution][count === 1 ? "one" : "many"]}`;
    });
  return `${counted(resolved.total, "was", "were")} resolved: ${parts.join(", ")}`;
}

/** Free space and what it means. */
export function diskSentence({ disk }: ShiftReport["losses"]): string {
  const share = disk.total_bytes === 0 ? 0 : disk.free_bytes / disk.total_bytes;
  return `${percent(share)} of the disk is free`;
}
