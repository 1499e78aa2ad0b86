import { DAY_MS } from "../../lib/time.ts";

// An event's id is a UUIDv7 that encodes the event's place. The time of arrival is followed by 40 bits of arrival sequence,
// the day (since 1970) of the event's own time, and random bits. So ids sort in the order of arrival, and a look-up by id
// needs no index.

const SEQUENCE_MAX = 2 ** 40 - 1;
const RANDOM_VALUES = 2 ** 18;
const PATTERN = /^evt_([0-9a-f]{12})7([0-9a-f]{3})([89ab])([0-9a-f]{15})$/;

export interface EventPlace {
  readonly seq: number;
  /** Start of the UTC day of the event's time. */
  readonly day: number;
}

let headMs = -1;
let headHigh = -1;
let head = "";

export function makeEventId(arrivedMs: number, place: EventPlace): string {
  return idAt(arrivedMs, place, Math.floor(Math.random() * RANDOM_VALUES));
}

/** An id that sorts like that of an event at this place, and is that of none. */
export function makeEventPlace(arrivedMs: number, place: EventPlace): string {
  return idAt(arrivedMs, place, 0);
}

function idAt(arrivedMs: number, { seq, day }: EventPlace, random: number): string {
  if (seq > SEQUENCE_MAX) throw new Error("the arrival sequence is used up");
  const high = Math.floor(seq / 2 ** 28);
  // Events of a batch share the first half of their ids.
  if (arrivedMs !== headMs || high !== headHigh) {
    head = `evt_${arrivedMs.toString(16).padStart(12, "0")}7${high.toString(16).padStart(3, "0")}`;
    headMs = arrivedMs;
    headHigh = high;
  }
  // 2 bits of variant (10), 28 of sequence, 16 of day, 18 random: 64 bits in two halves that are exact as numbers.
  const left = 0x80000000 + (seq % 2 ** 28) * 4 + Math.floor(day / DAY_MS / 2 ** 14);
  const right = ((day / DAY_MS) % 2 ** 14) * RANDOM_VALUES + random;
  return head + left.toString(16) + right.toString(16).padStart(8, "0");
}

/** The place and time of arrival that the id encodes; undefined if it is not a valid event id. */
export function readEventId(id: string): (EventPlace & { arrivedMs: number }) | undefined {
  const match = PATTERN.exec(id);
  if (!match) return undefined;
  const left = Number.parseInt(match[3]! + match[4]!.slice(0, 7), 16) - 0x80000000;
  const right = Number.parseInt(match[4]!.slice(7), 16);
  const seq = Number.parseInt(match[2]!, 16) * 2 ** 28 + Math.floor(left / 4);
  const day = ((left % 4) * 2 ** 14 + Math.floor(right / RANDOM_VALUES)) * DAY_MS;
  return { seq, day, arrivedMs: Number.parseInt(match[1]!, 16) };
}
