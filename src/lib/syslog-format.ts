import { formatTime } from "./time.ts";
import { cutBytes, oneLine } from "./text.ts";

// Lines of syslog: RFC 5424 with structured data, and CEF behind the older header that its readers expect. Values are on one
// line and escaped, so that text from events adds neither a field nor a line.

/** Numbers of severities, the same in both headers. */
export const SYSLOG_SEVERITIES = { critical: 2, high: 3, medium: 4, low: 5, info: 6 } as const;
/** CEF counts from 0 to 10. */
const CEF_SEVERITIES = { critical: 10, high: 8, medium: 5, low: 3, info: 1 } as const;
/** The enterprise number that RFC 5612 sets aside for examples: the project has none of its own. */
const STRUCTURED_DATA_ID = "tocsin@32473";
const VALUE_CHARACTERS_MAX = 1000;
const HEADER_CHARACTERS_MAX = 400;
const HOST_CHARACTERS_MAX = 255;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export interface SyslogEntry {
  readonly at: number;
  readonly severity: keyof typeof SYSLOG_SEVERITIES;
  /** MSGID of RFC 5424: the kind of message. */
  readonly kind: string;
  /** Names without spaces, in the order in which they are written. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly text: string;
}

export interface CefEntry extends Omit<SyslogEntry, "kind" | "text"> {
  /** The id of the signature: the rule. */
  readonly signature: string;
  readonly name: string;
  readonly version: string;
}

interface LineHeader {
  readonly facility: number;
  readonly host: string;
  readonly bytesMax: number;
}

export function syslogLine({ at, severity, kind, fields, text }: SyslogEntry, header: LineHeader): string {
  const data = fields.map(([name, value]) => ` ${name}="${valueOf(value).replace(/["\\\]]/g, "\\$&")}"`).join("");
  const before = `<${header.facility * 8 + SYSLOG_SEVERITIES[severity]}>1 ${formatTime(at)} ${hostOf(header.host)} tocsin - ${kind}`;
  const whole = `${before} [${STRUCTURED_DATA_ID}${data}] ${oneLine(text, header.bytesMax)}`;
  return cutBytes(whole, header.bytesMax);
}

/** The fields of CEF's extension have the names of its dictionary. */
export function cefLine({ at, severity, signature, name, version, fields }: CefEntry, header: LineHeader): string {
  const priority = header.facility * 8 + SYSLOG_SEVERITIES[severity];
  const head = ["Tocsin", "Tocsin", version, signature, name].map((part) =>
    oneLine(part, HEADER_CHARACTERS_MAX).replace(/[\\|]/g, "\\$&"),
  );
  const extension = fields.map(([key, value]) => `${key}=${valueOf(value).replace(/[\\=]/g, "\\$&")}`).join(" ");
  const line = `<${priority}>${oldTime(at)} ${hostOf(header.host)} CEF:0|${head.join("|")}|${CEF_SEVERITIES[severity]}|${extension}`;
  return cutBytes(line, header.bytesMax);
}

function valueOf(value: string): string {
  return oneLine(value, VALUE_CHARACTERS_MAX);
}

function hostOf(host: string): string {
  return host.replace(/[^\x21-\x7e]/g, "").slice(0, HOST_CHARACTERS_MAX) || "-";
}

/** `Nov 15 08:30:02`, in UTC. */
function oldTime(at: number): string {
  const time = new Date(at);
  return `${MONTHS[time.getUTCMonth()]} ${String(time.getUTCDate()).padStart(2)} ${formatTime(at).slice(11, 19)}`;
}
