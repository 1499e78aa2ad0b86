import type { JsonObject } from "../../../model/event.ts";
import { addressOf, integerOf, portOf, put } from "../device-values.ts";
import { readAnyTime } from "../device-times.ts";
import { oneEvent, type LineFormat } from "../line-format.ts";
import type { ParsedEvent, ReadContext } from "../reading.ts";

// Access logs of nginx and Apache in the common and combined formats, also with the virtual host in front. Both servers escape
// quotation marks in what a client sends, so the first one that is not escaped begins the request.

const about = "access logs of nginx and Apache in the common and combined formats";
const example =
  '192.0.2.9 - robin [15/Nov/2026:10:00:00 +0000] "GET /admin?a=1 HTTP/1.1" 401 512 "https://www.example.org/" "curl/9.0"';

export const ACCESS_LOG = {
  name: "access-log",
  about: `${about}, in syslog`,
  devices: ["nginx", "Apache HTTP Server"],
  page: "web-servers",
  example: `nginx: ${example}`,
  programs: ["nginx", "nginx-access", "apache", "apache2", "apache-access", "httpd", "access_log"],
  ownsPrograms: true,
  read: ({ message }, context) => oneEvent(readRequest(message, context)),
} as const satisfies LineFormat;

/** Lines of the file itself. */
export const ACCESS_FILE = {
  name: "access-file",
  about: `${about}, as they stand in the file`,
  devices: ["nginx", "Apache HTTP Server"],
  page: "web-servers",
  example,
  read: ({ program, whole }, context) =>
    program === null || beginsWithClient(whole) ? oneEvent(readRequest(whole, context)) : undefined,
} as const satisfies LineFormat;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const HOST_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$/;
const VIRTUAL_HOST = /^([A-Za-z0-9_][A-Za-z0-9_.-]{0,252}):(\d{1,5})$/;
const REQUEST = /^([A-Za-z-]{2,32}) (.*?)(?: (HTTP\/\d(?:\.\d)?))?$/s;
const STATUS = /^ (\d{3}) (\d{1,15}|-)(?= |$)/;

/** The colon of an IPv6 address or of a virtual host was taken for the end of a program's name. */
function beginsWithClient(whole: string): boolean {
  const word = whole.slice(0, Math.max(0, whole.indexOf(" ")));
  return VIRTUAL_HOST.test(word) || addressOf(word) !== undefined;
}

function readRequest(message: string, context: ReadContext): ParsedEvent | undefined {
  const opening = message.indexOf('"');
  if (opening < 10 || message.charCodeAt(opening - 2) !== 0x5d) return undefined;
  const bracket = message.lastIndexOf(" [", opening);
  const timestampMs = bracket < 0 ? null : readAnyTime(message.slice(bracket + 2, opening - 2), context);
  if (timestampMs === null) return undefined;
  const closing = endOfQuoted(message, opening);
  const status = closing < 0 ? null : STATUS.exec(message.slice(closing + 1, closing + 24));
  if (status === null) return undefined;
  const raw: JsonObject = {};
  if (!readClient(message.slice(0, bracket), raw)) return undefined;
  readLine(message.slice(opening + 1, closing), raw);
  put(raw, "http_status", integerOf(status[1]));
  put(raw, "bytes", integerOf(status[2]));
  readAgent(message, closing + 1 + status[0].length, raw);
  // A browser asks without a name first; with one, the server refused it.
  const isRefused = raw["http_status"] === 401 && raw["user"] !== undefined;
  if (isRefused) put(raw, "service", "web");
  return {
    type: isRefused ? "login_failure" : "http",
    source: "network",
    severity: isRefused ? "medium" : "info",
    timestampMs,
    raw,
  };
}

/** `192.0.2.9 - robin`, also behind `www.example.org:443 `. */
function readClient(text: string, raw: JsonObject): boolean {
  let start = 0;
  let end = text.indexOf(" ");
  const host = VIRTUAL_HOST.exec(text.slice(0, Math.max(0, end)));
  if (host !== null) {
    put(raw, "host", host[1]);
    put(raw, "dst_port", portOf(host[2]));
    start = end + 1;
    end = text.indexOf(" ", start);
  }
  if (end < 0) return false;
  const client = text.slice(start, end);
  const address = addressOf(client);
  if (address === undefined && !HOST_NAME.test(client)) return false;
  put(raw, address === undefined ? "src_host" : "src_ip", address ?? client);
  // Nobody answers ident any more.
  if (!text.startsWith("- ", end + 1)) return false;
  const name = text.slice(end + "- ".length + 1);
  if (name !== "-" && name !== '""') put(raw, "user", name);
  return true;
}

function readLine(request: string, raw: JsonObject): void {
  const match = REQUEST.exec(request);
  if (match === null) {
    put(raw, "reason", "malformed request");
    return;
  }
  put(raw, "method", match[1]);
  put(raw, "url", unescape(match[2]!));
  put(raw, "app_protocol", "http");
}

/** The referrer and the user agent of the combined format. */
function readAgent(message: string, start: number, raw: JsonObject): void {
  if (message.charCodeAt(start + 1) !== QUOTE) return;
  const referrerEnd = endOfQuoted(message, start + 1);
  if (referrerEnd < 0) return;
  const referrer = message.slice(start + 2, referrerEnd);
  if (referrer !== "-" && referrer !== "") raw["referrer"] = unescape(referrer);
  if (message.charCodeAt(referrerEnd + 2) !== QUOTE) return;
  const agentEnd = endOfQuoted(message, referrerEnd + 2);
  const agent = message.slice(referrerEnd + 3, Math.max(agentEnd, referrerEnd + 3));
  if (agent !== "-") put(raw, "user_agent", unescape(agent));
}

/** Position of the quotation mark that closes the one at `start`; -1 if there is none. */
function endOfQuoted(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === BACKSLASH) at++;
    else if (code === QUOTE) return at;
  }
  return -1;
}

/** nginx escapes a quotation mark as `\x22`, Apache as `\"`. */
function unescape(text: string): string {
  return text.includes("\\") ? text.replaceAll(/\\(?:x22|")/g, '"').replaceAll(/\\(?:x5C|\\)/g, "\\") : text;
}
