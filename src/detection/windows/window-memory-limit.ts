import type { WindowGroups, WindowTotals } from "./window-groups.ts";

// The memory limit that all trackers share. At the limit, the least valuable groups are evicted: expired ones, then those
// with a single match, least recently used first. Each eviction samples a few groups, which keeps it cheap.

const GROUPS_MAX = 2_000_000;
const GROUPS_PER_RULE_MAX = 1_000_000;
const ENTRIES_MAX = 4_000_000;
/** Pending deadlines of all rules. */
const DEADLINES_MAX = 100_000;
/** Groups that one eviction compares, and slots that it visits to find them. */
const SAMPLED_GROUPS = 16;
const SLOTS_MAX = 256;
/** The share of the limit below which groups may hold spare entries. */
const PLENTY = 0.25;
/** Evictions after which the largest tracker is determined again. */
const LARGEST_AGE_MAX = 1000;

export interface WindowLimits {
  /** Over all rules. */
  readonly groupsMax?: number | undefined;
  readonly groupsPerRuleMax?: number | undefined;
  readonly entriesMax?: number | undefined;
  readonly deadlinesMax?: number | undefined;
}

interface LimitedTracker {
  readonly groups: WindowGroups;
  isExpired(group: number, seconds: number): boolean;
}

export class WindowMemoryLimit {
  readonly #groupsMax: number;
  readonly #groupsPerRuleMax: number;
  readonly #entriesMax: number;
  readonly #trackers = new Set<LimitedTracker>();
  readonly #hands = new WeakMap<LimitedTracker, number>();
  #largest: LimitedTracker | undefined;
  #largestAge = 0;
  readonly totals: WindowTotals = { groups: 0, entries: 0 };
  /** Pending deadlines of all trackers. */
  deadlines = 0;
  readonly deadlinesMax: number;
  readonly evicted = { expired: 0, single: 0, several: 0 };

  constructor({ groupsMax, groupsPerRuleMax, entriesMax, deadlinesMax: pendingMax }: WindowLimits = {}) {
    this.deadlinesMax = pendingMax ?? DEADLINES_MAX;
    this.#groupsMax = groupsMax ?? GROUPS_MAX;
    this.#groupsPerRuleMax = groupsPerRuleMax ?? GROUPS_PER_RULE_MAX;
    this.#entriesMax = entriesMax ?? ENTRIES_MAX;
  }

  get hasPlenty(): boolean {
    return this.totals.entries < this.#entriesMax * PLENTY;
  }

  join(tracker: LimitedTracker): void {
    this.#trackers.add(tracker);
  }

  leave(tracker: LimitedTracker): void {
    if (!this.#trackers.delete(tracker)) return;
    this.totals.groups -= tracker.groups.live;
    this.totals.entries -= tracker.groups.entries;
    if (this.#largest === tracker) this.#largest = undefined;
  }

  /** Call before adding an entry. Entries are allocated in blocks, so two groups go for each. */
  beforeEntry(tracker: LimitedTracker, seconds: number): void {
    for (let i = 0; i < 2 && this.totals.entries >= this.#entriesMax; i++) this.#evict(this.#victim(tracker), seconds);
  }

  /** Call before adding a group. */
  beforeGroup(tracker: LimitedTracker, seconds: number): void {
    if (tracker.groups.live >= this.#groupsPerRuleMax) this.#evict(tracker, seconds);
    else if (this.totals.groups >= this.#groupsMax) this.#evict(this.#victim(tracker), seconds);
  }

  /** The tracker to evict from: this one if it exceeds its share, otherwise the largest. */
  #victim(tracker: LimitedTracker): LimitedTracker {
    const { groups } = tracker;
    const share = 1 / this.#trackers.size;
    if (groups.live > this.#groupsMax * share || groups.entries > this.#entriesMax * share) return tracker;
    if (this.#largest === undefined || ++this.#largestAge > LARGEST_AGE_MAX) {
      this.#largestAge = 0;
      for (const other of this.#trackers) {
        if (this.#largest === undefined || other.groups.entries > this.#largest.groups.entries) this.#largest = other;
      }
    }
    return this.#largest ?? tracker;
  }

  #evict(tracker: LimitedTracker, seconds: number): void {
    const { groups } = tracker;
    let candidate = -1;
    let sampled = 0;
    let hand = this.#hands.get(tracker) ?? 0;
    for (let i = 0; i < SLOTS_MAX && sampled < SAMPLED_GROUPS && groups.top > 0; i++) {
      hand = hand + 1 < groups.top ? hand + 1 : 0;
      if (!groups.isLive(hand)) continue;
      sampled++;
      if (tracker.isExpired(hand, seconds)) {
        candidate = hand;
        break;
      }
      if (candidate < 0 || isLessValuable(groups, hand, candidate)) candidate = hand;
    }
    this.#hands.set(tracker, hand);
    if (candidate < 0) return;
    this.evicted[
      tracker.isExpired(candidate, seconds) ? "expired" : groups.length(candidate) === 1 ? "single" : "several"
    ]++;
    groups.remove(candidate);
  }
}

function isLessValuable(groups: WindowGroups, one: number, other: number): boolean {
  const isSingle = groups.length(one) === 1;
  if (isSingle !== (groups.length(other) === 1)) return isSingle;
  return groups.touched(one) < groups.touched(other);
}
