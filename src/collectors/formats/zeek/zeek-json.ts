import type { JsonObject } from "../../../model/event.ts";
import { textOf } from "../device-values.ts";
import { parseFlatRecord } from "../json-record.ts";
import type { LineFormat, LineMessage, MessageReading } from "../line-format.ts";
import type { ReadContext, Reading } from "../reading.ts";
import { logOf } from "./zeek-kinds.ts";
import { readZeek } from "./zeek-record.ts";

// Zeek's logs as JSON, one record per line.

export const ZEEK_JSON = {
  name: "zeek",
  about: "logs of Zeek as JSON, in syslog or one object per line",
  devices: ["Zeek"],
  page: "zeek",
  example:
    '{"ts":1794736800.0,"uid":"CAbc1d2EfGhIjKlMn3","id.orig_h":"10.9.3.20","id.orig_p":51522,"id.resp_h":"10.9.0.1","id.resp_p":53,' +
    '"proto":"udp","trans_id":7,"query":"www.example.org","qclass":1,"qclass_name":"C_INTERNET","qtype":1,"qtype_name":"A","rcode":0,"rcode_name":"NOERROR"}',
  read: readMessage,
  bare: { recognises: (object) => logOfRecord(object) !== undefined, read: readBare },
} as const satisfies LineFormat;

function readMessage({ message }: LineMessage, context: ReadContext): MessageReading | undefined {
  if (!message.startsWith("{") || !message.includes('"ts":')) return undefined;
  const record = parseFlatRecord(message);
  const log = record && logOfRecord(record);
  return log === undefined ? undefined : readZeek(log, record!, context);
}

function readBare(line: string, context: ReadContext): Reading {
  const record = parseFlatRecord(line);
  if (record === undefined) return { kind: "refused", reason: "malformed", message: "not a JSON object" };
  const log = logOfRecord(record);
  if (log !== undefined) return readZeek(log, record, context);
  return { kind: "refused", reason: "unknown_kind", message: "the object is not a record of Zeek" };
}

/** Connections and files have ids of this form. */
const UID = /^[CFS][A-Za-z0-9]{8,24}$/;

/** A package names the log; otherwise the fields tell. Undefined if the object is not a record of Zeek. */
function logOfRecord(record: JsonObject): string | undefined {
  const { ts, _path: path } = record;
  if (typeof ts !== "number" && typeof ts !== "string") return undefined;
  const hasId = UID.test(textOf(record["uid"]) ?? textOf(record["fuid"]) ?? "");
  const found = logOf(
    (field) => record[field] !== undefined,
    () => record["action"],
  );
  if (typeof path === "string" && /^[a-z][a-z0-9_]{1,63}$/.test(path) && (hasId || found !== undefined)) return path;
  if (found === undefined) return hasId && record["id.orig_h"] !== undefined ? "zeek" : undefined;
  return hasId || NO_ID.has(found) ? found : undefined;
}

/** Logs whose records may lack an id. */
const NO_ID: ReadonlySet<string> = new Set(["notice", "weird", "dhcp", "intel"]);
