import { severityOfCef } from "../../../model/device-severity.ts";
import { PairKeys, scanPairs } from "../described/pairs.ts";
import { FieldList } from "../field-list.ts";
import { oneEvent, type LineFormat, type LineMessage } from "../line-format.ts";
import { ownHeaderEnd } from "../message-prefix.ts";
import type { ParsedEvent } from "../reading.ts";
import type { TimeContext } from "../device-times.ts";
import { readAlarm } from "../unifi/alarm.ts";
import { addParameter, parameterOf } from "../unifi/alarm-parameters.ts";

// Log Event Extended Format of QRadar: `LEEF:1.0|vendor|product|version|event|key=value<tab>key=value`. Version 2.0 has the
// separator behind the event, as itself or as a number: `^`, `x5E`, `0x5e`.

const SEPARATOR_CHARACTERS_MAX = 6;
const TAB = "\t";
const KEYS = new PairKeys("=");

export const LEEF = {
  name: "leef",
  about: "Log Event Extended Format of IBM QRadar, versions 1.0 and 2.0",
  devices: ["anything that sends LEEF"],
  page: "leef",
  example:
    "LEEF:2.0|Made Up|Packet Filter|7.1|Drop|^|src=192.0.2.80^dst=10.9.3.20^srcPort=40112^dstPort=443^proto=TCP^action=drop",
  ownHeader: "LEEF:",
  read: (message, context) => oneEvent(readLeef(message, context)),
} as const satisfies LineFormat;

/** CEF's names for the same values, so that both formats become the same fields. */
const CEF_KEYS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    accountName: "suser",
    action: "act",
    devTime: "rt",
    dstBytes: "dstBytes",
    dstMAC: "dmac",
    dstPort: "dpt",
    identHostName: "shost",
    identSrc: "src",
    policy: "rule",
    srcMAC: "smac",
    srcPort: "spt",
    totalPackets: "packets",
    url: "request",
    usrName: "suser",
  }),
);

function readLeef(line: LineMessage, context: TimeContext): ParsedEvent | undefined {
  const { message } = line;
  const start = ownHeaderEnd(LEEF.ownHeader, line);
  if (start < 0) return undefined;
  const header = readLeefHeader(message, start);
  if (header === undefined) return undefined;
  const { vendor, product, version, event, separator, end } = header;
  // rsyslog escapes control characters.
  const isEscaped = separator === TAB && !message.includes(TAB, end) && message.includes("#011", end);
  const text = isEscaped ? message.slice(end).replaceAll("#011", TAB) : message;
  const { values, leftOut } = scanPairs(text, isEscaped ? 0 : end, { assign: "=", separator }, KEYS);
  const fields = new FieldList();
  const severity = severityOfCef(values.get("sev") ?? "");
  for (const [key, value] of values) addParameter(fields, parameterOf(CEF_KEYS.get(key) ?? key), value);
  const read = readAlarm({ vendor, product, version, code: undefined, name: event, severity }, fields, context);
  if (leftOut > 0) read.raw["fields_left_out"] = leftOut;
  return read;
}

interface LeefHeader {
  readonly vendor: string;
  readonly product: string;
  readonly version: string;
  readonly event: string;
  readonly separator: string;
  /** Position of the first key. */
  readonly end: number;
}

function readLeefHeader(message: string, start: number): LeefHeader | undefined {
  const parts: string[] = [];
  let at = start;
  while (parts.length < 5) {
    const bar = message.indexOf("|", at);
    if (bar < 0) return undefined;
    parts.push(message.slice(at, bar).trim());
    at = bar + 1;
  }
  const [format = "", vendor = "", product = "", version = "", event = ""] = parts;
  if (!/^[12](?:\.0)?$/.test(format) || product === "" || event === "") return undefined;
  if (format.startsWith("1")) return { vendor, product, version, event, separator: TAB, end: at };
  const bar = message.indexOf("|", at);
  const stated = bar < 0 || bar - at > SEPARATOR_CHARACTERS_MAX ? undefined : message.slice(at, bar);
  // A sender may leave the separator out.
  if (stated === undefined || stated.includes("=")) return { vendor, product, version, event, separator: TAB, end: at };
  return { vendor, product, version, event, separator: separatorOf(stated), end: bar + 1 };
}

function separatorOf(stated: string): string {
  const hex = /^(?:0?x|\\x)([0-9a-fA-F]{1,4})$/.exec(stated);
  if (hex !== null) return String.fromCharCode(Number.parseInt(hex[1]!, 16));
  return stated === "" || stated === "\\t" ? TAB : stated.charAt(0);
}
