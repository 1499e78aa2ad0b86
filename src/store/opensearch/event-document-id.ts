import { createHash, randomInt } from "node:crypto";
import { DAY_MS } from "../../lib/time.ts";
import { makeEventId } from "../files/event-id.ts";

// Ids of events from several machines. They have the form of files/event-id.ts, with random bits instead of a sequence, so the
// index of an event follows from its id.

const COUNTER_MAX = 0xfff;
const RANDOM = 2 ** 28;
const TIME_END = "evt_".length + 12;

/** Makes ids that rise in this process: with a clock that stands still or goes back the next millisecond is used. */
export function eventIdMaker(now: () => number): (day: number) => { id: string; arrivedMs: number } {
  let lastMs = 0;
  let counter = 0;
  return (day) => {
    const ms = now();
    if (ms > lastMs) {
      lastMs = ms;
      counter = 0;
    } else if (++counter > COUNTER_MAX) {
      lastMs++;
      counter = 0;
    }
    return { id: makeEventId(lastMs, { seq: counter * RANDOM + randomInt(RANDOM), day }), arrivedMs: lastMs };
  };
}

/**
 * The id of an event with a token. Everything after the time follows from the token, and that part is the document's id: of
 * several attempts, at whatever times and by whatever nodes, only one is stored. `attempt` tells tokens apart that happen
 * to have the same bits, or that are used again after a day.
 */
export function tokenEventId(arrivedMs: number, day: number, token: string, attempt: number): string {
  const digest = createHash("sha256").update(`${attempt} ${token}`).digest();
  const left = 0x80000000 + (digest.readUInt32BE(0) % RANDOM) * 4 + Math.floor(day / DAY_MS / 2 ** 14);
  const right = ((day / DAY_MS) % 2 ** 14) * 2 ** 18 + (digest.readUInt32BE(4) % 2 ** 18);
  const counter = digest.readUInt16BE(8) % (COUNTER_MAX + 1);
  const time = arrivedMs.toString(16).padStart(12, "0");
  const rest = left.toString(16) + right.toString(16).padStart(8, "0");
  return `evt_${time}7${counter.toString(16).padStart(3, "0")}${rest}`;
}

/** The document of an event with a token. */
export function tokenDocumentId(id: string): string {
  return id.slice(TIME_END);
}

/** The documents that may have this event. */
export function documentIds(id: string): [string, string] {
  return [id, tokenDocumentId(id)];
}
