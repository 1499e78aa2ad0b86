import type { Event } from "../../data/client.ts";
import { laneOf } from "./lanes.ts";

// Events as marks: when each begins and ends, and on which lane it stands.

export interface Mark {
  readonly event: Event;
  /** The event that ends it; it has no mark of its own. */
  readonly end?: Event;
  readonly fromMs: number;
  readonly toMs: number;
  readonly lane: string;
}

/** Types that begin something which another type ends; both name the same thing in one of the fields. */
const ENDED_BY = new Map([
  ["call_started", { type: "call_ended", fields: ["call"] }],
  ["camera_offline", { type: "camera_online", fields: ["camera", "device"] }],
  ["device_offline", { type: "device_online", fields: ["device", "host"] }],
  ["wan_link_down", { type: "wan_link_up", fields: ["link", "device"] }],
]);
const BEGINNING = new Map([...ENDED_BY].map(([start, { type, fields }]) => [type, { start, fields }]));

/** The event is told when the time is over; its duration lies before it. */
const TOLD_AT_END = new Set(["door_held", "call_ended"]);
const DURATION_MS_MAX = 7 * 86_400_000;
/** A beginning without an end among the events: still going on, or its end was lost. */
const OPEN_MS_MAX = 3_600_000;

const nameIn = (event: Event, fields: readonly string[]) => {
  const field = fields.find((name) => event.raw[name] !== undefined);
  return field === undefined ? undefined : String(event.raw[field]);
};

function durationMs({ raw }: Event): number {
  const seconds = Number(raw["duration_s"] ?? 0);
  return Number.isFinite(seconds) ? Math.min(DURATION_MS_MAX, Math.max(0, seconds * 1000)) : 0;
}

/** One mark for each event, except for those that end another one's. `untilMs`: where the events stop being known. */
export function marksOf(events: readonly Event[], untilMs = Number.POSITIVE_INFINITY): Mark[] {
  const inOrder = events
    .map((event) => ({ event, atMs: Date.parse(event.timestamp) }))
    .toSorted((a, b) => a.atMs - b.atMs);
  const marks: Mark[] = [];
  /** Beginnings that wait for their end, by type and name: their place among the marks. */
  const open = new Map<string, number>();
  for (const { event, atMs } of inOrder) {
    const begins = ENDED_BY.get(event.type);
    const ends = BEGINNING.get(event.type);
    if (ends !== undefined) {
      const key = `${ends.start} ${nameIn(event, ends.fields)}`;
      const place = open.get(key);
      if (place !== undefined) {
        marks[place] = { ...marks[place]!, end: event, toMs: atMs };
        open.delete(key);
        continue;
      }
    }
    const ms = durationMs(event);
    const lane = laneOf(event);
    if (TOLD_AT_END.has(event.type)) {
      marks.push({ event, fromMs: atMs - ms, toMs: atMs, lane });
    } else if (begins === undefined || ms > 0) {
      marks.push({ event, fromMs: atMs, toMs: atMs + ms, lane });
    } else {
      open.set(`${event.type} ${nameIn(event, begins.fields)}`, marks.length);
      marks.push({ event, fromMs: atMs, toMs: Math.max(atMs, Math.min(untilMs, atMs + OPEN_MS_MAX)), lane });
    }
  }
  return marks;
}
