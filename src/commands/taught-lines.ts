import { explainMiss } from "../collectors/formats/described/explain-miss.ts";
import { messageOf } from "../collectors/formats/read-with-formats.ts";
import type { ReadContext, Reading } from "../collectors/formats/reading.ts";
import type { JsonObject, JsonValue } from "../model/event.ts";
import type { ReadFormatFiles } from "./format-files.ts";
import { countOf } from "./setting-flags.ts";
import { bold, plain } from "./terminal.ts";

// What a format that is being written reads from each line, or why it reads nothing.

const LINES_MAX = 1000;
/** The line itself, which its author has before him. */
const NOT_SHOWN = new Set(["line"]);

interface TaughtLine {
  readonly place: number;
  readonly text: string;
  readonly reading: Reading;
  readonly events: readonly {
    readonly type: string;
    readonly severity: string;
    readonly timestamp: string | null;
    readonly note?: string;
    readonly raw: Readonly<JsonObject>;
  }[];
}

export function describeTaughtLines(
  lines: readonly TaughtLine[],
  { taught, formats }: ReadFormatFiles,
  context: ReadContext,
): string {
  const names = taught.map(({ description }) => description.format);
  const blocks = lines.slice(0, LINES_MAX).map((line) => {
    const format = formatOf(line.reading);
    const isTaught = format !== undefined && names.includes(format);
    if (line.reading.kind === "refused") return `line ${line.place}: refused: ${plain(line.reading.message)}`;
    const read = isTaught
      ? []
      : taught.flatMap(({ description }) => {
          const reasons = explainMiss(description, messageOf(formats, line.text, context));
          return reasons.map((reason) => `  ${description.format}: ${plain(reason)}`);
        });
    return [
      bold(titleOf(line, format, isTaught, names)),
      ...read,
      ...(isTaught ? line.events.flatMap(fieldsOf) : []),
    ].join("\n");
  });
  if (lines.length > LINES_MAX)
    blocks.push(`and ${countOf(lines.length - LINES_MAX, "more line")}; --json shows them all`);
  return [...blocks, summaryOf(lines, names)].join("\n");
}

const formatOf = (reading: Reading) => (reading.kind === "refused" ? undefined : reading.format);

function titleOf(
  { place, reading, events }: TaughtLine,
  format: string | undefined,
  isTaught: boolean,
  names: readonly string[],
) {
  if (format === undefined) return `line ${place}: not read`;
  if (!isTaught) return `line ${place}: read by ${format}, not by ${names.join(", ")}`;
  if (reading.kind === "nothing") return `line ${place}: ${format}: no news`;
  const { type, severity, timestamp, note } = events[0]!;
  const time = note === undefined ? (timestamp ?? "time of arrival") : note;
  return `line ${place}: ${format}: ${plain(type)}, ${severity}, ${plain(time)}`;
}

function fieldsOf({ raw }: TaughtLine["events"][number]): string[] {
  const names = Object.keys(raw).filter((name) => !NOT_SHOWN.has(name));
  const width = Math.max(0, ...names.map((name) => name.length));
  return names.map((name) => `  ${plain(name).padEnd(width)}  ${plain(textOf(raw[name]!))}`);
}

const textOf = (value: JsonValue) => (typeof value === "string" ? value : JSON.stringify(value));

function summaryOf(lines: readonly TaughtLine[], names: readonly string[]): string {
  const count = (holds: (format: string | undefined) => boolean) =>
    lines.filter(({ reading }) => holds(formatOf(reading))).length;
  const own = count((format) => format !== undefined && names.includes(format));
  const others = count((format) => format !== undefined && !names.includes(format));
  const parts = [`${own} read by ${names.join(", ")}`];
  if (others > 0) parts.push(`${others} by another format`);
  if (lines.length > own + others) parts.push(`${lines.length - own - others} not read`);
  return `${countOf(lines.length, "line")}: ${parts.join(", ")}.`;
}
