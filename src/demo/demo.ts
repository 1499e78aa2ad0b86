import { classOfType, sourceName, type EventClass, type EventDraft } from "../model/event.ts";
import { BUILDING_KINDS } from "./building-kinds.ts";
import type { Happening, Kind } from "./kind.ts";
import { NETWORK_KINDS } from "./network-kinds.ts";
import { randomFrom, type Random } from "./random.ts";
import { makeSite } from "./site.ts";
import { tellStories } from "./stories.ts";

const SLOT_MS = 600_000;
const WEEKEND_SHARE = 0.35;
/** A demo too small to hide a story in is an ordinary one. */
export const EVENTS_WITH_STORIES_MIN = 1500;

export interface DemoQuestion {
  readonly seed: number;
  /** Milliseconds, from inclusive, to exclusive. */
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly platform: string;
}

/** So many events between the two times, in order of time, the same for the same question. */
export function* demoEvents({ seed, from, to, count, platform }: DemoQuestion): Iterable<EventDraft> {
  const random = randomFrom(seed);
  const site = makeSite(random);
  const stories = count < EVENTS_WITH_STORIES_MIN ? [] : tellStories(site, random, from, to);
  const finish = finisher(platform);
  const byDay = weighted(0);
  const byNight = weighted(1);

  let waiting: Happening[] = [];
  let nextStory = 0;
  let left = count;
  for (const atMs of ordinaryTimes(count - stories.length, from, to, random)) {
    while (nextStory < stories.length && stories[nextStory]!.atMs <= atMs) {
      yield finish(stories[nextStory++]!);
      left--;
    }
    // What an earlier event led to takes the place of a new one, so that the count stays what was asked for.
    const due = waiting[0];
    if (due && due.atMs <= atMs) {
      waiting.shift();
      yield finish({ ...due, atMs });
    } else {
      const kind = choose(random.next() < activity(atMs) ? byDay : byNight, random);
      const { later, ...made } = kind.make(site, random, atMs);
      yield finish({ type: kind.type, source: kind.source, severity: kind.severity, atMs, ...made });
      if (later && later.atMs < to) waiting = insertByTime(waiting, later);
    }
    left--;
  }
  for (; left > 0 && nextStory < stories.length; left--) yield finish(stories[nextStory++]!);
}

/** How awake the site is, from 0 to 1: offices by day, little by night and on Saturday and Sunday. */
export function activity(atMs: number): number {
  const date = new Date(atMs);
  const hour = date.getUTCHours() + date.getUTCMinutes() / 60;
  const daylight = Math.max(0, Math.sin(((hour - 5.5) / 14) * Math.PI)) * (hour > 5.5 && hour < 19.5 ? 1 : 0);
  const weekend = date.getUTCDay() === 0 || date.getUTCDay() === 6;
  return daylight * (weekend ? WEEKEND_SHARE : 1);
}

/** Times in order that follow the rhythm of day and week, exactly so many. */
function* ordinaryTimes(count: number, fromMs: number, toMs: number, random: Random): Iterable<number> {
  const slots: { startMs: number; lengthMs: number; weight: number }[] = [];
  for (let startMs = fromMs; startMs < toMs; startMs += SLOT_MS) {
    const lengthMs = Math.min(SLOT_MS, toMs - startMs);
    slots.push({ startMs, lengthMs, weight: (0.3 + 0.7 * activity(startMs)) * lengthMs * (0.8 + 0.4 * random.next()) });
  }
  let weightLeft = slots.reduce((sum, { weight }) => sum + weight, 0);
  let left = count;
  for (const [nth, { startMs, lengthMs, weight }] of slots.entries()) {
    const share = nth === slots.length - 1 ? left : Math.min(left, Math.round((left * weight) / weightLeft));
    weightLeft -= weight;
    left -= share;
    // One after the other with an uneven pace, rather than sorted afterwards: memory does not grow with the count.
    let gone = 0;
    for (let made = 0; made < share; made++) {
      const step = ((lengthMs - gone) / (share - made)) * random.next();
      gone += step;
      yield Math.floor(startMs + gone);
    }
  }
}

interface WeightedKinds {
  readonly kinds: readonly Kind[];
  readonly upTo: readonly number[];
}

function weighted(column: 0 | 1): WeightedKinds {
  const kinds = [...NETWORK_KINDS, ...BUILDING_KINDS];
  let sum = 0;
  return { kinds, upTo: kinds.map(({ weights }) => (sum += weights[column])) };
}

function choose({ kinds, upTo }: WeightedKinds, random: Random): Kind {
  const point = random.next() * upTo.at(-1)!;
  return kinds[upTo.findIndex((limit) => point < limit)]!;
}

function insertByTime(waiting: Happening[], item: Happening): Happening[] {
  let place = waiting.length;
  while (place > 0 && waiting[place - 1]!.atMs > item.atMs) place--;
  waiting.splice(place, 0, item);
  return waiting;
}

function finisher(platform: string): (happening: Happening) => EventDraft {
  const classes = new Map<string, EventClass>();
  return ({ type, source, severity, atMs, raw, enrichment }) => {
    let eventClass = classes.get(type);
    if (eventClass === undefined) classes.set(type, (eventClass = classOfType(type)));
    return {
      type,
      source: sourceName(platform, source),
      severity,
      class: eventClass,
      timestampMs: atMs,
      raw,
      enrichment: enrichment ?? {},
    };
  };
}
