import { parseExact } from "../lib/exact-json.ts";
import { parseDuration } from "../lib/duration.ts";
import type { Scalar } from "../model/condition.ts";
import type { SeenEvent } from "../model/finding.ts";
import { groupPaths, type Rule } from "../model/rule.ts";
import type { Outage } from "../store/store.ts";
import { combinations, downtimeSince } from "./tracker.ts";

// Absence: what a rule has seen once and then no longer sees, by the clock of whoever asks.

/** Things that one rule waits for; further ones are not waited for, and counted. */
const WAITED_FOR_MAX = 10_000;

export interface Silence {
  readonly group: readonly Scalar[];
  readonly seenAtMs: number;
  /** What was last seen, where that is known. */
  readonly last: SeenEvent | null;
}

interface Waiting extends Silence {
  /** From when on it has been missed: later than it was seen where the service was down in between. */
  sinceMs: number;
}

export interface Seen {
  readonly group: string;
  /** When it came; 0: nobody waits for it any more. */
  readonly atMs: number;
  readonly last: SeenEvent | null;
}

export class Silences {
  readonly paths: readonly string[];
  readonly #afterMs: number;
  /** In the order in which they were last seen, so that those that are due stand first. */
  readonly #waiting = new Map<string, Waiting>();
  #changed = new Set<string>();
  refused = 0;

  constructor(rule: Pick<Rule, "absence" | "threshold" | "groupBy">) {
    this.paths = groupPaths(rule);
    this.#afterMs = parseDuration(rule.absence!)!;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** A match: `values` are those of each of the paths. */
  see(values: readonly (readonly Scalar[])[], last: SeenEvent | null, atMs: number): void {
    for (const group of combinations(values))
      this.#wait(this.#name(group), { group, last, seenAtMs: atMs, sinceMs: atMs });
  }

  /** What was seen before a start, in the order in which it was; the time during which nobody looked does not count. */
  resume({ group: name, atMs, last }: Seen, outages: readonly Outage[]): void {
    const group = this.#groupOf(name);
    if (atMs <= 0 || group === undefined || this.#waiting.has(name)) return;
    this.#wait(name, { group, last, seenAtMs: atMs, sinceMs: atMs + downtimeSince(atMs, outages) });
    this.#changed.delete(name);
  }

  /** Those that have been silent for too long; each is told once. */
  due(nowMs: number): Silence[] {
    const due: Silence[] = [];
    for (const [name, waiting] of this.#waiting) {
      // A clock that was set back must not make it wait for longer.
      waiting.sinceMs = Math.min(waiting.sinceMs, nowMs);
      if (nowMs - waiting.sinceMs <= this.#afterMs) break;
      this.#waiting.delete(name);
      this.#changed.add(name);
      due.push(waiting);
    }
    return due;
  }

  /** What has changed since this was last asked. */
  takeChanges(): Seen[] {
    const changes = [...this.#changed].map((group) => {
      const waiting = this.#waiting.get(group);
      return { group, atMs: waiting?.seenAtMs ?? 0, last: waiting?.last ?? null };
    });
    this.#changed.clear();
    return changes;
  }

  #wait(name: string, waiting: Waiting): void {
    if (!this.#waiting.delete(name) && this.#waiting.size >= WAITED_FOR_MAX) {
      this.refused++;
      return;
    }
    this.#waiting.set(name, waiting);
    this.#changed.add(name);
  }

  /** With the paths in it: an edited rule does not take its old groups for new ones. */
  #name(group: readonly Scalar[]): string {
    return JSON.stringify([this.paths, group]);
  }

  #groupOf(name: string): readonly Scalar[] | undefined {
    const [paths, group] = parseExact(name) as [unknown, readonly Scalar[]];
    return JSON.stringify(paths) === JSON.stringify(this.paths) ? group : undefined;
  }
}
