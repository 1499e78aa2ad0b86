import { parseDuration } from "../lib/duration.ts";
import type { Scalar } from "../model/condition.ts";
import { groupPaths, pathList, type Rule } from "../model/rule.ts";
import type { ProjectedEvents } from "../store/store.ts";
import { ByNumber } from "./by-number.ts";
import { Hash, randomSeed } from "./hash.ts";

// Which of many events a threshold can be reached by at all. Time is cut into lengths of one window, so that events that
// lie within a window lie in one length or in two neighbours: where a group has too few in these, none of them counts.
// Groups are told apart by their hash, and where hashes meet their events count together: that lets too many through,
// never too few. For most rules hardly any event is left, and each one that is not costs a twentieth of what counting it
// would.

const CELL_BITS = 18;
/** Small integers are what arrays hold best. */
const HASH_MASK = 2 ** 30 - 1;
const NONE = -1;
const SEVERAL = -2;
/** Odd and large, so that neighbours in time lie far apart. */
const SPREAD = 0x9e3779b1;

export class Crowds {
  readonly #windowMs: number;
  readonly #count: number;
  /** Where the values stand that a group is known by; behind them those whose different values are counted. */
  readonly #places: readonly number[];
  readonly #hashes: readonly ByNumber<number>[];
  /** Of the places, how many tell groups apart. */
  readonly #groupPlaces: number;
  readonly #cells = new Uint32Array(2 ** CELL_BITS);

  /** For a rule with a threshold; `fields` are those that the events bring along. */
  constructor(rule: Pick<Rule, "threshold" | "window" | "groupBy">, fields: readonly string[]) {
    const { count = 1, distinct } = rule.threshold!;
    const hash = new Hash(randomSeed());
    const hashOf = (values: readonly Scalar[]) => {
      if (values.length !== 1) return values.length === 0 ? NONE : SEVERAL;
      hash.of(values);
      return hash.low & HASH_MASK;
    };
    this.#windowMs = parseDuration(rule.window!)!;
    this.#count = count;
    this.#groupPlaces = groupPaths(rule).length;
    this.#places = [...groupPaths(rule), ...pathList(distinct)].map((path) => fields.indexOf(path));
    this.#hashes = this.#places.map(() => new ByNumber(hashOf));
  }

  /** The places of those that may count, in their order; undefined where it is not known of any that it does not. */
  pick(events: ProjectedEvents): Int32Array | undefined {
    const { length, timesMs } = events;
    const windowMs = this.#windowMs;
    // What lies in other parts may be within a window of these.
    const fromMs = timesMs[0]!;
    const openUpTo = fromMs + windowMs;
    const openFrom = timesMs[length - 1]! - windowMs;
    if (openUpTo >= openFrom) return undefined;
    const groups = this.#groupsOf(events);
    if (!groups) return undefined;
    const cells = this.#cells.fill(0);
    for (let i = 0; i < length; i++) {
      if (groups[i] !== NONE) cells[cellOf(groups[i]!, Math.floor((timesMs[i]! - fromMs) / windowMs))]!++;
    }
    const picked = new Int32Array(length);
    let count = 0;
    for (let i = 0; i < length; i++) {
      const group = groups[i]!;
      if (group === NONE) continue;
      const timeMs = timesMs[i]!;
      const at = Math.floor((timeMs - fromMs) / windowMs);
      const here = cells[cellOf(group, at)]!;
      const mayCount =
        timeMs <= openUpTo ||
        timeMs >= openFrom ||
        here + cells[cellOf(group, at - 1)]! >= this.#count ||
        here + cells[cellOf(group, at + 1)]! >= this.#count;
      if (mayCount) picked[count++] = i;
    }
    return picked.subarray(0, count);
  }

  /** A number for each event's group; undefined where some event is in several. */
  #groupsOf({ length, columns }: ProjectedEvents): Int32Array | undefined {
    const groups = new Int32Array(length);
    for (const [n, place] of this.#places.entries()) {
      const { numbers } = columns[place]!;
      const hashes = this.#hashes[n]!.of(columns[place]!);
      const tellsApart = n < this.#groupPlaces;
      for (let i = 0; i < length; i++) {
        const hash = hashes[numbers[i]!]!;
        if (hash === SEVERAL) return undefined;
        if (hash === NONE) groups[i] = NONE;
        else if (tellsApart && groups[i] !== NONE) groups[i] = (Math.imul(groups[i]!, SPREAD) + hash) & HASH_MASK;
      }
    }
    return groups;
  }
}

function cellOf(group: number, length: number): number {
  return Math.imul(group + Math.imul(length, SPREAD), SPREAD) >>> (32 - CELL_BITS);
}
