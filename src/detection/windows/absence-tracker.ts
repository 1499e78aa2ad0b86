import { parseExact } from "../../lib/exact-json.ts";
import { parseDuration } from "../../lib/duration.ts";
import type { Scalar } from "../../model/condition.ts";
import type { SeenEvent } from "../../model/finding.ts";
import { groupPaths, type Rule } from "../../model/rule.ts";
import type { Outage } from "../../store/ports/detection-store.ts";
import { combinations } from "./group-combinations.ts";
import { downtimeSince } from "./outages.ts";

// Absence: groups that a rule has seen before and no longer sees. The caller provides the clock.

/** Groups that one rule waits for. Further groups are refused and counted. */
const AWAITED_MAX = 10_000;

export interface Absence {
  readonly group: readonly Scalar[];
  readonly seenAtMs: number;
  /** The last event, if known. */
  readonly last: SeenEvent | null;
}

interface AwaitedGroup extends Absence {
  /** Start of the wait: `seenAtMs` plus any downtime since. */
  sinceMs: number;
}

export interface LastSeen {
  readonly group: string;
  /** Arrival time; 0 if the rule no longer waits for the group. */
  readonly atMs: number;
  readonly last: SeenEvent | null;
}

export class AbsenceTracker {
  readonly paths: readonly string[];
  readonly #afterMs: number;
  /** Ordered by last arrival, so that due groups come first. */
  readonly #awaited = new Map<string, AwaitedGroup>();
  #changed = new Set<string>();
  refused = 0;

  constructor(rule: Pick<Rule, "absence" | "threshold" | "groupBy">) {
    this.paths = groupPaths(rule);
    this.#afterMs = parseDuration(rule.absence!)!;
  }

  get size(): number {
    return this.#awaited.size;
  }

  /** Records a match; `values` holds the values of each path. */
  observe(values: readonly (readonly Scalar[])[], last: SeenEvent | null, atMs: number): void {
    for (const group of combinations(values))
      this.#await(this.#name(group), { group, last, seenAtMs: atMs, sinceMs: atMs });
  }

  /** Restores a group after a start; call in order of arrival. Downtime does not count as absence. */
  resume({ group: name, atMs, last }: LastSeen, outages: readonly Outage[]): void {
    const group = this.#groupOf(name);
    if (atMs <= 0 || group === undefined || this.#awaited.has(name)) return;
    this.#await(name, { group, last, seenAtMs: atMs, sinceMs: atMs + downtimeSince(atMs, outages) });
    this.#changed.delete(name);
  }

  /** Groups that have been absent for too long. Each is returned once. */
  due(nowMs: number): Absence[] {
    const due: Absence[] = [];
    for (const [name, awaited] of this.#awaited) {
      // A clock that was set back must not prolong the wait.
      awaited.sinceMs = Math.min(awaited.sinceMs, nowMs);
      if (nowMs - awaited.sinceMs <= this.#afterMs) break;
      this.#awaited.delete(name);
      this.#changed.add(name);
      due.push(awaited);
    }
    return due;
  }

  /** Changes since the last call. */
  takeChanges(): LastSeen[] {
    const changes = [...this.#changed].map((group) => {
      const awaited = this.#awaited.get(group);
      return { group, atMs: awaited?.seenAtMs ?? 0, last: awaited?.last ?? null };
    });
    this.#changed.clear();
    return changes;
  }

  #await(name: string, awaited: AwaitedGroup): void {
    if (!this.#awaited.delete(name) && this.#awaited.size >= AWAITED_MAX) {
      this.refused++;
      return;
    }
    this.#awaited.set(name, awaited);
    this.#changed.add(name);
  }

  /** The key includes the paths, so that an edited rule does not mistake old groups for new ones. */
  #name(group: readonly Scalar[]): string {
    return JSON.stringify([this.paths, group]);
  }

  #groupOf(name: string): readonly Scalar[] | undefined {
    const [paths, group] = parseExact(name) as [unknown, readonly Scalar[]];
    return JSON.stringify(paths) === JSON.stringify(this.paths) ? group : undefined;
  }
}
