import type { JsonObject } from "../../../model/event.ts";
import { put, secondsOf } from "../device-values.ts";
import { readAnyTime } from "../device-times.ts";
import { splitColumns } from "../described/columns.ts";
import type { LineFormat, LineMessage, MessageReading } from "../line-format.ts";
import type { ParsedEvent, ReadContext } from "../reading.ts";

// Call records of 3CX, which its CDR service sends over TCP when a call has ended. A record becomes the start and the end of the
// call. The operator chooses the fields of a record; these are the ones that 3CX starts with, in its order.

const FIRST = "Call ";
const CALL_NUMBER = /^Call \d{1,12},/;

const COLUMNS = [
  "history_id",
  "call",
  "duration",
  "started_at",
  "answered_at",
  "ended_at",
  "reason",
  "from_number",
  "to_number",
  "from_dn",
  "to_dn",
  "dialled_number",
  "reason_changed",
  "final_number",
  "final_dn",
  "bill_code",
  "bill_rate",
  "bill_cost",
  "bill_name",
  "chain",
] as const;

const COLUMNS_MIN = 12;
/** Own fields of 3CX that are kept under these names. */
const KEPT = ["answered_at", "reason_changed", "final_number", "bill_cost", "chain"] as const;

export const THREE_CX_CALLS = {
  name: "three-cx-calls",
  about: "call records of 3CX",
  devices: ["3CX"],
  page: "three-cx",
  example:
    "Call 812,00000193A5BC0001_812,,2026/11/15 09:59:40,,2026/11/15 10:00:00,TerminatedBySrc,+12025550199,Ext.101," +
    "10000,101,101,,,,,,,,Chain: +12025550199;Ext.101;",
  read: readRecord,
} as const satisfies LineFormat;

function readRecord({ program, whole }: LineMessage, context: ReadContext): MessageReading | undefined {
  if (program !== null || !whole.startsWith(FIRST) || !CALL_NUMBER.test(whole)) return undefined;
  const cells = splitColumns(whole, 0, ",");
  if (cells.length < COLUMNS_MIN) return undefined;
  const cell = (name: (typeof COLUMNS)[number]) => cells[COLUMNS.indexOf(name)] ?? "";
  const startedMs = readAnyTime(cell("started_at"), context);
  const endedMs = readAnyTime(cell("ended_at"), context);
  if (startedMs === null) return undefined;
  const raw: JsonObject = {};
  put(raw, "call", cell("call"));
  const from = numberOf(cell("from_number"));
  const to = numberOf(cell("to_number"));
  put(raw, "from", from.number);
  put(raw, "to", cell("dialled_number") || to.number);
  if (from.isOwn !== to.isOwn) put(raw, "direction", from.isOwn ? "out" : "in");
  for (const name of KEPT) if (cell(name) !== "") raw[name] = cell(name);
  const wasAnswered = cell("answered_at") !== "";
  const end: ParsedEvent = {
    type: wasAnswered || from.isOwn ? "call_ended" : "call_missed",
    source: "talk",
    severity: "info",
    timestampMs: endedMs ?? startedMs,
    raw: { ...raw },
  };
  put(end.raw, "duration_s", clockSeconds(cell("duration")));
  put(end.raw, "reason", cell("reason"));
  if (end.type === "call_missed") return { kind: "events", events: [end] };
  const start: ParsedEvent = { type: "call_started", source: "talk", severity: "info", timestampMs: startedMs, raw };
  return { kind: "events", events: [start, end] };
}

/** An extension is written `Ext.101`; any other number is external. */
function numberOf(value: string): { readonly number: string; readonly isOwn: boolean } {
  const isOwn = value.startsWith("Ext.");
  return { number: isOwn ? value.slice("Ext.".length) : value, isOwn };
}

function clockSeconds(text: string): number | undefined {
  const clock = /^(\d{1,3}):(\d\d):(\d\d)$/.exec(text);
  return clock === null ? secondsOf(text) : Number(clock[1]) * 3600 + Number(clock[2]) * 60 + Number(clock[3]);
}
