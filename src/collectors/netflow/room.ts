/** At most one part in so many of a table is evicted at once, so that a flood pays for one pass over the table per batch. */
const EVICTION_PART = 16;
/** The part of a table that newcomers are sure of, however many have proven themselves. */
const NEWCOMER_PART = 4;
/** A network that holds more than this part of a table loses entries before all others. */
const FAIR_PART = 64;
const GREEDY_PENALTY_MS = 1e14;

export interface Occupant {
  /** Whose share of the table it counts against: an IPv4 address, or the /64 of an IPv6 address. */
  readonly network: string;
  /** Whether usable data has come of it. */
  readonly isProven: boolean;
  /** The time that eviction goes by: what has the earliest goes first. */
  readonly rankMs: number;
}

export interface RoomOptions<Item> {
  readonly max: number;
  readonly networkMax: number;
  /** The room has let go of the item already. */
  readonly onEvict: (item: Item, why: string) => void;
}

/**
 * A bounded table that anybody may fill. It never refuses: a new entry evicts others. A network that is at its limit evicts
 * its own. A full table is split in two segments as in a segmented LRU: newcomers compete for a quarter among themselves,
 * and cannot push out what is proven beyond that. Within a segment, networks with more than their fair share lose first,
 * then goes whatever ranks lowest.
 */
export class Room<Item extends Occupant> {
  readonly #options: RoomOptions<Item>;
  readonly #items = new Set<Item>();
  readonly #held = new Map<string, number>();

  constructor(options: RoomOptions<Item>) {
    this.#options = options;
  }

  get size(): number {
    return this.#items.size;
  }

  values(): Iterable<Item> {
    return this.#items;
  }

  admit(item: Item): void {
    const { max, networkMax } = this.#options;
    const { network } = item;
    if ((this.#held.get(network) ?? 0) >= networkMax) {
      const own = [...this.#items].filter((other) => other.network === network);
      this.#evict(own, networkMax, `its address holds ${networkMax} of them, the most that one may`);
    } else if (this.#items.size >= max) this.#evict(this.#segment(), max, `all ${max} places are taken`);
    this.#items.add(item);
    this.#held.set(network, (this.#held.get(network) ?? 0) + 1);
  }

  /** False where it was let go of before. */
  release(item: Item): boolean {
    if (!this.#items.delete(item)) return false;
    const held = this.#held.get(item.network)! - 1;
    if (held === 0) this.#held.delete(item.network);
    else this.#held.set(item.network, held);
    return true;
  }

  #segment(): Item[] {
    const newcomers: Item[] = [];
    const proven: Item[] = [];
    for (const item of this.#items) (item.isProven ? proven : newcomers).push(item);
    return newcomers.length > this.#options.max / NEWCOMER_PART || proven.length === 0 ? newcomers : proven;
  }

  #evict(candidates: readonly Item[], limit: number, why: string): void {
    const fair = this.#options.max / FAIR_PART;
    const scores = Float64Array.from(candidates, ({ network, rankMs }) =>
      this.#held.get(network)! > fair ? rankMs - GREEDY_PENALTY_MS : rankMs,
    );
    let left = Math.min(candidates.length, Math.max(1, Math.floor(limit / EVICTION_PART)));
    const highest = scores.toSorted()[left - 1]!;
    for (let index = 0; index < candidates.length && left > 0; index++) {
      if (scores[index]! > highest) continue;
      left--;
      // Evicting one may have taken others with it.
      if (this.release(candidates[index]!)) this.#options.onEvict(candidates[index]!, why);
    }
  }
}
