import type { JsonObject, Severity } from "../../../model/event.ts";
import { actionOf, addressOf, integerOf, objectOf, portOf, protocolOf, put, textOf, typeOf } from "../device-values.ts";
import { parseRecord } from "../json-record.ts";
import type { LineFormat, LineMessage, MessageReading } from "../line-format.ts";
import type { ReadContext, Reading } from "../reading.ts";
import { rateThreat } from "../threat-severity.ts";
import { threatClass } from "../threat-classes.ts";
import { readAnyTime } from "../device-times.ts";
import { readFlow, readNetflow } from "./eve-flow.ts";
import { PROTOCOL_KINDS, type EveMeaning, type ReadKind } from "./protocol-kinds.ts";

// Suricata's EVE: one JSON object per line. Its fields are kept, and the well-known fields are added.

const DNS_PORT = 53;
/** Questions of one DNS record that become events, each with a copy of the record. */
const QUESTIONS_MAX = 16;
const NO_QUESTIONS: readonly JsonObject[] = [];

export const EVE = {
  name: "eve",
  about: "Suricata's EVE JSON, in syslog or one object per line",
  devices: ["Suricata"],
  page: "suricata",
  example:
    '{"timestamp":"2026-11-15T10:00:00.000000+0000","event_type":"alert","src_ip":"192.0.2.44","dest_ip":"10.9.3.20",' +
    '"proto":"TCP","alert":{"action":"allowed","signature_id":2900001,"signature":"Made-up scan","severity":2}}',
  read: readMessage,
  bare: {
    recognises: (object) => typeof object["event_type"] === "string" && object["key"] === undefined,
    read: readEve,
  },
} as const satisfies LineFormat;

/** EVE inside a syslog message. Other programs write an `event_type` too, so the record must look like Suricata's. */
function readMessage({ program, message }: LineMessage, context: ReadContext): MessageReading | undefined {
  if (!message.startsWith("{") || !message.includes('"event_type"')) return undefined;
  const record = parseRecord(message);
  if (record === undefined || !(program?.startsWith("suricata") || looksLikeEve(record))) return undefined;
  const reading = readRecord(record, context);
  return reading.kind === "refused" ? undefined : reading;
}

/** True for a record with a time and both ends of the traffic, or with the sensor's counters. */
function looksLikeEve(record: JsonObject): boolean {
  if (typeof record["timestamp"] !== "string") return false;
  if (addressOf(record["src_ip"]) !== undefined && record["dest_ip"] !== undefined) return true;
  return record["event_type"] === "stats" && typeof objectOf(record["stats"])?.["uptime"] === "number";
}

/** Reads a line of EVE: events, or the two directions of a flow. Never throws. */
export function readEve(line: string, context: ReadContext): Reading {
  const record = parseRecord(line);
  if (record === undefined) return refused("malformed", "not a JSON object");
  return readRecord(record, context);
}

/** Takes over the record and adds fields to it. */
function readRecord(record: JsonObject, context: ReadContext): Reading {
  const kind = record["event_type"];
  if (typeof kind !== "string" || kind === "") return refused("unknown_kind", "the object has no event_type");
  if (kind === "stats") return { kind: "nothing" };
  if (kind === "flow" || kind === "netflow") {
    const flows = kind === "flow" ? readFlow(record, context) : readNetflow(record, context);
    return flows.length > 0
      ? { kind: "flows", flows }
      : refused("malformed", `a ${kind} without addresses or counters`);
  }
  putEnds(record);
  const readKind = Object.hasOwn(KINDS, kind) ? KINDS[kind]! : otherKind;
  const { type, severity, class: eventClass } = readKind(record, objectOf(record[kind]) ?? {}, kind);
  const timestampMs = readAnyTime(record["timestamp"], context);
  const event = { type, source: "network", severity, class: eventClass, timestampMs, raw: record } as const;
  const questions = kind === "dns" ? questionsOf(objectOf(record["dns"]) ?? {}) : NO_QUESTIONS;
  if (questions.length < 2) return { kind: "events", events: [event] };
  const more = questions.slice(1, QUESTIONS_MAX).map((question) => {
    const raw = { ...record };
    putQuestion(raw, question);
    return { ...event, raw };
  });
  return { kind: "events", events: [event, ...more] };
}

const meaning = (type: string, severity: Severity = "info"): EveMeaning => ({ type, severity });

const KINDS: Readonly<Record<string, ReadKind>> = {
  ...PROTOCOL_KINDS,
  alert: (raw, alert) => {
    putSignature(raw, alert);
    put(raw, "action", actionOf(alert["action"]));
    putParts(raw);
    return meaning("ids_alert", rateThreat(raw, alert["severity"], alert));
  },
  // Contains the alert that caused the drop, if there was one.
  drop: (raw, drop) => {
    const alert = objectOf(raw["alert"]);
    if (alert !== undefined) putSignature(raw, alert);
    put(raw, "action", "block");
    put(raw, "reason", textOf(drop["reason"]));
    return meaning("drop", alert === undefined ? "low" : rateThreat(raw, alert["severity"], alert));
  },
  dns: (raw, dns) => {
    putDns(raw, dns);
    put(raw, "answer", textOf(dns["rcode"]));
    // A response comes from the server, but the event is about the client.
    if (raw["src_port"] === DNS_PORT && raw["dst_port"] !== DNS_PORT) swapEnds(raw);
    return meaning("dns_query");
  },
  http: (raw, http) => {
    putHttp(raw, http);
    return meaning("http");
  },
  tls: (raw, tls) => {
    put(raw, "server_name", textOf(tls["sni"]));
    return meaning("tls");
  },
  quic: (raw, quic) => {
    put(raw, "server_name", textOf(quic["sni"]));
    return { ...meaning("quic"), class: "network" };
  },
  fileinfo: (raw, file) => {
    put(raw, "file", textOf(file["filename"]));
    put(raw, "sha256", textOf(file["sha256"]));
    put(raw, "bytes", integerOf(file["size"]));
    putParts(raw);
    return meaning("fileinfo");
  },
  anomaly: (raw, anomaly) => {
    put(raw, "reason", textOf(anomaly["event"]));
    return meaning("anomaly", "low");
  },
};

const otherKind: ReadKind = (_raw, _part, kind) => ({ type: typeOf(kind, "eve"), severity: "info", class: "network" });

function putSignature(raw: JsonObject, alert: JsonObject): void {
  const category = textOf(alert["category"]);
  put(raw, "signature_id", integerOf(alert["signature_id"]));
  put(raw, "signature", textOf(alert["signature"]));
  put(raw, "category", category && threatClass(category));
}

/** Adds the fields of the application protocol that an alert or file record contains. */
function putParts(raw: JsonObject): void {
  const { http, tls, quic, dns } = raw;
  if (http !== undefined) putHttp(raw, objectOf(http) ?? {});
  const handshake = objectOf(tls) ?? objectOf(quic);
  if (handshake !== undefined) put(raw, "server_name", textOf(handshake["sni"]));
  if (dns !== undefined) putDns(raw, objectOf(dns) ?? {});
}

function putHttp(raw: JsonObject, http: JsonObject): void {
  put(raw, "host", textOf(http["hostname"]));
  put(raw, "url", textOf(http["url"]));
  put(raw, "user_agent", textOf(http["http_user_agent"]));
  put(raw, "method", textOf(http["http_method"]));
  put(raw, "http_status", integerOf(http["status"]));
}

function putDns(raw: JsonObject, dns: JsonObject): void {
  if (typeof dns["rrname"] === "string") putQuestion(raw, dns);
  else putQuestion(raw, questionsOf(dns)[0] ?? dns);
}

function putQuestion(raw: JsonObject, question: JsonObject): void {
  put(raw, "query", textOf(question["rrname"]));
  put(raw, "query_type", textOf(question["rrtype"]));
}

/** Questions in a list, which has had two names. Older records have a single question and no list. */
function questionsOf(dns: JsonObject): readonly JsonObject[] {
  const list = dns["queries"] ?? dns["query"];
  return Array.isArray(list) ? list.map(objectOf).filter((question) => question !== undefined) : NO_QUESTIONS;
}

function putEnds(raw: JsonObject): void {
  putAddress(raw, "src_ip", "src_host", raw["src_ip"]);
  putAddress(raw, "dst_ip", "dst_host", raw["dest_ip"]);
  putPort(raw, "src_port", raw["src_port"]);
  putPort(raw, "dst_port", raw["dest_port"]);
  const protocol = raw["proto"];
  if (typeof protocol === "string") raw["protocol"] = protocolOf(protocol);
  put(raw, "app_protocol", textOf(raw["app_proto"]));
  put(raw, "in_interface", textOf(raw["in_iface"]));
  if (raw["host"] !== undefined) {
    // The sensor's name, not the machine that the event is about.
    put(raw, "device", textOf(raw["host"]));
    delete raw["host"];
  }
}

function putAddress(raw: JsonObject, name: "src_ip" | "dst_ip", other: "src_host" | "dst_host", value: unknown): void {
  const address = addressOf(value);
  if (address !== undefined) {
    if (raw[name] !== address) raw[name] = address;
    return;
  }
  put(raw, other, textOf(value));
  if (raw[name] !== undefined) delete raw[name];
}

function putPort(raw: JsonObject, name: "src_port" | "dst_port", value: unknown): void {
  const port = portOf(value);
  if (port !== undefined) raw[name] = port;
  else if (raw[name] !== undefined) delete raw[name];
}

function swapEnds(raw: JsonObject): void {
  const { src_ip: from, src_port: fromPort, dst_ip: to, dst_port: toPort } = raw;
  put(raw, "src_ip", to);
  put(raw, "src_port", toPort);
  put(raw, "dst_ip", from);
  put(raw, "dst_port", fromPort);
}

function refused(reason: "malformed" | "unknown_kind", message: string): Reading {
  return { kind: "refused", reason, message };
}
