import type { Event } from "../../data/client.ts";

// What the door, the address or the device of a thread did besides.

const FIELDS = ["door", "src_ip", "src_mac"] as const;
export const ECHOES_MAX = 300;

const thingsOf = ({ raw }: Event) =>
  FIELDS.flatMap((field) => (typeof raw[field] === "string" && raw[field] !== "" ? [`${field}=${raw[field]}`] : []));

/** The ids of those events; the nearest to the thread if there are many. */
export function echoesOf(thread: readonly Event[], events: readonly Event[]): ReadonlySet<string> {
  if (thread.length === 0) return new Set();
  const things = new Set(thread.flatMap(thingsOf));
  const own = new Set(thread.map(({ id }) => id));
  const times = thread.map(({ timestamp }) => Date.parse(timestamp));
  const firstMs = Math.min(...times);
  const lastMs = Math.max(...times);
  const distance = ({ timestamp }: Event) => {
    const atMs = Date.parse(timestamp);
    return Math.max(firstMs - atMs, atMs - lastMs, 0);
  };
  const echoes = events.filter((event) => !own.has(event.id) && thingsOf(event).some((thing) => things.has(thing)));
  if (echoes.length > ECHOES_MAX) echoes.sort((a, b) => distance(a) - distance(b));
  return new Set(echoes.slice(0, ECHOES_MAX).map(({ id }) => id));
}
