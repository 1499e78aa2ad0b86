import { parseExact, parseSent } from "../../lib/exact-json.ts";
import { flawOf } from "../../lib/json.ts";
import type { EventClass, JsonObject, Severity } from "../../model/event.ts";
import { actionOf, addressOf, integerOf, objectOf, portOf, protocolOf, put, textOf, typeOf } from "../fields.ts";
import type { ReadContext, Reading } from "../reading.ts";
import { rateThreat } from "../threat-severity.ts";
import { threatClass } from "../threats.ts";
import { readAnyTime } from "../times.ts";
import { readFlow, readNetflow } from "./flow.ts";

// Suricata's EVE: one JSON object a line. Its own fields stay as they are; ours are put beside them.

/** Nothing that Suricata writes is as deep; what is deeper could not be written down again. */
const DEPTH_MAX = 32;
const DNS_PORT = 53;
/** Questions of one DNS record that become events, each with the whole record. */
const QUESTIONS_MAX = 16;
const NO_QUESTIONS: readonly JsonObject[] = [];

/** What became of a line of EVE: events, or the two directions of a flow. Never throws. */
export function readEve(line: string, context: ReadContext): Reading {
  const record = parseRecord(line);
  if (record === undefined) return refused("malformed", "not a JSON object");
  return readEveRecord(record, context);
}

/** The object of a line; undefined where the line is none, or deeper than anything that is meant. */
export function parseRecord(line: string): JsonObject | undefined {
  let record: unknown;
  try {
    record = parseExact(line);
  } catch {
    return undefined;
  }
  const object = objectOf(record);
  const flaw = object === undefined ? "too deep" : flawOf(object, DEPTH_MAX);
  if (flaw === "too deep") return undefined;
  const mayHaveHalves = line.includes("\\ud") || line.includes("\\uD") || !line.isWellFormed();
  return flaw === "rounded" || mayHaveHalves ? (parseSent(line) as JsonObject) : object;
}

/** The record is the reading's from then on: our fields are put into it. */
export function readEveRecord(record: JsonObject, context: ReadContext): Reading {
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
  const more = questions.slice(1, QUESTIONS_MAX).map((asked) => {
    const raw = { ...record };
    putQuestion(raw, asked);
    return { ...event, raw };
  });
  return { kind: "events", events: [event, ...more] };
}

interface Told {
  readonly type: string;
  readonly severity: Severity;
  readonly class?: EventClass;
}

/** Puts our names beside the record's own, and says what it is. */
type ReadKind = (raw: JsonObject, part: JsonObject, kind: string) => Told;

const told = (type: string, severity: Severity = "info"): Told => ({ type, severity });

const KINDS: Readonly<Record<string, ReadKind>> = {
  alert: (raw, alert) => {
    putSignature(raw, alert);
    put(raw, "action", actionOf(alert["action"]));
    putParts(raw);
    return told("ids_alert", rateThreat(raw, alert["severity"], alert));
  },
  // Told beside the alert that was the reason, where there is one.
  drop: (raw, drop) => {
    const alert = objectOf(raw["alert"]);
    if (alert !== undefined) putSignature(raw, alert);
    put(raw, "action", "block");
    put(raw, "reason", textOf(drop["reason"]));
    return told("drop", alert === undefined ? "low" : rateThreat(raw, alert["severity"], alert));
  },
  dns: (raw, dns) => {
    putDns(raw, dns);
    put(raw, "answer", textOf(dns["rcode"]));
    // An answer comes from the server, but it is the client that it is about.
    if (raw["src_port"] === DNS_PORT && raw["dst_port"] !== DNS_PORT) turnAround(raw);
    return told("dns_query");
  },
  http: (raw, http) => {
    putHttp(raw, http);
    return told("http");
  },
  tls: (raw, tls) => {
    put(raw, "server_name", textOf(tls["sni"]));
    return told("tls");
  },
  quic: (raw, quic) => {
    put(raw, "server_name", textOf(quic["sni"]));
    return { ...told("quic"), class: "network" };
  },
  fileinfo: (raw, file) => {
    put(raw, "file", textOf(file["filename"]));
    put(raw, "sha256", textOf(file["sha256"]));
    put(raw, "bytes", integerOf(file["size"]));
    putParts(raw);
    return told("fileinfo");
  },
  anomaly: (raw, anomaly) => {
    put(raw, "reason", textOf(anomaly["event"]));
    return told("anomaly", "low");
  },
};

const otherKind: ReadKind = (_raw, _part, kind) => ({ type: typeOf(kind, "eve"), severity: "info", class: "network" });

function putSignature(raw: JsonObject, alert: JsonObject): void {
  const category = textOf(alert["category"]);
  put(raw, "signature_id", integerOf(alert["signature_id"]));
  put(raw, "signature", textOf(alert["signature"]));
  put(raw, "category", category && threatClass(category));
}

/** What was spoken when an alert or a file was seen stands beside it. */
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

function putQuestion(raw: JsonObject, asked: JsonObject): void {
  put(raw, "query", textOf(asked["rrname"]));
  put(raw, "query_type", textOf(asked["rrtype"]));
}

/** In a list, which has had two names; older records have the one question in themselves. */
function questionsOf(dns: JsonObject): readonly JsonObject[] {
  const list = dns["queries"] ?? dns["query"];
  return Array.isArray(list) ? list.map(objectOf).filter((asked) => asked !== undefined) : NO_QUESTIONS;
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
    // The sensor's own name, which is not the machine that it is about.
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

function turnAround(raw: JsonObject): void {
  const { src_ip: from, src_port: fromPort, dst_ip: to, dst_port: toPort } = raw;
  put(raw, "src_ip", to);
  put(raw, "src_port", toPort);
  put(raw, "dst_ip", from);
  put(raw, "dst_port", fromPort);
}

function refused(reason: "malformed" | "unknown_kind", message: string): Reading {
  return { kind: "refused", reason, message };
}
