import type { JsonObject } from "../../model/event.ts";
import { listOf, objectOf, put, secondsOf, textOf } from "../fields.ts";
import type { ReadContext, ReadEvent } from "../reading.ts";
import { readAnyTime } from "../times.ts";
import type { OpenEvents } from "./open-events.ts";

// Records of calls. One is sent again whenever something about the call changes: what was told of it is not told again.

const NIL_ID = "00000000-0000-0000-0000-000000000000";

/** One object; undefined where it is no record of a call. */
export function readTalk(object: JsonObject, context: ReadContext, open: OpenEvents): readonly ReadEvent[] | undefined {
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
  const told = outcomeOf(record, seconds);
  const id = textOf(record["uuid"]);
  const key = id === undefined || id === NIL_ID ? undefined : `call ${id}`;
  const before = key === undefined ? undefined : open.get(key);
  const fresh = told.filter((type) => !before?.types.includes(type));
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

/** What a record says has happened so far, in order. */
function outcomeOf(record: JsonObject, seconds: number | undefined): string[] {
  const status = textOf(record["status"])?.toLowerCase() ?? "";
  const hasHungUp = listOf(record["call_events"]).some((one) => objectOf(one)?.["event"] === "call_hangup");
  // Who does not say it of a missed call means one that came in.
  const direction = textOf(record["direction"])?.toLowerCase() ?? (status.includes("missed") ? "in" : "");
  // Such a word is itself the end: of a call that nobody took there may be no duration, now or later.
  const isInVain = /voicemail|missed|no.?answer|unanswered|cancel/.test(status);
  const isOver = seconds !== undefined || hasHungUp || isInVain;
  // A call that rang in vain is told by one event; one that went out was a call whatever became of it.
  if (isInVain && direction.startsWith("in")) return ["call_missed"];
  if (/refused|rejected|declined|busy|failed/.test(status)) return ["call_started", "call_refused"];
  return isOver ? ["call_started", "call_ended"] : ["call_started"];
}
