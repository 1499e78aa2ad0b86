import { SEVERITIES, type Severity } from "../../../model/event.ts";
import { RESOLUTIONS, STATUSES, type Resolution, type Status } from "../../../model/alert-state.ts";
import type { TimeRange } from "../../../model/query.ts";
import type { AlertFilter, AlertSort, AlertTotals, OutcomesSince, RuleOutcomes } from "../../ports/alert-store.ts";
import { sliceInOrder } from "./slice-in-order.ts";

// The alert fields that lists, totals and statistics use, in memory, about 70 bytes per alert. Any combination of filters
// with an exact total is one pass over plain numbers: at most ten milliseconds for a hundred thousand alerts. The file has the same
// data.

/** The fields of an alert that lists use. `slot` is its number in the file, from 0; slots of removed alerts are reused. */
export interface AlertCells {
  readonly slot: number;
  readonly status: Status;
  readonly severity: Severity;
  readonly ruleName: string;
  readonly source: string;
  readonly assignee: string | null;
  readonly resolution: Resolution | null;
  readonly createdAt: number;
  readonly lastEventAt: number;
  readonly eventCount: number;
  readonly firstAcknowledgedAt: number | null;
  readonly resolvedAt: number | null;
  /** All tags, sorted, as a JSON list. */
  readonly tags: string;
}

export interface Selection {
  readonly filter: AlertFilter;
  /** 1 for each slot whose alert contains the search words; undefined without a search. */
  readonly found: Uint8Array | undefined;
  readonly sort: AlertSort;
  readonly descending: boolean;
  /** The slot that the page starts after. */
  readonly after: number | undefined;
  readonly offset: number;
  readonly limit: number;
}

const CAPACITY_START = 1024;
const NONE = 255;
const RESOLVED = STATUSES.indexOf("resolved");

function newColumns(capacity: number) {
  return {
    /** `NONE` for a free slot. */
    status: new Uint8Array(capacity),
    severity: new Uint8Array(capacity),
    resolution: new Uint8Array(capacity),
    rule: new Uint32Array(capacity),
    source: new Uint32Array(capacity),
    assignee: new Uint32Array(capacity),
    /** The combination of tags: alerts have few different ones. */
    tags: new Uint32Array(capacity),
    createdAt: new Float64Array(capacity),
    lastEventAt: new Float64Array(capacity),
    eventCount: new Float64Array(capacity),
    /** From creation; NaN if it has not happened. */
    acknowledgeMs: new Float64Array(capacity),
    resolveMs: new Float64Array(capacity),
    /** The position in the order of ids. */
    rank: new Uint32Array(capacity),
    /** Indexed by position, not by slot: the slots in the order of creation, then id. */
    order: new Uint32Array(capacity),
  };
}
type Columns = ReturnType<typeof newColumns>;

/** Numbers names in the order of first use. */
class Names {
  readonly #numbers = new Map<string, number>();

  numberOf(name: string): number {
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(name, number);
    }
    return number;
  }

  /** 1 at the number of each of the names. */
  marks(names: readonly string[]): Uint8Array {
    const marks = new Uint8Array(this.#numbers.size);
    for (const name of names) {
      const number = this.#numbers.get(name);
      if (number !== undefined) marks[number] = 1;
    }
    return marks;
  }

  /** 1 at the number of each name that passes the test. */
  marksWhere(test: (name: string) => boolean): Uint8Array {
    return Uint8Array.from(this.#numbers.keys(), (name) => (test(name) ? 1 : 0));
  }

  /** At the number of each of the names, its index among them; -1 elsewhere. */
  places(names: readonly string[]): Int32Array {
    const places = new Int32Array(this.#numbers.size).fill(-1);
    for (const [i, name] of names.entries()) {
      const number = this.#numbers.get(name);
      if (number !== undefined) places[number] = i;
    }
    return places;
  }
}

export class AlertColumns {
  #size = 0;
  #slotsEnd = 0;
  /** Slots of removed alerts; the last is reused first. */
  readonly #free: number[] = [];
  #columns: Columns = newColumns(CAPACITY_START);
  readonly #rules = new Names();
  readonly #sources = new Names();
  readonly #assignees = new Names();
  readonly #tags = new Names();

  constructor() {
    // Number 0 means unassigned; no address is empty.
    this.#assignees.numberOf("");
  }

  get size(): number {
    return this.#size;
  }

  /** All slots in use are below it. */
  get slotsEnd(): number {
    return this.#slotsEnd;
  }

  /** The slot of the next alert, and of those after it. */
  vacantSlot(after = 0): number {
    return this.#free.at(-1 - after) ?? this.#slotsEnd + after - this.#free.length;
  }

  /** Loads all alerts, which must be in the order of their ids. */
  load(slotsEnd: number, alerts: Iterable<AlertCells>): void {
    while (this.#columns.rank.length < slotsEnd) this.#grow();
    const { rank, createdAt, order, status } = this.#columns;
    status.fill(NONE, 0, slotsEnd);
    for (const cells of alerts) {
      rank[cells.slot] = this.#size;
      order[this.#size++] = cells.slot;
      this.#setAll(cells);
    }
    order.subarray(0, this.#size).sort((a, b) => createdAt[a]! - createdAt[b]! || rank[a]! - rank[b]!);
    this.#slotsEnd = slotsEnd;
    for (let slot = slotsEnd - 1; slot >= 0; slot--) if (status[slot] === NONE) this.#free.push(slot);
  }

  /** Adds an alert in the vacant slot. `rank` is the number of alerts with a lower id. */
  add(cells: AlertCells, rank: number): void {
    if (cells.slot !== this.vacantSlot()) throw new Error(`slot ${cells.slot} is not vacant`);
    if (this.#free.pop() === undefined) this.#slotsEnd++;
    if (this.#slotsEnd > this.#columns.rank.length) this.#grow();
    const columns = this.#columns;
    if (rank < this.#size) {
      // Ids rise, unless the clock was set back while the service was down.
      for (const slot of columns.order.subarray(0, this.#size)) if (columns.rank[slot]! >= rank) columns.rank[slot]!++;
    }
    columns.rank[cells.slot] = rank;
    this.#setAll(cells);
    let position = this.#size;
    if (position > 0 && this.#isCreatedBefore(cells.slot, columns.order[position - 1]!)) {
      position = lowest(this.#size, (i) => this.#isCreatedBefore(cells.slot, columns.order[i]!));
      columns.order.copyWithin(position + 1, position, this.#size);
    }
    columns.order[position] = cells.slot;
    this.#size++;
  }

  #grow(): void {
    const old = this.#columns;
    this.#columns = newColumns(old.rank.length * 2);
    for (const name of Object.keys(old) as (keyof Columns)[]) this.#columns[name].set(old[name]);
  }

  #setAll(cells: AlertCells): void {
    const { slot } = cells;
    const columns = this.#columns;
    columns.createdAt[slot] = cells.createdAt;
    columns.rule[slot] = this.#rules.numberOf(cells.ruleName);
    columns.source[slot] = this.#sources.numberOf(cells.source);
    this.change(cells);
  }

  /** Changes everything except rule, source and time of creation. */
  change(cells: AlertCells): void {
    const { slot } = cells;
    const columns = this.#columns;
    columns.status[slot] = STATUSES.indexOf(cells.status);
    columns.severity[slot] = SEVERITIES.indexOf(cells.severity);
    columns.resolution[slot] = cells.resolution === null ? NONE : RESOLUTIONS.indexOf(cells.resolution);
    columns.assignee[slot] = this.#assignees.numberOf((cells.assignee ?? "").toLowerCase());
    columns.tags[slot] = this.#tags.numberOf(cells.tags);
    columns.lastEventAt[slot] = cells.lastEventAt;
    columns.eventCount[slot] = cells.eventCount;
    columns.acknowledgeMs[slot] = (cells.firstAcknowledgedAt ?? Number.NaN) - cells.createdAt;
    columns.resolveMs[slot] = (cells.resolvedAt ?? Number.NaN) - cells.createdAt;
  }

  /** The first slots from `fromSlot` whose alerts were resolved before this time. */
  resolvedBefore(ms: number, fromSlot: number, limit: number): number[] {
    const { status, createdAt, resolveMs } = this.#columns;
    const found: number[] = [];
    for (let slot = fromSlot; slot < this.#slotsEnd && found.length < limit; slot++) {
      if (status[slot] === RESOLVED && createdAt[slot]! + resolveMs[slot]! < ms) found.push(slot);
    }
    return found;
  }

  /** Frees the slots. */
  remove(slots: readonly number[]): void {
    const { order, rank, status } = this.#columns;
    for (const slot of slots) status[slot] = NONE;
    const byRank = new Uint32Array(this.#size);
    for (const slot of order.subarray(0, this.#size)) byRank[rank[slot]!] = slot;
    let ranks = 0;
    for (const slot of byRank) if (status[slot] !== NONE) rank[slot] = ranks++;
    let positions = 0;
    for (const slot of order.subarray(0, this.#size)) if (status[slot] !== NONE) order[positions++] = slot;
    this.#size = positions;
    for (const slot of slots) this.#free.push(slot);
  }

  /** The slots of a page in the requested order, and the number of all matches. */
  select(selection: Selection): { total: number; slots: number[] } {
    const matching = this.#matching(selection.filter, selection.found);
    const { after, offset, limit, descending } = selection;
    const isBeforeAscending = this.#orderOf(selection.sort);
    const isBefore = descending ? (a: number, b: number) => isBeforeAscending(b, a) : isBeforeAscending;
    if (selection.sort === "created_at") {
      if (descending) matching.reverse();
      const start = after === undefined ? 0 : lowest(matching.length, (i) => isBefore(after, matching[i]!));
      return { total: matching.length, slots: [...matching.subarray(start + offset, start + offset + limit)] };
    }
    const candidates = after === undefined ? matching : matching.filter((slot) => isBefore(after, slot));
    const slots = sliceInOrder(candidates, offset, offset + limit, isBefore);
    return { total: matching.length, slots };
  }

  /** The matching slots in the order of creation. */
  #matching(filter: AlertFilter, found: Uint8Array | undefined): Uint32Array {
    const { order, status, severity, rule, source, assignee, tags } = this.#columns;
    const statuses = filter.status && marksOf(STATUSES, filter.status);
    const severities = filter.severity && marksOf(SEVERITIES, filter.severity);
    const rules = filter.ruleName && this.#rules.marks(filter.ruleName);
    const sources = filter.source && this.#sources.marks(filter.source);
    const assignees = filter.assignee && this.#assignees.marks(filter.assignee.map((name) => name.toLowerCase()));
    const tagged = filter.tag && this.#tags.marksWhere((text) => hasTag(text, filter.tag!));
    const [from, to] = this.#positionsOf(filter);
    const matching = new Uint32Array(to - from);
    let count = 0;
    for (let i = from; i < to; i++) {
      const slot = order[i]!;
      if (statuses && statuses[status[slot]!] !== 1) continue;
      if (severities && severities[severity[slot]!] !== 1) continue;
      if (rules && rules[rule[slot]!] !== 1) continue;
      if (sources && sources[source[slot]!] !== 1) continue;
      if (assignees && assignees[assignee[slot]!] !== 1) continue;
      if (tagged && tagged[tags[slot]!] !== 1) continue;
      if (found && found[slot] !== 1) continue;
      matching[count++] = slot;
    }
    return matching.subarray(0, count);
  }

  /** Start and end, in the order of creation, of the alerts created in the range. */
  #positionsOf({ fromMs = -Infinity, toMs = Infinity }: TimeRange): [number, number] {
    const { order, createdAt } = this.#columns;
    const from = lowest(this.#size, (i) => createdAt[order[i]!]! >= fromMs);
    return [
      from,
      Math.max(
        from,
        lowest(this.#size, (i) => createdAt[order[i]!]! >= toMs),
      ),
    ];
  }

  totals(range: TimeRange): AlertTotals {
    const { order, status, severity, acknowledgeMs, resolveMs } = this.#columns;
    const [from, to] = this.#positionsOf(range);
    const byStatus = STATUSES.map(() => 0);
    const bySeverity = SEVERITIES.map(() => 0);
    const acknowledged = new Mean();
    const resolved = new Mean();
    for (let i = from; i < to; i++) {
      const slot = order[i]!;
      byStatus[status[slot]!]!++;
      bySeverity[severity[slot]!]!++;
      acknowledged.add(acknowledgeMs[slot]!);
      resolved.add(resolveMs[slot]!);
    }
    return {
      total: to - from,
      byStatus: named(STATUSES, byStatus),
      bySeverity: named(SEVERITIES, bySeverity),
      acknowledgeMs: acknowledged.value,
      resolveMs: resolved.value,
    };
  }

  resolutions(ruleName: string): Record<Resolution, number> {
    const { order, rule, resolution } = this.#columns;
    const wanted = this.#rules.marks([ruleName]);
    const counts = RESOLUTIONS.map(() => 0);
    for (const slot of order.subarray(0, this.#size)) {
      if (wanted[rule[slot]!] === 1 && resolution[slot] !== NONE) counts[resolution[slot]!]!++;
    }
    return named(RESOLUTIONS, counts);
  }

  outcomes(ruleNames: readonly string[], { createdMs, resolvedMs }: OutcomesSince): RuleOutcomes[] {
    const { order, rule, resolution, createdAt } = this.#columns;
    const places = this.#rules.places(ruleNames);
    const created = new Uint32Array(ruleNames.length);
    const counts = ruleNames.map(() => RESOLUTIONS.map(() => 0));
    const [from, to] = this.#positionsOf({ fromMs: Math.min(createdMs, resolvedMs) });
    for (let i = from; i < to; i++) {
      const slot = order[i]!;
      const place = places[rule[slot]!]!;
      if (place < 0) continue;
      if (createdAt[slot]! >= createdMs) created[place]!++;
      if (createdAt[slot]! >= resolvedMs && resolution[slot] !== NONE) counts[place]![resolution[slot]!]!++;
    }
    return ruleNames.map((_, i) => ({ created: created[i]!, resolutions: named(RESOLUTIONS, counts[i]!) }));
  }

  #isCreatedBefore(a: number, b: number): boolean {
    const { createdAt, rank } = this.#columns;
    const difference = createdAt[a]! - createdAt[b]!;
    return difference < 0 || (difference === 0 && rank[a]! < rank[b]!);
  }

  /** Ascending by the key, then by id. The worst severity is the highest. */
  #orderOf(sort: AlertSort): (a: number, b: number) => boolean {
    if (sort === "created_at") return (a, b) => this.#isCreatedBefore(a, b);
    const { severity, lastEventAt, eventCount, rank } = this.#columns;
    const keys = { severity, last_event_at: lastEventAt, event_count: eventCount }[sort];
    const direction = sort === "severity" ? -1 : 1;
    return (a, b) => {
      const difference = (keys[a]! - keys[b]!) * direction;
      return difference < 0 || (difference === 0 && rank[a]! < rank[b]!);
    };
  }
}

class Mean {
  #sum = 0;
  #count = 0;

  add(value: number): void {
    if (Number.isNaN(value)) return;
    this.#sum += value;
    this.#count++;
  }

  get value(): number | null {
    return this.#count === 0 ? null : this.#sum / this.#count;
  }
}

function hasTag(tags: string, wanted: readonly string[]): boolean {
  return (JSON.parse(tags) as string[]).some((tag) => wanted.includes(tag));
}

function marksOf<Name>(all: readonly Name[], names: readonly Name[]): Uint8Array {
  return Uint8Array.from(all, (name) => (names.includes(name) ? 1 : 0));
}

function named<Name extends string>(names: readonly Name[], counts: readonly number[]): Record<Name, number> {
  return Object.fromEntries(names.map((name, i) => [name, counts[i]!])) as Record<Name, number>;
}

/** The first number below `end` from which the test holds; `end` if it never does. */
function lowest(end: number, holds: (i: number) => boolean): number {
  let [low, high] = [0, end];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
