import { createHash } from "node:crypto";
import type { Scalar } from "../model/condition.ts";
import { isSameAttack, newestEvents, RELATED_EVENTS_MAX, type EventMark } from "../model/finding.ts";
import { pathList, type Rule } from "../model/rule.ts";
import { Hash, randomSeed } from "./hash.ts";
import { bounded } from "./tracker.ts";

// Which firings of a rule are of one attack, and which of their events count for it.

const KEY_CHARACTERS_MAX = 500;
/** Events that are known to be counted under a key, of all rules together: at least so many, at most twice as many. */
const COUNTED_MAX = 100_000;
/** So much of a hash's high word as a whole number has room for beside the low one. */
const HIGH_MASK = 2 ** 21 - 1;

/** What keeps alerts of the rule apart: the group that fired, or the values of the paths that the rule names for it. */
export function foldKeyOf(
  rule: Pick<Rule, "dedup">,
  group: readonly Scalar[],
  read: (path: string) => readonly Scalar[],
): string {
  if (rule.dedup.by === null) return keyText(group);
  return keyText(
    pathList(rule.dedup.by).map((path) => {
      const values = bounded(read(path));
      return values.length > 1 ? [...values] : (values[0] ?? null);
    }),
  );
}

/** A key that is too long to keep ends in its digest. */
function keyText(values: readonly unknown[]): string {
  const text = JSON.stringify(values);
  if (text.length <= KEY_CHARACTERS_MAX) return text;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 32);
  return `${text.slice(0, KEY_CHARACTERS_MAX).toWellFormed()}…${digest}`;
}

export interface Fired {
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** Newest first. */
  readonly marks: readonly EventMark[];
}

/**
 * Which events have been counted under which key. An event can be in several groups, which fire one after the other; where
 * they fold together it counts for the first of them alone. Known by hashes, since keys are as long as somebody makes them;
 * the oldest are forgotten.
 */
export class CountedEvents {
  readonly #hash = new Hash(randomSeed());
  #newer = new Set<number>();
  #older = new Set<number>();

  /** The firing with what is new of it. It reaches over all of its events nevertheless: that is what it folds by. */
  add(key: string, fired: Fired): Fired {
    const marks = fired.marks.filter(({ id }) => this.#note(key, id));
    return { ...fired, count: fired.count - (fired.marks.length - marks.length), marks };
  }

  /** Whether it is new. */
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

/** What one event fires in several groups, with one key, is one firing. */
export function together(one: Fired, other: Fired): Fired {
  return {
    count: one.count + other.count,
    firstMs: Math.min(one.firstMs, other.firstMs),
    lastMs: Math.max(one.lastMs, other.lastMs),
    marks: newestEvents(one.marks, other.marks),
  };
}

/** Firings of one attack that came together; `first` is whatever the caller knows of the one that began it. */
export class Attack<First> {
  readonly first: First;
  eventCount: number;
  firstEventMs: number;
  lastEventMs: number;
  #marks: EventMark[];

  constructor(first: First, { count, firstMs, lastMs, marks }: Fired) {
    this.first = first;
    this.eventCount = count;
    this.firstEventMs = firstMs;
    this.lastEventMs = lastMs;
    this.#marks = marks.slice(0, RELATED_EVENTS_MAX);
  }

  takes({ firstMs, lastMs }: Fired, periodMs: number): boolean {
    return isSameAttack(this, { firstEventMs: firstMs, lastEventMs: lastMs }, periodMs);
  }

  add({ count, firstMs, lastMs, marks }: Fired): void {
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

/** The attacks of one batch: what belongs together becomes one finding, however many events it is. */
export class Attacks<First> {
  readonly #all: Attack<First>[] = [];
  /** For each key the one whose last event is the newest: the one that a further firing would fold into. */
  readonly #newest = new Map<string, Attack<First>>();

  add(key: string, fired: Fired, periodMs: number, first: () => First): void {
    const known = this.#newest.get(key);
    if (known?.takes(fired, periodMs)) return known.add(fired);
    const attack = new Attack(first(), fired);
    this.#all.push(attack);
    if (known === undefined || attack.lastEventMs >= known.lastEventMs) this.#newest.set(key, attack);
  }

  get all(): readonly Attack<First>[] {
    return this.#all;
  }
}
