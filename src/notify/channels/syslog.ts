import { isIPv4, isIPv6 } from "node:net";
import { hostname } from "node:os";
import { choice, integer, textOrOff } from "../../lib/setting-types.ts";
import { cefLine, syslogLine } from "../../lib/syslog-format.ts";
import { lineBytesMax, sendSyslog, SyslogFailure, type SyslogServer } from "../../lib/syslog-sender.ts";
import { oneLine } from "../../lib/text.ts";
import { formatTime } from "../../lib/time.ts";
import { readVersion } from "../../lib/version.ts";
import { defineChannel, type SendOutcome } from "../channel.ts";
import { lineOf, type Message, type MessageItem } from "../message.ts";
import { withTlsAdvice } from "../tls-advice.ts";

// Alerts as lines to a syslog server, usually that of a SIEM: one for each notification, also in a digest.

const ERROR_CHARACTERS_MAX = 200;
const TEXT_CHARACTERS_MAX = 1000;

export const syslog = defineChannel({
  delivers: "a line for each notification, in RFC 5424 or CEF",
  settings: {
    syslogHost: textOrOff("syslog server that gets alerts", "a host name or an address", /^[A-Za-z0-9_.:%-]{1,255}$/),
    syslogPort: integer("port of the syslog server", 514, 1, 65_535),
    syslogTransport: choice("connection to the syslog server", "tcp", ["udp", "tcp", "tls"]),
    syslogFormat: choice("form of the lines", "rfc5424", ["rfc5424", "cef"]),
    syslogFacility: integer("facility of the lines; 16 is local0", 16, 0, 23),
  },
  required: ["syslogHost"],
  open: ({ syslogHost, syslogPort, syslogTransport, syslogFormat, syslogFacility }, { certificates }) => {
    const server = { host: syslogHost, port: syslogPort, transport: syslogTransport, certificates };
    const header = { facility: syslogFacility, host: hostname(), bytesMax: lineBytesMax(server) };
    const version = readVersion();
    return {
      // A SIEM shows alerts of which it knows the end.
      followsAlerts: true,
      send: (message, signal) => {
        const lines = message.items.map((item) =>
          syslogFormat === "cef"
            ? cefLine({ ...cefOf(item, message), version }, header)
            : syslogLine(entryOf(item, message), header),
        );
        return outcomeOf(server, lines, signal);
      },
    };
  },
});

async function outcomeOf(server: SyslogServer, lines: readonly string[], signal: AbortSignal): Promise<SendOutcome> {
  try {
    await sendSyslog(server, lines, signal);
    return { kind: "sent" };
  } catch (error) {
    if (!(error instanceof SyslogFailure)) throw error;
    const { message, mayHaveArrived } = error;
    return { kind: "failed", error: oneLine(withTlsAdvice(message), ERROR_CHARACTERS_MAX), mayHaveArrived };
  }
}

function entryOf(item: MessageItem, { at, deliveryId, isRepeat }: Message) {
  const { alert, reason, url, closing } = item;
  return {
    at,
    severity: alert.severity,
    kind: "alert",
    fields: [
      ["alert_id", alert.id],
      ["reason", reason],
      ["severity", alert.severity],
      ["status", alert.status],
      ["rule", alert.rule.name],
      ["source", alert.source],
      ["title", alert.title],
      ...(alert.group
        ? ([
            ["group_field", alert.group.field],
            ["group_value", alert.group.value],
          ] as const)
        : []),
      ["event_count", String(alert.eventCount)],
      ["first_event_at", formatTime(alert.firstEventAt)],
      ["last_event_at", formatTime(alert.lastEventAt)],
      ...(closing
        ? ([
            ["resolution", closing.resolution],
            ["resolved_by", closing.by],
          ] as const)
        : []),
      ["url", url],
      ["delivery_id", deliveryId],
      ["repeat", String(isRepeat)],
    ] as const,
    text: `${lineOf(item)}. ${oneLine(alert.description, TEXT_CHARACTERS_MAX)}`,
  };
}

/** With the names of CEF's dictionary; labelled custom fields where it has none. */
function cefOf(item: MessageItem, { at, deliveryId, isRepeat }: Message) {
  const { alert, reason, url, closing } = item;
  const custom = (nth: number, label: string, value: string) =>
    [
      [`cs${nth}Label`, label],
      [`cs${nth}`, value],
    ] as const;
  return {
    at,
    severity: alert.severity,
    signature: alert.rule.name,
    name: alert.title,
    fields: [
      ["externalId", alert.id],
      ["act", reason],
      ["outcome", alert.status],
      ["cat", alert.source],
      ["cnt", String(alert.eventCount)],
      ["start", String(alert.firstEventAt)],
      ["end", String(alert.lastEventAt)],
      ...addressesOf(alert.group),
      ...(alert.group ? custom(1, alert.group.field, alert.group.value) : []),
      ...custom(2, "url", url),
      ...custom(3, "delivery_id", deliveryId),
      ...custom(4, "repeat", String(isRepeat)),
      ...(closing ? custom(5, "resolution", closing.resolution) : []),
      ["msg", oneLine(alert.description, TEXT_CHARACTERS_MAX)],
    ] as const,
  };
}

function addressesOf(group: MessageItem["alert"]["group"]): (readonly [string, string])[] {
  const side = group?.field === "raw.src_ip" ? "source" : group?.field === "raw.dst_ip" ? "destination" : undefined;
  if (!group || side === undefined) return [];
  if (isIPv4(group.value)) return [[side === "source" ? "src" : "dst", group.value]];
  if (!isIPv6(group.value)) return [];
  const key = side === "source" ? "c6a2" : "c6a3";
  return [
    [`${key}Label`, side === "source" ? "Source IPv6 Address" : "Destination IPv6 Address"],
    [key, group.value],
  ];
}
