import { classOfType, sourceName, type EventClass, type EventDraft } from "../model/event.ts";
import { BUILDING_KINDS } from "./building-kinds.ts";
import type { DemoEvent, EventKind } from "./event-kind.ts";
import { NETWORK_KINDS } from "./network-kinds.ts";
import { randomFrom, type Random } from "./random.ts";
import { makeSite } from "./site.ts";
import { scenarioEvents } from "./scenarios.ts";

const SLOT_MS = 600_000;
const WEEKEND_SHARE = 0.35;
/** A smaller demo has no scenarios. */
export const EVENTS_WITH_SCENARIOS_MIN = 1500;

export interface DemoEventsOptions {
  readonly seed: number;
  /** Milliseconds, from inclusive, to exclusive. */
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly platform: string;
}

/** Yields `count` events between the two times, in chronological order; the same options give the same events. */
export function* demoEvents({ seed, from, to, count, platform }: DemoEventsOptions): Iterable<EventDraft> {
  const random = randomFrom(seed);
  const site = makeSite(random);
  const scenario = count < EVENTS_WITH_SCENARIOS_MIN ? [] : scenarioEvents(site, random, from, to);
  const toDraft = draftBuilder(platform);
  const byDay = weighted(0);
  const byNight = weighted(1);

  let followUps: DemoEvent[] = [];
  let nextScenario = 0;
  let left = count;
  for (const atMs of ordinaryTimes(count - scenario.length, from, to, random)) {
    while (nextScenario < scenario.length && scenario[nextScenario]!.atMs <= atMs) {
      yield toDraft(scenario[nextScenario++]!);
      left--;
    }
    // A follow-up event replaces a new one, so that the count stays exact.
    const due = followUps[0];
    if (due && due.atMs <= atMs) {
      followUps.shift();
      yield toDraft({ ...due, atMs });
    } else {
      const kind = choose(random.next() < activity(atMs) ? byDay : byNight, random);
      const { later, ...generated } = kind.generate(site, random, atMs);
      yield toDraft({ type: kind.type, source: kind.source, severity: kind.severity, atMs, ...generated });
      if (later && later.atMs < to) followUps = insertByTime(followUps, later);
    }
    left--;
  }
  for (; left > 0 && nextScenario < scenario.length; left--) yield toDraft(scenario[nextScenario++]!);
}

/** The activity of the site, from 0 to 1: office hours by day, little at night and at the weekend. */
export function activity(atMs: number): number {
  const date = new Date(atMs);
  const hour = date.getUTCHours() + date.getUTCMinutes() / 60;
  const daylight = Math.max(0, Math.sin(((hour - 5.5) / 14) * Math.PI)) * (hour > 5.5 && hour < 19.5 ? 1 : 0);
  const weekend = date.getUTCDay() === 0 || date.getUTCDay() === 6;
  return daylight * (weekend ? WEEKEND_SHARE : 1);
}

/** Yields `count` times in ascending order that follow the rhythm of day and week. */
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
    // Ascending random steps instead of sorting, so that memory does not grow with the count.
    let elapsedMs = 0;
    for (let made = 0; made < share; made++) {
      const step = ((lengthMs - elapsedMs) / (share - made)) * random.next();
      elapsedMs += step;
      yield Math.floor(startMs + elapsedMs);
    }
  }
}

interface WeightedKinds {
  readonly kinds: readonly EventKind[];
  readonly upTo: readonly number[];
}

function weighted(column: 0 | 1): WeightedKinds {
  const kinds = [...NETWORK_KINDS, ...BUILDING_KINDS];
  let sum = 0;
  return { kinds, upTo: kinds.map(({ weights }) => (sum += weights[column])) };
}

function choose({ kinds, upTo }: WeightedKinds, random: Random): EventKind {
  const point = random.next() * upTo.at(-1)!;
  return kinds[upTo.findIndex((limit) => point < limit)]!;
}

function insertByTime(events: DemoEvent[], event: DemoEvent): DemoEvent[] {
  let index = events.length;
  while (index > 0 && events[index - 1]!.atMs > event.atMs) index--;
  events.splice(index, 0, event);
  return events;
}

function draftBuilder(platform: string): (event: DemoEvent) => EventDraft {
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
