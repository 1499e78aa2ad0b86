/** The most that one eviction removes, as a fraction of the table: a flood then costs one pass over the table per batch. */
const EVICTION_FRACTION = 16;
/** The fraction of a table that stays open to newcomers, however many entries are proven. */
const NEWCOMER_FRACTION = 4;
/** A network that holds more than this fraction of a table loses entries before all others. */
const FAIR_SHARE_FRACTION = 64;
const UNFAIR_PENALTY_MS = 1e14;

export interface LimitedEntry {
  /** The network whose share the entry counts against: an IPv4 address, or the /64 of an IPv6 address. */
  readonly network: string;
  /** True once the entry has produced usable data. */
  readonly isProven: boolean;
  /** The eviction order: the lowest rank goes first. */
  readonly rankMs: number;
}

export interface TemplateLimitOptions<Entry> {
  readonly max: number;
  readonly networkMax: number;
  /** Called after the entry has been removed. */
  readonly onEvict: (entry: Entry, reason: string) => void;
}

/**
 * A bounded table that any sender may fill: of templates, and of the domains and exporters they belong to. It never refuses; a
 * new entry evicts others. A network at its own limit evicts its own entries. A full table is split into two segments, as in
 * a segmented LRU: newcomers compete for a quarter among themselves and cannot displace proven entries beyond that. Within a
 * segment, networks with more than their fair share lose first, then the lowest ranks go.
 */
export class TemplateLimit<Entry extends LimitedEntry> {
  readonly #options: TemplateLimitOptions<Entry>;
  readonly #entries = new Set<Entry>();
  readonly #countByNetwork = new Map<string, number>();

  constructor(options: TemplateLimitOptions<Entry>) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  values(): Iterable<Entry> {
    return this.#entries;
  }

  admit(entry: Entry): void {
    const { max, networkMax } = this.#options;
    const { network } = entry;
    if ((this.#countByNetwork.get(network) ?? 0) >= networkMax) {
      const own = [...this.#entries].filter((other) => other.network === network);
      this.#evict(own, networkMax, `its address reached the limit of ${networkMax}`);
    } else if (this.#entries.size >= max)
      this.#evict(this.#segment(), max, `all exporters reached the limit of ${max}`);
    this.#entries.add(entry);
    this.#countByNetwork.set(network, (this.#countByNetwork.get(network) ?? 0) + 1);
  }

  /** Returns false if the entry was removed before. */
  release(entry: Entry): boolean {
    if (!this.#entries.delete(entry)) return false;
    const count = this.#countByNetwork.get(entry.network)! - 1;
    if (count === 0) this.#countByNetwork.delete(entry.network);
    else this.#countByNetwork.set(entry.network, count);
    return true;
  }

  #segment(): Entry[] {
    const newcomers: Entry[] = [];
    const proven: Entry[] = [];
    for (const entry of this.#entries) (entry.isProven ? proven : newcomers).push(entry);
    return newcomers.length > this.#options.max / NEWCOMER_FRACTION || proven.length === 0 ? newcomers : proven;
  }

  #evict(candidates: readonly Entry[], limit: number, reason: string): void {
    const fairShare = this.#options.max / FAIR_SHARE_FRACTION;
    const scores = Float64Array.from(candidates, ({ network, rankMs }) =>
      this.#countByNetwork.get(network)! > fairShare ? rankMs - UNFAIR_PENALTY_MS : rankMs,
    );
    let left = Math.min(candidates.length, Math.max(1, Math.floor(limit / EVICTION_FRACTION)));
    const highest = scores.toSorted()[left - 1]!;
    for (let index = 0; index < candidates.length && left > 0; index++) {
      if (scores[index]! > highest) continue;
      left--;
      // Evicting one entry may have removed others.
      if (this.release(candidates[index]!)) this.#options.onEvict(candidates[index]!, reason);
    }
  }
}
