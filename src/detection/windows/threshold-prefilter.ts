import { parseDuration } from "../../lib/duration.ts";
import type { Scalar } from "../../model/condition.ts";
import { groupPaths, pathList, type Rule } from "../../model/rule.ts";
import type { ProjectedEvents } from "../../store/ports/projection.ts";
import { ValueMemo } from "../simulation/value-memo.ts";
import { GroupHash, randomSeed } from "./group-hash.ts";

// A prefilter for events that cannot reach a threshold. Time is divided into buckets of one window, so that the events of any
// window lie in one bucket or in two adjacent ones. If a group has too few events in these, none of them can count. A count
// sketch keyed by hash holds the counts. Collisions let too many events through, never too few. For most rules hardly any
// event remains, and a dropped event costs a twentieth of counting it.

const CELL_BITS = 18;
/** Keeps hashes within the range of small integers, which engines store best. */
const HASH_MASK = 2 ** 30 - 1;
const NONE = -1;
const SEVERAL = -2;
/** Odd and large, so that adjacent buckets lie far apart. */
const SPREAD = 0x9e3779b1;

export class ThresholdPrefilter {
  readonly #windowMs: number;
  readonly #count: number;
  /** Indices of the group's fields, followed by those of the distinct values. */
  readonly #columns: readonly number[];
  readonly #hashes: readonly ValueMemo<number>[];
  /** Number of columns that identify the group. */
  readonly #groupColumns: number;
  readonly #cells = new Uint32Array(2 ** CELL_BITS);

  /** The rule must have a threshold; `fields` lists the projected fields. */
  constructor(rule: Pick<Rule, "threshold" | "window" | "groupBy">, fields: readonly string[]) {
    const { count = 1, distinct } = rule.threshold!;
    const hash = new GroupHash(randomSeed());
    const hashOf = (values: readonly Scalar[]) => {
      if (values.length !== 1) return values.length === 0 ? NONE : SEVERAL;
      hash.of(values);
      return hash.low & HASH_MASK;
    };
    this.#windowMs = parseDuration(rule.window!)!;
    this.#count = count;
    this.#groupColumns = groupPaths(rule).length;
    this.#columns = [...groupPaths(rule), ...pathList(distinct)].map((path) => fields.indexOf(path));
    this.#hashes = this.#columns.map(() => new ValueMemo(hashOf));
  }

  /** Indices of the events that may count, in order; undefined if none can be ruled out. */
  pick(events: ProjectedEvents): Int32Array | undefined {
    const { length, timesMs } = events;
    const windowMs = this.#windowMs;
    // Events of adjacent parts may lie within a window of these.
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
      const bucket = Math.floor((timeMs - fromMs) / windowMs);
      const here = cells[cellOf(group, bucket)]!;
      const mayCount =
        timeMs <= openUpTo ||
        timeMs >= openFrom ||
        here + cells[cellOf(group, bucket - 1)]! >= this.#count ||
        here + cells[cellOf(group, bucket + 1)]! >= this.#count;
      if (mayCount) picked[count++] = i;
    }
    return picked.subarray(0, count);
  }

  /** A hash of each event's group; undefined if an event is in several groups. */
  #groupsOf({ length, columns }: ProjectedEvents): Int32Array | undefined {
    const groups = new Int32Array(length);
    for (const [n, column] of this.#columns.entries()) {
      const { numbers } = columns[column]!;
      const hashes = this.#hashes[n]!.of(columns[column]!);
      const isGroupColumn = n < this.#groupColumns;
      for (let i = 0; i < length; i++) {
        const hash = hashes[numbers[i]!]!;
        if (hash === SEVERAL) return undefined;
        if (hash === NONE) groups[i] = NONE;
        else if (isGroupColumn && groups[i] !== NONE) groups[i] = (Math.imul(groups[i]!, SPREAD) + hash) & HASH_MASK;
      }
    }
    return groups;
  }
}

function cellOf(group: number, bucket: number): number {
  return Math.imul(group + Math.imul(bucket, SPREAD), SPREAD) >>> (32 - CELL_BITS);
}
