import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { Option, type Command } from "commander";
import { parseSent } from "../lib/exact-json.ts";
import type { Format } from "../collectors/format.ts";
import { linesOf } from "../collectors/inlet/file-bytes.ts";
import { withoutEnd } from "../collectors/inlet/framing.ts";
import type { ReadEvent, Reading } from "../collectors/reading.ts";
import { withoutByteOrderMark } from "../lib/json.ts";
import { formatTime } from "../lib/time.ts";
import { AHEAD_MS_MAX, clockBounds } from "../model/clock.ts";
import { classOfType, sourceName, type JsonValue } from "../model/event.ts";
import { FIELD_NAMES } from "../model/field-names.ts";
import { CommandFailure, EXIT_FAILED } from "./failure.ts";
import { addSettingFlags, countOf, requireSettings } from "./settings.ts";
import { formatTable, plain, print, printJson } from "./terminal.ts";

const HELP = `
What a line or body becomes is said without a server: nothing is stored.

Examples:
  tocsin parse gateway.log
  tocsin parse --format access events.ndjson
  tail -n 20 /var/log/suricata/eve.json | tocsin parse --format eve -
  tocsin parse gateway.log --json | head -1

Exit codes: 0 all of it was understood or kept, ${EXIT_FAILED} something was refused.`;

const FORMATS = ["auto", "syslog", "eve", "network", "protect", "access", "talk"] as const satisfies readonly Format[];

/** Rows of a table; --json has no bound. */
const ROWS_MAX = 1000;
const FIELDS_SHOWN_MAX = 8;
const VALUE_CHARACTERS_MAX = 40;
const STANDARD_INPUT = "-";
/** Settings that decide what a collector refuses. */
const LIMITS = ["collectors.line_bytes_max", "collectors.unparsed", "body_limits.submit_bytes"];

/** What is the same in every row of a device, or long, or there twice, tells nobody anything. */
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
    .description("show what a line that a device has sent becomes")
    .addOption(new Option("--format <format>", "what it is").choices(FORMATS).default("auto"))
    .option("--json", "one JSON object for each line");
  addSettingFlags(command, ["platform", "timezone", "retention.events_days", ...LIMITS])
    .addHelpText("after", HELP)
    .action(async (file: string, { format, json }: { format: Format; json?: true }) => {
      const { settings } = requireSettings(command);
      const { platform, timezone } = settings;
      const { readBytesAs } = await import("../collectors/format.ts");
      const { OpenEvents } = await import("../collectors/webhooks/open-events.ts");
      const context = { nowMs: Date.now(), sender: "", timezone };
      const site = { platform, nowMs: context.nowMs, retentionDays: settings.retention.eventsDays };
      const open = new OpenEvents();
      const { lineBytesMax, unparsed: keepsUnparsed } = settings.collectors;
      const limits = { lineBytesMax, thingBytesMax: settings.bodyLimits.submitBytes, keepsUnparsed };
      const read = things(await readBytes(file)).map(({ place, bytes }) => ({
        place,
        reading: readBytesAs(format, bytes, limits, context, open),
      }));
      if (read.some(({ reading }) => reading.kind === "refused")) process.exitCode = EXIT_FAILED;
      if (json) {
        for (const { place, reading } of read) printJson({ line: place, ...viewOf(reading, site) });
        return;
      }
      const rows = read.flatMap(({ place, reading }) => rowsOf(reading, site).map((row) => [String(place), ...row]));
      if (rows.length > 0)
        print(formatTable(["line", "source", "type", "severity", "time", "fields"], rows.slice(0, ROWS_MAX)));
      if (rows.length > ROWS_MAX) print(`and ${countOf(rows.length - ROWS_MAX, "more row")}; --json shows them all`);
      print(summaryOf(read.map(({ reading }) => reading)));
    });
}

async function readBytes(file: string): Promise<Buffer> {
  try {
    // A pipe may be non-blocking: reading descriptor 0 as a file fails with EAGAIN as soon as the writer is slower.
    const bytes = file === STANDARD_INPUT ? await buffer(process.stdin) : await readFile(file);
    // Some programs write the mark of UTF-8 before everything else.
    return withoutByteOrderMark(bytes);
  } catch (error) {
    throw new CommandFailure(`${file} cannot be read: ${(error as Error).message}.`, EXIT_FAILED, { cause: error });
  }
}

interface Thing {
  /** Its line, or its place in the list. */
  readonly place: number;
  readonly bytes: Buffer;
}

/** A file that is JSON as a whole, over several lines or as a list, is one body or many; any other has one thing in each line. */
function things(content: Buffer): Thing[] {
  const whole = wholeJson(content.toString("utf8").trim());
  if (whole !== undefined) {
    return (Array.isArray(whole) ? whole : [whole]).map((body, index) => ({
      place: index + 1,
      bytes: Buffer.from(JSON.stringify(body)),
    }));
  }
  return linesOf(content)
    .map((bytes, index) => ({ place: index + 1, bytes: withoutEnd(bytes) }))
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

interface Site {
  readonly platform: string;
  readonly nowMs: number;
  readonly retentionDays: number;
}

/** As it would be stored. A time that the intake would not believe is kept beside that of the arrival. */
function eventView(event: ReadEvent, { platform, nowMs, retentionDays }: Site) {
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
    ...(!isTimely && { note: `its time is taken as the time of arrival: ${told} is ${fault}` }),
    raw: isTimely ? event.raw : { ...event.raw, reported_at: told },
  };
}

function viewOf(reading: Reading, site: Site): object {
  if (reading.kind !== "events") return reading;
  return { kind: "events", events: reading.events.map((event) => eventView(event, site)) };
}

function rowsOf(reading: Reading, site: Site): string[][] {
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
      return [["-", "(nothing)", "-", "-", "nothing new is told"]];
    case "refused":
      return [["-", "(refused)", "-", "-", `${reading.reason}: ${plain(reading.message)}`]];
  }
}

/** The first few of our names, in their order. */
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
