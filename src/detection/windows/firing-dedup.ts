import { createHash } from "node:crypto";
import type { Scalar } from "../../model/condition.ts";
import { isSameIncident, newestEvents, RELATED_EVENTS_MAX, type EventMark } from "../../model/finding.ts";
import { pathList, type Rule } from "../../model/rule.ts";
import { GroupHash, randomSeed } from "./group-hash.ts";
import { limitValues } from "./group-combinations.ts";

// Deduplicates firings of a rule into incidents, and decides which of their events count.

const KEY_CHARACTERS_MAX = 500;
/** Counted events that are remembered over all rules: at least this many, at most twice as many. */
const COUNTED_MAX = 100_000;
/** The bits of the high word that fit into a safe integer beside the low word. */
const HIGH_MASK = 2 ** 21 - 1;

/** The deduplication key of a firing: the group, or the values of the rule's `dedup.by` paths. */
export function dedupKeyOf(
  rule: Pick<Rule, "dedup">,
  group: readonly Scalar[],
  read: (path: string) => readonly Scalar[],
): string {
  if (rule.dedup.by === null) return keyText(group);
  return keyText(
    pathList(rule.dedup.by).map((path) => {
      const values = limitValues(read(path));
      return values.length > 1 ? [...values] : (values[0] ?? null);
    }),
  );
}

/** Truncates long keys and appends a digest. */
function keyText(values: readonly unknown[]): string {
  const text = JSON.stringify(values);
  if (text.length <= KEY_CHARACTERS_MAX) return text;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 32);
  return `${text.slice(0, KEY_CHARACTERS_MAX).toWellFormed()}…${digest}`;
}

export interface FiringEvents {
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** Newest first. */
  readonly marks: readonly EventMark[];
}

/**
 * Events that have been counted under a key. An event can be in several groups that fire one after the other. If these share
 * a key, the event counts only for the first. Events are stored as hashes, since keys can be long; the oldest are forgotten.
 */
export class CountedEvents {
  readonly #hash = new GroupHash(randomSeed());
  #newer = new Set<number>();
  #older = new Set<number>();

  /** Reduces the firing to its new events. Its time span stays that of all events, since deduplication depends on it. */
  add(key: string, firing: FiringEvents): FiringEvents {
    const marks = firing.marks.filter(({ id }) => this.#note(key, id));
    return { ...firing, count: firing.count - (firing.marks.length - marks.length), marks };
  }

  /** Returns true if the event is new under this key. */
  #note(key: string, id: string): boolean {
    this.#hash.of([key, id]);
    const hash = (this.#hash.high & HIGH_MASK) * 2 ** 32 + this.#hash.low;
    if (this.#newer.has(hash) || this.#older.has(hash)) return false;
    if (this.#newer.size >= COUNTED_MAX) {
      this.#older = this.#newer;
      this.#newer = new Set();
    }
    this.#newer.add(hash);
    return true;
  }
}

/** Merges firings that one event causes in several groups under one key. */
export function mergeFirings(one: FiringEvents, other: FiringEvents): FiringEvents {
  return {
    count: one.count + other.count,
    firstMs: Math.min(one.firstMs, other.firstMs),
    lastMs: Math.max(one.lastMs, other.lastMs),
    marks: newestEvents(one.marks, other.marks),
  };
}

/** Firings of one batch under one key; `first` is the caller's data about the first firing. */
export class Incident<First> {
  readonly first: First;
  eventCount: number;
  firstEventMs: number;
  lastEventMs: number;
  #marks: EventMark[];

  constructor(first: First, { count, firstMs, lastMs, marks }: FiringEvents) {
    this.first = first;
    this.eventCount = count;
    this.firstEventMs = firstMs;
    this.lastEventMs = lastMs;
    this.#marks = marks.slice(0, RELATED_EVENTS_MAX);
  }

  includes({ firstMs, lastMs }: FiringEvents, periodMs: number): boolean {
    return isSameIncident(this, { firstEventMs: firstMs, lastEventMs: lastMs }, periodMs);
  }

  add({ count, firstMs, lastMs, marks }: FiringEvents): void {
    this.eventCount += count;
    this.firstEventMs = Math.min(this.firstEventMs, firstMs);
    this.lastEventMs = Math.max(this.lastEventMs, lastMs);
    for (let i = 0; i < Math.min(marks.length, RELATED_EVENTS_MAX); i++) this.#marks.push(marks[i]!);
    if (this.#marks.length > RELATED_EVENTS_MAX * 8) this.#marks = newestEvents(this.#marks, []);
  }

  get events(): readonly EventMark[] {
    return newestEvents(this.#marks, []);
  }
}

/** The incidents of one batch. Each becomes one finding, regardless of its number of events. */
export class IncidentBatch<First> {
  readonly #all: Incident<First>[] = [];
  /** By key, the incident with the newest event: the one that a further firing would join. */
  readonly #newest = new Map<string, Incident<First>>();

  add(key: string, firing: FiringEvents, periodMs: number, first: () => First): void {
    const known = this.#newest.get(key);
    if (known?.includes(firing, periodMs)) return known.add(firing);
    const incident = new Incident(first(), firing);
    this.#all.push(incident);
    if (known === undefined || incident.lastEventMs >= known.lastEventMs) this.#newest.set(key, incident);
  }

  get all(): readonly Incident<First>[] {
    return this.#all;
  }
}
