import { entityText } from "../../model/alert-entity.ts";
import { ENTITY_KINDS } from "../../model/entity.ts";
import { SEVERITIES, type Severity } from "../../model/event.ts";
import { RESOLUTIONS, STATUSES, type Resolution, type Status } from "../../model/alert-state.ts";
import type { TimeRange } from "../../model/query.ts";
import type {
  AlertFilter,
  AlertSort,
  AlertTotals,
  EntityFilter,
  OutcomesSince,
  RuleOutcomes,
} from "../ports/alert-store.ts";
import { lowest, marksOf, Mean, named } from "./column-figures.ts";
import { Dictionary, NO_TEXT } from "./dictionary.ts";
import { ListColumn } from "./list-column.ts";
import { sliceInOrder } from "./slice-in-order.ts";

// The alert fields that lists, totals and statistics use, in memory, about 100 bytes per alert and the texts. Any combination of filters
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
  readonly firstEventAt: number;
  readonly lastEventAt: number;
  readonly eventCount: number;
  readonly firstAcknowledgedAt: number | null;
  readonly resolvedAt: number | null;
  readonly groupField: string | null;
  readonly groupValue: string | null;
  readonly tags: readonly string[];
  /** Each as `kind:value`. */
  readonly entities: readonly string[];
  readonly threatScore: number | null;
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
/** A missing value in a column of bytes. */
export const NONE = 255;
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
    groupField: new Uint32Array(capacity),
    groupValue: new Uint32Array(capacity),
    threatScore: new Uint8Array(capacity),
    createdAt: new Float64Array(capacity),
    firstEventAt: new Float64Array(capacity),
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

export class AlertColumns {
  #size = 0;
  #slotsEnd = 0;
  /** Slots of removed alerts; the last is reused first. */
  readonly #free: number[] = [];
  #columns: Columns = newColumns(CAPACITY_START);
  readonly #rules = new Dictionary();
  readonly #sources = new Dictionary();
  readonly #assignees = new Dictionary();
  readonly #groupFields = new Dictionary();
  readonly #groupValues = new Dictionary();
  readonly #tags = new ListColumn(CAPACITY_START);
  readonly #entities = new ListColumn(CAPACITY_START);

  /** The columns by slot and their dictionaries, valid until the next change. */
  get fields() {
    return {
      ...this.#columns,
      rules: this.#rules,
      sources: this.#sources,
      assignees: this.#assignees,
      groupFields: this.#groupFields,
      groupValues: this.#groupValues,
      tags: this.#tags,
      entities: this.#entities,
    };
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
    if (position > 0 && this.isCreatedBefore(cells.slot, columns.order[position - 1]!)) {
      position = lowest(this.#size, (i) => this.isCreatedBefore(cells.slot, columns.order[i]!));
      columns.order.copyWithin(position + 1, position, this.#size);
    }
    columns.order[position] = cells.slot;
    this.#size++;
  }

  #grow(): void {
    const old = this.#columns;
    const capacity = old.rank.length * 2;
    this.#columns = newColumns(capacity);
    this.#tags.grow(capacity);
    this.#entities.grow(capacity);
    for (const name of Object.keys(old) as (keyof Columns)[]) this.#columns[name].set(old[name]);
  }

  #setAll(cells: AlertCells): void {
    const { slot } = cells;
    const columns = this.#columns;
    columns.createdAt[slot] = cells.createdAt;
    columns.rule[slot] = this.#rules.acquire(cells.ruleName);
    columns.source[slot] = this.#sources.acquire(cells.source);
    columns.groupField[slot] = this.#groupFields.acquire(cells.groupField);
    columns.groupValue[slot] = this.#groupValues.acquire(cells.groupValue);
    this.change(cells);
  }

  /** Changes everything except rule, source, group and time of creation. */
  change(cells: AlertCells): void {
    const { slot } = cells;
    const columns = this.#columns;
    columns.status[slot] = STATUSES.indexOf(cells.status);
    columns.severity[slot] = SEVERITIES.indexOf(cells.severity);
    columns.resolution[slot] = cells.resolution === null ? NONE : RESOLUTIONS.indexOf(cells.resolution);
    const assignee = this.#assignees.acquire(cells.assignee);
    this.#assignees.release(columns.assignee[slot]!);
    columns.assignee[slot] = assignee;
    this.#tags.set(slot, cells.tags);
    this.#entities.set(slot, cells.entities);
    columns.threatScore[slot] = cells.threatScore ?? NONE;
    columns.firstEventAt[slot] = cells.firstEventAt;
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
    for (const slot of slots) {
      status[slot] = NONE;
      this.#releaseTexts(slot);
    }
    const byRank = new Uint32Array(this.#size);
    for (const slot of order.subarray(0, this.#size)) byRank[rank[slot]!] = slot;
    let ranks = 0;
    for (const slot of byRank) if (status[slot] !== NONE) rank[slot] = ranks++;
    let positions = 0;
    for (const slot of order.subarray(0, this.#size)) if (status[slot] !== NONE) order[positions++] = slot;
    this.#size = positions;
    for (const slot of slots) this.#free.push(slot);
  }

  #releaseTexts(slot: number): void {
    const { rule, source, assignee, groupField, groupValue } = this.#columns;
    this.#rules.release(rule[slot]!);
    this.#sources.release(source[slot]!);
    this.#assignees.release(assignee[slot]!);
    this.#groupFields.release(groupField[slot]!);
    this.#groupValues.release(groupValue[slot]!);
    // The slot may be reused by an alert without an assignee.
    assignee[slot] = NO_TEXT;
    this.#tags.set(slot, []);
    this.#entities.set(slot, []);
  }

  /** The slots of a page in the requested order, and the number of all matches. */
  select(selection: Selection): { total: number; slots: number[] } {
    const matching = this.matching(selection.filter, selection.found);
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
  matching(filter: AlertFilter, found: Uint8Array | undefined): Uint32Array {
    const { order, status, severity, rule, source, assignee, firstEventAt, lastEventAt } = this.#columns;
    const statuses = filter.status && marksOf(STATUSES, filter.status);
    const severities = filter.severity && marksOf(SEVERITIES, filter.severity);
    const rules = filter.ruleName && this.#rules.marks(filter.ruleName);
    const sources = filter.source && this.#sources.marks(filter.source);
    const assignees = filter.assignee && this.#assignees.foldedMarks(filter.assignee);
    const tagged = filter.tag && this.#tags.dictionary.marks(filter.tag);
    const entities = filter.entity && this.#entities.dictionary.foldedMarks(filter.entity.flatMap(entityTexts));
    const overlap = filter.time === "overlap" ? filter : undefined;
    const { fromMs = -Infinity, toMs = Infinity } = overlap ?? {};
    const [from, to] = overlap ? [0, this.#size] : this.#positionsOf(filter);
    const matching = new Uint32Array(to - from);
    let count = 0;
    for (let i = from; i < to; i++) {
      const slot = order[i]!;
      if (statuses && statuses[status[slot]!] !== 1) continue;
      if (severities && severities[severity[slot]!] !== 1) continue;
      if (rules && rules[rule[slot]!] !== 1) continue;
      if (sources && sources[source[slot]!] !== 1) continue;
      if (assignees && assignees[assignee[slot]!] !== 1) continue;
      if (found && found[slot] !== 1) continue;
      if (overlap && (lastEventAt[slot]! < fromMs || firstEventAt[slot]! >= toMs)) continue;
      if (tagged && !this.#tags.hasMark(slot, tagged)) continue;
      if (entities && !this.#entities.hasMark(slot, entities)) continue;
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

  /** The slots of the alerts created in the range, in that order. */
  createdIn(range: TimeRange): Uint32Array {
    return this.#columns.order.subarray(...this.#positionsOf(range));
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

  /** True if the alert was created earlier, or has the lower id of two created at once. */
  isCreatedBefore(a: number, b: number): boolean {
    const { createdAt, rank } = this.#columns;
    const difference = createdAt[a]! - createdAt[b]!;
    return difference < 0 || (difference === 0 && rank[a]! < rank[b]!);
  }

  /** Ascending by the key, then by id. The worst severity is the highest. */
  #orderOf(sort: AlertSort): (a: number, b: number) => boolean {
    if (sort === "created_at") return (a, b) => this.isCreatedBefore(a, b);
    const { severity, lastEventAt, eventCount, rank } = this.#columns;
    const keys = { severity, last_event_at: lastEventAt, event_count: eventCount }[sort];
    const direction = sort === "severity" ? -1 : 1;
    return (a, b) => {
      const difference = (keys[a]! - keys[b]!) * direction;
      return difference < 0 || (difference === 0 && rank[a]! < rank[b]!);
    };
  }
}

/** An entity without a kind has that of any. */
function entityTexts({ kind, value }: EntityFilter): string[] {
  return (kind === undefined ? ENTITY_KINDS : [kind]).map((each) => entityText({ kind: each, value }));
}
