import type { TimeContext } from "../device-times.ts";
import { beginsHeader, readHeader, type SyslogHeader } from "./syslog-header.ts";

// Relayed messages: a relay puts its own header in front of the device's header.

/** Nested relay headers that are unwrapped. */
const RELAYS_MAX = 3;

/** Program names of relays. Messages of other programs may start with text that a stranger typed. */
const RELAY_PROGRAMS: ReadonlySet<string> = new Set([
  "cribl",
  "fluent-bit",
  "fluentd",
  "graylog",
  "logstash",
  "nxlog",
  "rsyslog",
  "rsyslogd",
  "syslog-ng",
  "syslogd",
  "td-agent",
  "vector",
]);

/** Kiwi Syslog Server puts the sender's address in front of the message. */
const ORIGINAL_ADDRESS = /^Original Address=[0-9A-Fa-f.:]{2,45} +/;

/** Some relays put nothing but the name or address of the sender in front: `192.0.2.5 <134>...`, `[192.0.2.5] <134>...`. */
const SENDER_BEFORE = /^\[?([\w.:-]{1,255}?)\]?:? {1,2}(?=<\d{1,3}>)/;
/** `source@host`, as syslog-ng writes it. */
const SOURCE_BEFORE = /^[\w.-]{1,64}@/;

export interface RelayedHeader {
  readonly header: SyslogHeader;
  /**
   * True if it can only be a relayed header. A time without a priority may also start an ordinary message of a program; it is
   * a header only if a format understands the rest.
   */
  readonly isCertain: boolean;
}

/** Header of the original message; undefined if the message was not relayed. */
export function unwrapRelayed(outer: SyslogHeader, context: TimeContext): RelayedHeader | undefined {
  let header = withSender(outer);
  let isCertain = true;
  for (let relays = 0; relays < RELAYS_MAX && isRelay(header); relays++) {
    const message = header.message.replace(ORIGINAL_ADDRESS, "");
    if (!beginsHeader(message, 0, context)) break;
    const inner = readHeader(message, context);
    if (inner.severity === null || inner.timeMs === null) isCertain = false;
    header = mergeHeaders(withoutChain(inner), header);
  }
  return header.message === outer.message ? undefined : { header, isCertain };
}

/** Separates the names that a chain of syslog-ng relays joins: `gateway/relay-1`, `s_net@gateway/relay-1`. */
export function withoutChain(header: SyslogHeader): SyslogHeader {
  const { host } = header;
  if (host === null || !/[/@]/.test(host)) return header;
  const names = host.replace(SOURCE_BEFORE, "").split("/");
  if (names.includes("")) return header;
  return { ...header, host: names[0]!, relay: header.relay ?? (names.length > 1 ? names.at(-1)! : null) };
}

/** Takes what is in front of a priority for the name of a relay. */
function withSender(header: SyslogHeader): SyslogHeader {
  const { message, host, timeMs, program } = header;
  if (host !== null || timeMs !== null || program !== null || !message.includes("<")) return header;
  const before = SENDER_BEFORE.exec(message);
  return before === null ? header : { ...header, host: before[1]!, message: message.slice(before[0].length) };
}

/** True if a relay may have written the message. */
export function isRelay({ program }: SyslogHeader): boolean {
  return program === null || RELAY_PROGRAMS.has(program.toLowerCase());
}

/** Fills gaps in the original header from the relay's. Of several relays the last one, nearest to the server, is kept. */
function mergeHeaders(inner: SyslogHeader, outer: SyslogHeader): SyslogHeader {
  const isOtherHost = inner.host !== null && outer.host !== null && inner.host !== outer.host;
  return {
    ...inner,
    facility: inner.facility ?? outer.facility,
    severity: inner.severity ?? outer.severity,
    timeMs: inner.timeMs ?? outer.timeMs,
    host: inner.host ?? outer.host,
    structuredData: inner.structuredData ?? outer.structuredData,
    relay: outer.relay ?? (isOtherHost ? outer.host : null),
  };
}
