import type { JsonObject, JsonValue } from "../../../model/event.ts";
import { protocolNumber } from "../eve/eve-flow.ts";
import { isTargetName } from "../described/field-values.ts";
import { readAnyTime } from "../device-times.ts";
import {
  addressOf,
  FIELDS_MAX,
  integerOf,
  numberOf,
  ownText,
  portOf,
  protocolOf,
  put,
  putForeign,
  textOf,
} from "../device-values.ts";
import type { MessageReading } from "../line-format.ts";
import type { ParsedFlow, ReadContext } from "../reading.ts";
import { readLog, type ZeekFields } from "./zeek-kinds.ts";

// One record of Zeek by its field names. Connections become flows, everything else an event that keeps Zeek's fields.

export function readZeek(log: string, fields: ZeekFields, context: ReadContext): MessageReading {
  if (log === "conn") {
    const flows = flowsOf(fields, context);
    if (flows.length > 0) return { kind: "flows", flows };
  }
  const raw: JsonObject = {};
  put(raw, "src_ip", addressOf(fields["id.orig_h"]));
  put(raw, "src_port", portOf(fields["id.orig_p"]));
  put(raw, "dst_ip", addressOf(fields["id.resp_h"]));
  put(raw, "dst_port", portOf(fields["id.resp_p"]));
  const protocol = textOf(fields["proto"]);
  if (protocol !== undefined) put(raw, "protocol", protocolOf(protocol));
  const { type, severity, class: eventClass } = readLog(log, raw, fields);
  const leftOut = keepFields(fields, raw);
  if (leftOut > 0) put(raw, "fields_left_out", leftOut);
  put(raw, "event_id", textOf(fields["uid"]));
  raw["log"] = log;
  const timestampMs = readAnyTime(fields["ts"], context);
  return { kind: "events", events: [{ type, source: "network", severity, class: eventClass, timestampMs, raw }] };
}

/** Where a field of Zeek is stored: nested if its name has a point, and with the prefix `zeek_` if its name is ours. */
interface Place {
  readonly group: string | undefined;
  readonly name: string;
  readonly isOurs: boolean;
}

/** Few names make up all logs; the cache is cleared when full, which only made-up names can cause. */
const PLACES_MAX = 4000;
const places = new Map<string, Place>();

function placeOf(name: string): Place {
  const known = places.get(name);
  if (known !== undefined) return known;
  const point = name.indexOf(".");
  const group = point > 0 ? name.slice(0, point) : undefined;
  const place = {
    group: group === "__proto__" ? "_proto_" : group !== undefined && isTargetName(group) ? `zeek_${group}` : group,
    name: point > 0 ? name.slice(point + 1) : name,
    isOurs: isTargetName(name),
  };
  if (places.size >= PLACES_MAX) places.clear();
  places.set(ownText(name), place);
  return place;
}

/** Number of fields past the limit. */
function keepFields(fields: ZeekFields, raw: JsonObject): number {
  let count = 0;
  let leftOut = 0;
  for (const field in fields) {
    const value = fields[field];
    if (!isPlain(value) || field === "ts") continue;
    if (++count > FIELDS_MAX) {
      leftOut++;
      continue;
    }
    const { group, name, isOurs } = placeOf(field);
    if (group !== undefined) nest(raw, group, name, value);
    else if (!isOurs) putForeign(raw, name, value);
    else if (raw[name] !== value) putForeign(raw, `zeek_${name}`, value);
  }
  return leftOut;
}

function nest(raw: JsonObject, group: string, name: string, value: JsonValue): void {
  const known = raw[group];
  if (typeof known === "object" && known !== null && !Array.isArray(known)) putForeign(known, name, value);
  else if (known === undefined) {
    const made: JsonObject = {};
    putForeign(made, name, value);
    raw[group] = made;
  }
}

function isPlain(value: JsonValue | undefined): value is JsonValue {
  switch (typeof value) {
    case "string":
      return value !== "";
    case "number":
      return Number.isFinite(value);
    case "object":
      return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one !== "object");
    default:
      return value !== undefined;
  }
}

/** Both directions of a connection, without an empty one. */
function flowsOf(fields: ZeekFields, context: ReadContext): ParsedFlow[] {
  const srcIp = addressOf(fields["id.orig_h"]);
  const dstIp = addressOf(fields["id.resp_h"]);
  const protocol = protocolNumber(fields["proto"]);
  const firstMs = readAnyTime(fields["ts"], context);
  if (srcIp === undefined || dstIp === undefined || protocol === undefined || firstMs === null) return [];
  const lastMs = firstMs + Math.round((numberOf(fields["duration"]) ?? 0) * 1000);
  // Ports of ICMP are its type and code.
  const hasPorts = textOf(fields["proto"]) !== "icmp";
  const srcPort = (hasPorts ? portOf(fields["id.orig_p"]) : 0) ?? 0;
  const dstPort = (hasPorts ? portOf(fields["id.resp_p"]) : 0) ?? 0;
  const common = { protocol, tcpFlags: 0, firstMs, lastMs };
  const bytesOf = (end: "orig" | "resp") =>
    integerOf(fields[`${end}_ip_bytes`]) ?? integerOf(fields[`${end}_bytes`]) ?? 0;
  return [
    {
      ...common,
      srcIp,
      dstIp,
      srcPort,
      dstPort,
      bytes: bytesOf("orig"),
      packets: integerOf(fields["orig_pkts"]) ?? 0,
    },
    {
      ...common,
      srcIp: dstIp,
      dstIp: srcIp,
      srcPort: dstPort,
      dstPort: srcPort,
      bytes: bytesOf("resp"),
      packets: integerOf(fields["resp_pkts"]) ?? 0,
    },
  ].filter(({ bytes, packets }) => bytes > 0 || packets > 0);
}
