import type { TimeContext } from "../times.ts";
import { beginsHeader, readHeader, type SyslogHeader } from "./header.ts";

// A relay puts a header of its own before the message that it passes on, and the header of the device stands behind it.

/** Relays behind each other that are looked through. */
const RELAYS_MAX = 3;

/** Names under which relays speak. What any other program writes may begin with what a stranger has typed. */
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

/** Kiwi Syslog Server puts the sender's address there. */
const ORIGINAL_ADDRESS = /^Original Address=[0-9A-Fa-f.:]{2,45} +/;

export interface Unwrapped {
  readonly header: SyslogHeader;
  /**
   * Whether it can be nothing but a relayed header. A time without a priority may also be how a program begins its own
   * messages: then it is one only if a reader understands what follows.
   */
  readonly isCertain: boolean;
}

/** The header of the original message; undefined where no relay has wrapped it. */
export function unwrapRelayed(outer: SyslogHeader, context: TimeContext): Unwrapped | undefined {
  let header = outer;
  let isCertain = true;
  for (let relays = 0; relays < RELAYS_MAX && isRelay(header); relays++) {
    const message = header.message.replace(ORIGINAL_ADDRESS, "");
    if (!beginsHeader(message, 0, context)) break;
    const inner = readHeader(message, context);
    if (inner.severity === null || inner.timeMs === null) isCertain = false;
    header = within(inner, header);
  }
  return header === outer ? undefined : { header, isCertain };
}

function isRelay({ program }: SyslogHeader): boolean {
  return program === null || RELAY_PROGRAMS.has(program.toLowerCase());
}

/** What the original header does not say, the relay's does. The relay nearest to us is the one that is kept. */
function within(inner: SyslogHeader, outer: SyslogHeader): SyslogHeader {
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
