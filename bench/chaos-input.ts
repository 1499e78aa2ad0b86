import { randomFrom } from "../src/demo/random.ts";
import { formatTime } from "../src/lib/time.ts";

// The events that the nodes of a cluster get while parts of it are killed, and the rules that fire on them. The same seed gives the same
// events. What a rule finds does not depend on the order in which events arrive, because batches overtake each other.

export const BATCH_EVENTS = 20;
/** Events of a group, in as many batches; the rule fires at the fourth, and the fifth joins its alert. */
const GROUP_EVENTS = 5;
/** Every so many batches begin a group, and a sequence. */
const GROUP_BATCHES = 6;
/** Every so many batches have an event that is an alert by itself. */
const SINGLE_BATCHES = 4;
const USERS = 50;

export const CHAOS_RULES = [
  {
    name: "chaos.single",
    title: "single {{raw.n}}",
    conditions: [{ field: "type", equals: "chaos_single" }],
    dedup: { period: "1h", by: "raw.n" },
  },
  {
    name: "chaos.group",
    title: "group {{raw.group}}",
    conditions: [{ field: "type", equals: "chaos_group" }],
    window: "1h",
    threshold: { count: GROUP_EVENTS - 1, group_by: "raw.group" },
  },
  {
    name: "chaos.sequence",
    title: "sequence {{raw.group}}",
    conditions: [],
    window: "1h",
    group_by: "raw.group",
    sequence: [
      { name: "first", conditions: [{ field: "type", equals: "chaos_first" }] },
      { name: "second", conditions: [{ field: "type", equals: "chaos_second" }] },
    ],
  },
].map((rule) => ({
  description: "A rule of the trial",
  severity: "low",
  actions: [{ alert: { channels: [] } }],
  ...rule,
}));

export interface ChaosBatch {
  readonly nth: number;
  /** The same whenever the batch is sent again. */
  readonly token: string;
  readonly body: string;
}

/** `everyMs` lies between two batches, by the times of their events. */
export function chaosBatch(seed: number, nth: number, startMs: number, everyMs: number): ChaosBatch {
  const random = randomFrom(seed * 1_000_003 + nth);
  const timestamp = formatTime(startMs + nth * everyMs);
  const special: [string, object][] = [];
  if (nth % SINGLE_BATCHES === 0) special.push(["chaos_single", {}]);
  // A group has an event in each of so many batches, which go to different nodes.
  for (let back = 0; back < GROUP_EVENTS; back++) {
    const first = nth - back;
    if (first >= 0 && first % GROUP_BATCHES === 0) special.push(["chaos_group", { group: `g${first}` }]);
  }
  if (nth % GROUP_BATCHES === 0) special.push(["chaos_first", { group: `s${nth}` }]);
  if (nth % GROUP_BATCHES === 2) special.push(["chaos_second", { group: `s${nth - 2}` }]);
  const events = Array.from({ length: BATCH_EVENTS }, (_, at) => {
    const [type, data] = special[at] ?? ["chaos_noise", { user: `user${random.between(1, USERS)}` }];
    return { type, source: "custom", timestamp, data: { n: nth * BATCH_EVENTS + at, ...data } };
  });
  return { nth, token: `chaos-${seed}-${nth}`, body: JSON.stringify(events) };
}
