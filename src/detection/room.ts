import type { EventKey } from "./event-words.ts";
import type { Groups, Totals } from "./groups.ts";
import type { Tracker } from "./tracker.ts";

// The limit that all trackers share. Whoever needs room when there is none takes it from groups that are worth least:
// expired ones, then those of a single match, the longest untouched first. Looking at a few at a time keeps it cheap.

const GROUPS_MAX = 2_000_000;
const GROUPS_PER_RULE_MAX = 1_000_000;
const ENTRIES_MAX = 4_000_000;
/** Sequences of all rules that wait for their time to be over. */
const PENDING_MAX = 100_000;
const LOOKED_AT = 16;
const SLOTS_MAX = 256;
/** The part of the room up to which groups may hold more than they need. */
const PLENTY = 0.25;
/** Evictions after which the largest tracker is looked for anew. */
const LARGEST_AGE_MAX = 1000;

export interface RoomLimits {
  /** Over all rules. */
  readonly groupsMax?: number | undefined;
  readonly groupsPerRuleMax?: number | undefined;
  readonly entriesMax?: number | undefined;
  readonly pendingMax?: number | undefined;
}

type Member = Pick<Tracker<EventKey>, "groups" | "isExpired">;

export class Room {
  readonly #groupsMax: number;
  readonly #groupsPerRuleMax: number;
  readonly #entriesMax: number;
  readonly #members = new Set<Member>();
  readonly #hands = new WeakMap<Member, number>();
  #largest: Member | undefined;
  #largestAge = 0;
  readonly totals: Totals = { groups: 0, entries: 0 };
  /** Sequences that wait for their time to be over. */
  pending = 0;
  readonly pendingMax: number;
  readonly evicted = { expired: 0, single: 0, several: 0 };

  constructor({ groupsMax, groupsPerRuleMax, entriesMax, pendingMax }: RoomLimits = {}) {
    this.pendingMax = pendingMax ?? PENDING_MAX;
    this.#groupsMax = groupsMax ?? GROUPS_MAX;
    this.#groupsPerRuleMax = groupsPerRuleMax ?? GROUPS_PER_RULE_MAX;
    this.#entriesMax = entriesMax ?? ENTRIES_MAX;
  }

  get hasPlenty(): boolean {
    return this.totals.entries < this.#entriesMax * PLENTY;
  }

  join(member: Member): void {
    this.#members.add(member);
  }

  leave(member: Member): void {
    if (!this.#members.delete(member)) return;
    this.totals.groups -= member.groups.live;
    this.totals.entries -= member.groups.entries;
    if (this.#largest === member) this.#largest = undefined;
  }

  /** Before an entry is added to a group, whichever. Entries come in blocks, so two go for one that comes. */
  beforeEntry(member: Member, seconds: number): void {
    for (let i = 0; i < 2 && this.totals.entries >= this.#entriesMax; i++) this.#evict(this.#payer(member), seconds);
  }

  beforeGroup(member: Member, seconds: number): void {
    if (member.groups.live >= this.#groupsPerRuleMax) this.#evict(member, seconds);
    else if (this.totals.groups >= this.#groupsMax) this.#evict(this.#payer(member), seconds);
  }

  /** A rule that has more than its share pays for itself; else the one that has most. */
  #payer(member: Member): Member {
    const { groups } = member;
    const share = 1 / this.#members.size;
    if (groups.live > this.#groupsMax * share || groups.entries > this.#entriesMax * share) return member;
    if (this.#largest === undefined || ++this.#largestAge > LARGEST_AGE_MAX) {
      this.#largestAge = 0;
      for (const other of this.#members) {
        if (this.#largest === undefined || other.groups.entries > this.#largest.groups.entries) this.#largest = other;
      }
    }
    return this.#largest ?? member;
  }

  #evict(member: Member, seconds: number): void {
    const { groups } = member;
    let worst = -1;
    let looked = 0;
    let hand = this.#hands.get(member) ?? 0;
    for (let i = 0; i < SLOTS_MAX && looked < LOOKED_AT && groups.top > 0; i++) {
      hand = hand + 1 < groups.top ? hand + 1 : 0;
      if (!groups.isLive(hand)) continue;
      looked++;
      if (member.isExpired(hand, seconds)) {
        worst = hand;
        break;
      }
      if (worst < 0 || isWorthLess(groups, hand, worst)) worst = hand;
    }
    this.#hands.set(member, hand);
    if (worst < 0) return;
    this.evicted[member.isExpired(worst, seconds) ? "expired" : groups.length(worst) === 1 ? "single" : "several"]++;
    groups.remove(worst);
  }
}

function isWorthLess(groups: Groups, one: number, other: number): boolean {
  const isSingle = groups.length(one) === 1;
  if (isSingle !== (groups.length(other) === 1)) return isSingle;
  return groups.touched(one) < groups.touched(other);
}
