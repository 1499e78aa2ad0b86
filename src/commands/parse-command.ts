import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import type { Command } from "commander";
import { Registry } from "prom-client";
import { parseSent } from "../lib/exact-json.ts";
import { INPUT_FORMATS, readInput, type InputFormat } from "../collectors/formats/detect-format.ts";
import { CsvTables } from "../collectors/formats/generic/csv-tables.ts";
import type { LineFormats } from "../collectors/formats/line-formats.ts";
import { splitLines } from "../collectors/lines/file-bytes.ts";
import { withoutLineEnd } from "../collectors/lines/framing.ts";
import type { ParsedEvent, Reading } from "../collectors/formats/reading.ts";
import { OpenEvents } from "../collectors/formats/unifi/open-events.ts";
import { withoutByteOrderMark } from "../lib/json.ts";
import { formatTime } from "../lib/time.ts";
import { unreachable } from "../lib/unreachable.ts";
import { AHEAD_MS_MAX, clockBounds } from "../model/clock.ts";
import { classOfType, sourceName, type JsonValue } from "../model/event.ts";
import { FIELD_NAMES } from "../model/field-names.ts";
import { describeTaughtFault } from "../collectors/formats/taught-status.ts";
import { createLog } from "../lib/log.ts";
import { nearestName } from "../lib/nearest.ts";
import { CommandFailure, EXIT_FAILED, EXIT_WRONG_USE } from "./command-failure.ts";
import { readFormatFiles, type ReadFormatFiles } from "./format-files.ts";
import { addSettingFlags, countOf, requireSettings } from "./setting-flags.ts";
import { formatTable, plain, print, printJson } from "./terminal.ts";

const HELP = `
Parses without a server and stores nothing.

Examples:
  tocsin parse gateway.log
  tocsin parse --format access events.ndjson
  tail -n 20 /var/log/suricata/eve.json | tocsin parse --format eve -
  tocsin parse --format acme.yaml sample.log
  tocsin parse gateway.log --json | head -1

With a YAML file as the format, each line is shown with everything that the file reads from it, or with why it reads nothing.
docs/devices/own-formats.md explains such files; tocsin formats test runs the tests in them.

Exit codes: 0 all lines were parsed or kept, ${EXIT_FAILED} some were refused, or the YAML file has faults.`;

/** Limit of table rows; --json has none. */
const ROWS_MAX = 1000;
const FIELDS_SHOWN_MAX = 8;
const VALUE_CHARACTERS_MAX = 40;
const STANDARD_INPUT = "-";
/** Settings that decide what a collector refuses. */
const LIMITS = ["collectors.line_bytes_max", "collectors.unparsed", "body_limits.submit_bytes"];

/** Fields that are long, redundant or the same in every row of a device. */
const NOT_SHOWN = new Set([
  "line",
  "message",
  "event_name",
  "event_code",
  "version",
  "model",
  "device_mac",
  "device_ip",
]);

export function addParse(program: Command): void {
  const command = program
    .command("parse")
    .argument("<file>", "lines of syslog or EVE, or bodies of webhooks as JSON; - reads standard input")
    .description("show the events that lines of a device become")
    .option(
      "--format <format>",
      `format of the input (${INPUT_FORMATS.join(", ")}), or a YAML file that teaches one`,
      "auto" satisfies InputFormat,
    )
    .option("--json", "one JSON object per line");
  addSettingFlags(command, ["platform", "timezone", "retention.events_days", "collectors.formats_dir", ...LIMITS])
    .addHelpText("after", HELP)
    .action(async (file: string, { format: named, json }: { format: string; json?: true }) => {
      const { settings } = requireSettings(command);
      const { platform, timezone } = settings;
      const context = { nowMs: Date.now(), sender: "", timezone, tables: new CsvTables() };
      const site = { platform, nowMs: context.nowMs, retentionDays: settings.retention.eventsDays };
      const open = new OpenEvents();
      const { lineBytesMax, unparsed: keepsUnparsed } = settings.collectors;
      const taught = await taughtBy(named);
      const format = taught === undefined ? (named as InputFormat) : "syslog";
      const formats = taught?.formats ?? (await siteFormats(settings.collectors.formatsDir));
      const options = {
        formats,
        lineBytesMax,
        bodyBytesMax: settings.bodyLimits.submitBytes,
        keepsUnparsed,
      };
      const read = things(await readBytes(file)).map(({ place, bytes }) => ({
        place,
        bytes,
        reading: readInput(format, bytes, options, context, open),
      }));
      if (read.some(({ reading }) => reading.kind === "refused")) process.exitCode = EXIT_FAILED;
      if (json) {
        for (const { place, reading } of read) printJson({ line: place, ...viewOf(reading, site) });
        return;
      }
      if (taught !== undefined) {
        const { describeTaughtLines } = await import("./taught-lines.ts");
        const lines = read.map(({ place, bytes, reading }) => ({
          place,
          text: bytes.toString("utf8"),
          reading,
          events: reading.kind === "events" ? reading.events.map((event) => eventView(event, site)) : [],
        }));
        print(describeTaughtLines(lines, taught, context));
        return;
      }
      const rows = read.flatMap(({ place, reading }) => rowsOf(reading, site).map((row) => [String(place), ...row]));
      if (rows.length > 0)
        print(formatTable(["line", "source", "type", "severity", "time", "fields"], rows.slice(0, ROWS_MAX)));
      if (rows.length > ROWS_MAX) print(`and ${countOf(rows.length - ROWS_MAX, "more row")}; --json shows them all`);
      print(summaryOf(read.map(({ reading }) => reading)));
    });
}

/** The formats of a YAML file; undefined if the name is that of a format of ours. */
async function taughtBy(named: string): Promise<ReadFormatFiles | undefined> {
  if ((INPUT_FORMATS as readonly string[]).includes(named)) return undefined;
  if (!existsSync(named)) {
    const near = nearestName(named, INPUT_FORMATS);
    const advice = near === undefined ? `Formats are ${INPUT_FORMATS.join(", ")}.` : `Did you mean ${near}?`;
    throw new CommandFailure(`There is no format and no file ${named}. ${advice}`, EXIT_WRONG_USE);
  }
  const read = await readFormatFiles([named]);
  if (read.faults.length === 0) return read;
  const words = read.faults.map((fault) => `  ${describeTaughtFault(fault)}`).join("\n");
  throw new CommandFailure(`${named} has ${countOf(read.faults.length, "fault")}:\n${words}`, EXIT_FAILED);
}

/** The formats that the service would use. */
async function siteFormats(folder: string | null): Promise<LineFormats> {
  const { openTaughtFormats } = await import("../collectors/formats/described/taught-formats.ts");
  const log = createLog({ level: "silent" });
  const taught = await openTaughtFormats({ folder, registry: new Registry(), log, now: Date.now });
  await taught.close();
  for (const fault of taught.status.faults) {
    process.stderr.write(`collectors.formats_dir: ${plain(describeTaughtFault(fault))}\n`);
  }
  return taught.formats;
}

async function readBytes(file: string): Promise<Buffer> {
  try {
    // A pipe may be non-blocking: reading descriptor 0 as a file fails with EAGAIN if the writer is slower.
    const bytes = file === STANDARD_INPUT ? await buffer(process.stdin) : await readFile(file);
    // Some programs write a byte order mark.
    return withoutByteOrderMark(bytes);
  } catch (error) {
    throw new CommandFailure(`${file} cannot be read: ${(error as Error).message}.`, EXIT_FAILED, { cause: error });
  }
}

interface ParsedInput {
  /** Its line number, or its position in a JSON array. */
  readonly place: number;
  readonly bytes: Buffer;
}

/** A file that is one JSON value is a body, or an array of bodies; any other file has one item per line. */
function things(content: Buffer): ParsedInput[] {
  const whole = wholeJson(content.toString("utf8").trim());
  if (whole !== undefined) {
    return (Array.isArray(whole) ? whole : [whole]).map((body, index) => ({
      place: index + 1,
      bytes: Buffer.from(JSON.stringify(body)),
    }));
  }
  return splitLines(content)
    .map((bytes, index) => ({ place: index + 1, bytes: withoutLineEnd(bytes) }))
    .filter(({ bytes }) => bytes.toString("latin1").trim() !== "");
}

function wholeJson(content: string): JsonValue | undefined {
  const isMany = content.startsWith("[") || (content.startsWith("{") && content.includes("\n"));
  if (!isMany) return undefined;
  try {
    return parseSent(content) as JsonValue;
  } catch {
    return undefined;
  }
}

interface ParseSite {
  readonly platform: string;
  readonly nowMs: number;
  readonly retentionDays: number;
}

/** The event as it would be stored. A time that the intake would refuse is kept in `reported_at`. */
function eventView(event: ParsedEvent, { platform, nowMs, retentionDays }: ParseSite) {
  const { timestampMs } = event;
  const { earliest, latest } = clockBounds(nowMs, retentionDays);
  const isTimely = timestampMs === null || (timestampMs >= earliest && timestampMs <= latest);
  const told = timestampMs === null ? null : formatTime(timestampMs);
  const fault =
    timestampMs !== null && timestampMs > latest
      ? `more than ${AHEAD_MS_MAX / 60_000} minutes ahead`
      : `older than ${countOf(retentionDays, "day")}`;
  return {
    type: event.type,
    source: sourceName(platform, event.source),
    class: classOfType(event.type, event.class),
    severity: event.severity,
    timestamp: isTimely ? told : null,
    ...(!isTimely && { note: `the time of arrival replaces its time: ${told} is ${fault}` }),
    raw: isTimely ? event.raw : { ...event.raw, reported_at: told },
  };
}

function viewOf(reading: Reading, site: ParseSite): object {
  if (reading.kind !== "events") return reading;
  const { format = null } = reading;
  return { kind: "events", format, events: reading.events.map((event) => eventView(event, site)) };
}

function rowsOf(reading: Reading, site: ParseSite): string[][] {
  switch (reading.kind) {
    case "events":
      return reading.events.map((event) => {
        const { source, type, severity, timestamp, note, raw } = eventView(event, site);
        const fields = note === undefined ? fieldsOf(raw) : `(${note}) ${fieldsOf(event.raw)}`;
        return [source, plain(type), severity, timestamp ?? "on arrival", fields];
      });
    case "flows":
      return reading.flows.map(({ srcIp, srcPort, dstIp, dstPort, bytes, lastMs }) => {
        const ends = `${srcIp}:${srcPort} to ${dstIp}:${dstPort}, ${countOf(bytes, "byte")}`;
        return [sourceName(site.platform, "network"), "(flow)", "-", formatTime(lastMs), ends];
      });
    case "nothing":
      return [["-", "(nothing)", "-", "-", "nothing new is reported"]];
    case "refused":
      return [["-", "(refused)", "-", "-", `${reading.reason}: ${plain(reading.message)}`]];
    default:
      return unreachable(reading);
  }
}

/** The first few known fields, in the order of FIELD_NAMES. */
function fieldsOf(raw: Readonly<Record<string, JsonValue>>): string {
  const names = Object.keys(FIELD_NAMES).filter((name) => Object.hasOwn(raw, name) && !NOT_SHOWN.has(name));
  const shown = names.length > 0 ? names : ["message", "line"].filter((name) => Object.hasOwn(raw, name)).slice(0, 1);
  return shown
    .slice(0, FIELDS_SHOWN_MAX)
    .map((name) => `${name}=${shortened(raw[name]!)}`)
    .join(" ");
}

function shortened(value: JsonValue): string {
  const text = plain(typeof value === "string" ? value : JSON.stringify(value));
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX - 1)}…` : text;
}

function summaryOf(readings: readonly Reading[]): string {
  const events = readings.flatMap((reading) => (reading.kind === "events" ? reading.events : []));
  const flows = readings.flatMap((reading) => (reading.kind === "flows" ? reading.flows : []));
  const count = (kind: Reading["kind"]) => readings.filter((reading) => reading.kind === kind).length;
  const parts = [countOf(events.length, "event")];
  const unparsed = events.filter(({ type }) => type === "unparsed").length;
  if (unparsed > 0) parts.push(`${unparsed} of them unparsed`);
  if (flows.length > 0) parts.push(countOf(flows.length, "flow"));
  if (count("nothing") > 0) parts.push(`${count("nothing")} with nothing to tell`);
  if (count("refused") > 0) parts.push(`${count("refused")} refused`);
  return `${countOf(readings.length, "line")}: ${parts.join(", ")}.`;
}
