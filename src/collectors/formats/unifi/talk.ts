import type { JsonObject } from "../../../model/event.ts";
import { listOf, objectOf, put, secondsOf, textOf } from "../device-values.ts";
import type { ReadContext, ParsedEvent } from "../reading.ts";
import { readAnyTime } from "../device-times.ts";
import type { OpenEvents } from "./open-events.ts";

// Call records. A record is sent again whenever the call changes; only news becomes an event.

const NIL_ID = "00000000-0000-0000-0000-000000000000";

/** Undefined if the object is not a call record. */
export function readTalk(
  object: JsonObject,
  context: ReadContext,
  open: OpenEvents,
): readonly ParsedEvent[] | undefined {
  const record = objectOf(object["data"]) ?? objectOf(object["payload"]) ?? objectOf(object["call"]) ?? object;
  const from = textOf(record["from"]);
  const to = textOf(record["to"]);
  if (from === undefined && to === undefined) return undefined;
  const startMs = readAnyTime(record["time"] ?? record["start_time"], context);
  const seconds = secondsOf(record["duration"]);
  const raw: JsonObject = { ...object, ...record };
  put(raw, "from", from);
  put(raw, "to", to);
  put(raw, "call", textOf(record["uuid"] ?? record["id"]));
  put(raw, "user", textOf(record["from_user_name"] ?? record["user"]));
  const outcomes = outcomesOf(record, seconds);
  const id = textOf(record["uuid"]);
  const key = id === undefined || id === NIL_ID ? undefined : `call ${id}`;
  const before = key === undefined ? undefined : open.get(key);
  const fresh = outcomes.filter((type) => !before?.types.includes(type));
  if (key !== undefined) {
    const types = [...(before?.types ?? []), ...fresh];
    open.set(key, {
      types,
      type: "call",
      startMs,
      device: undefined,
      hasEnded: types.some((type) => type !== "call_started"),
    });
  }
  return fresh.map((type) => {
    const isEnd = type === "call_ended" || type === "call_refused";
    const timestampMs = isEnd && startMs !== null ? startMs + (seconds ?? 0) * 1000 : startMs;
    const own =
      isEnd || type === "call_missed" ? { ...raw, ...(seconds !== undefined && { duration_s: seconds }) } : raw;
    return { type, source: "talk", severity: "info", timestampMs, raw: own };
  });
}

/** Event types of the call so far, in order. */
function outcomesOf(record: JsonObject, seconds: number | undefined): string[] {
  const status = textOf(record["status"])?.toLowerCase() ?? "";
  const hasHungUp = listOf(record["call_events"]).some((one) => objectOf(one)?.["event"] === "call_hangup");
  // A missed call without a direction is an incoming one.
  const direction = textOf(record["direction"])?.toLowerCase() ?? (status.includes("missed") ? "in" : "");
  // Such a status also ends the call: an unanswered call may never have a duration.
  const isUnanswered = /voicemail|missed|no.?answer|unanswered|cancel/.test(status);
  const isOver = seconds !== undefined || hasHungUp || isUnanswered;
  // An unanswered incoming call is one event; an outgoing call is always reported as started.
  if (isUnanswered && direction.startsWith("in")) return ["call_missed"];
  if (/refused|rejected|declined|busy|failed/.test(status)) return ["call_started", "call_refused"];
  return isOver ? ["call_started", "call_ended"] : ["call_started"];
}
