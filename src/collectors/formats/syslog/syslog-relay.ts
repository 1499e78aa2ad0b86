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
  let header = outer;
  let isCertain = true;
  for (let relays = 0; relays < RELAYS_MAX && isRelay(header); relays++) {
    const message = header.message.replace(ORIGINAL_ADDRESS, "");
    if (!beginsHeader(message, 0, context)) break;
    const inner = readHeader(message, context);
    if (inner.severity === null || inner.timeMs === null) isCertain = false;
    header = mergeHeaders(inner, header);
  }
  return header === outer ? undefined : { header, isCertain };
}

function isRelay({ program }: SyslogHeader): boolean {
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
