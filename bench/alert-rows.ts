import { randomFrom, type Random } from "../src/demo/random.ts";
import { DAY_MS } from "../src/lib/time.ts";
import { RESOLUTIONS, type Status } from "../src/model/alert-state.ts";
import { SEVERITIES, sourceNames } from "../src/model/event.ts";
import type { AlertCells } from "../src/store/alert-index/alert-columns.ts";
import { PLATFORM } from "./dataset.ts";

// Alerts of a site over 90 days: a few rules, sources and people account for most of them, and most old ones are resolved.

export const DAYS = 90;
export const RULES = Array.from({ length: 60 }, (_, i) => `bench.rule_${i}`);
export const PEOPLE = Array.from({ length: 40 }, (_, i) => `person${i}@example.com`);
export const SOURCES = sourceNames(PLATFORM);

const SEED = 20_261_117;
const SEVERITY_SHARES = [0.02, 0.1, 0.3, 0.38, 0.2];
const SOURCE_SHARES = [0.6, 0.15, 0.1, 0.05, 0.1];
const FRESH_DAYS = 3;
const MINUTE_MS = 60_000;
const EVENTS_MAX = 10_000;

/** In the order of creation, which is the order of their slots too. */
export function benchAlerts(count: number, endMs: number): AlertCells[] {
  const random = randomFrom(SEED);
  const times = Float64Array.from({ length: count }, () => endMs - random.below(DAYS * DAY_MS)).sort();
  return Array.from(times, (createdAt, slot) => newAlert(random, slot, createdAt, endMs));
}

function newAlert(random: Random, slot: number, createdAt: number, endMs: number): AlertCells {
  const status = statusOf(random, endMs - createdAt);
  const acknowledgedAt = createdAt + random.between(MINUTE_MS, 120 * MINUTE_MS);
  return {
    slot,
    status,
    severity: byShare(random, SEVERITIES, SEVERITY_SHARES),
    ruleName: mostlyFirst(random, RULES),
    source: byShare(random, SOURCES, SOURCE_SHARES),
    assignee: status === "open" ? null : mostlyFirst(random, PEOPLE),
    resolution: status === "resolved" ? random.pick(RESOLUTIONS) : null,
    createdAt,
    lastEventAt: createdAt + random.below(60 * MINUTE_MS),
    // Evenly spread over the orders of magnitude: most alerts have few events, some have thousands.
    eventCount: Math.floor(EVENTS_MAX ** random.next()),
    firstAcknowledgedAt: status === "open" ? null : acknowledgedAt,
    resolvedAt: status === "resolved" ? acknowledgedAt + random.below(DAY_MS) : null,
    firstEventAt: createdAt - random.below(MINUTE_MS),
    groupField: null,
    groupValue: null,
    tags: [],
    entities: [],
    threatScore: null,
  };
}

function statusOf(random: Random, ageMs: number): Status {
  const isFresh = ageMs < FRESH_DAYS * DAY_MS;
  if (random.onceIn(isFresh ? 2 : 12)) return "open";
  return random.onceIn(isFresh ? 2 : 20) ? "acknowledged" : "resolved";
}

function byShare<Item>(random: Random, items: readonly Item[], shares: readonly number[]): Item {
  let rest = random.next();
  return items.find((_, i) => (rest -= shares[i]!) < 0) ?? items.at(-1)!;
}

/** The first of 60 gets about an eighth, the last less than a hundredth. */
function mostlyFirst<Item>(random: Random, items: readonly Item[]): Item {
  return items[Math.floor(items.length * random.next() ** 2)]!;
}
