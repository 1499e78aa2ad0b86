import type { AlertSummary } from "../../model/alert.ts";
import { ALERT_CONDITION_FIELDS } from "../../model/alert-field.ts";
import type { Aggregation, AggregationResult, Aggregations } from "../../model/aggregation.ts";
import { compileConditionOn, type Condition } from "../../model/condition.ts";
import type { AlertQuery } from "../ports/alert-store.ts";
import { QueryRefused } from "../ports/store-errors.ts";
import type { TimeSlices } from "../queries/time-slices.ts";
import type { AlertColumns } from "./alert-columns.ts";
import { SUMMARIES_AT_ONCE, type AlertSearch, type ReadSummaries } from "./alert-search.ts";
import { sliceInOrder } from "./slice-in-order.ts";
import { alertColumn } from "./alert-field-columns.ts";
import { CollectedColumn, withUniqueCodes, type SlotColumn } from "./slot-column.ts";
import { aggregateSlots } from "./slot-aggregations.ts";
import { compileSlotTest, hasPatterns, isOverColumns, runPatterns, type ConditionSource } from "./slot-condition.ts";
import { slotOrder } from "./slot-order.ts";

// Searches over alerts. Columns in memory decide what they can; documents are read for the rest: titles, descriptions,
// enrichment, and comparisons of two fields. Whatever takes long runs in slices, between which alerts may come, change and go.

export interface FoundAlerts {
  readonly total: number;
  /** The slots of the page, in order. */
  readonly slots: readonly number[];
  readonly hasNext: boolean;
  readonly aggregations: Readonly<Record<string, AggregationResult>>;
}

interface AlertQueriesOptions {
  readonly columns: AlertColumns;
  readonly search: AlertSearch;
  readonly slotOf: (id: string) => number | null;
  readonly readSummaries: ReadSummaries;
}

/** A search that runs. */
interface Run {
  /** Slots whose alerts were removed since it began: others may use them by now. */
  readonly gone: Set<number>;
  /** Values that were read from documents. */
  readonly collected: ReadonlyMap<string, CollectedColumn>;
}

export class AlertQueries {
  readonly #options: AlertQueriesOptions;
  readonly #columns: AlertColumns;
  readonly #source: ConditionSource;
  readonly #runs = new Set<Run>();

  constructor(options: AlertQueriesOptions) {
    this.#options = options;
    this.#columns = options.columns;
    this.#source = { columnOf: (path) => alertColumn(this.#columns, path), slotOf: options.slotOf };
  }

  /** True if the search reads documents, words or patterns. */
  isHeavy({ condition, search, sort, aggs }: AlertQuery): boolean {
    if (search !== undefined || hasPatterns(condition) || !isOverColumns(condition, this.#source)) return true;
    return [...sort.map(({ field }) => field), ...fieldsOf(aggs)].some((field) => this.#isInDocuments(field));
  }

  /** Marks the slots of removed alerts. */
  dropSlots(slots: readonly number[]): void {
    for (const { gone } of this.#runs) for (const slot of slots) gone.add(slot);
  }

  /** `use` runs with the result at once, before its slots can change. */
  async find<Value>(query: AlertQuery, slices: TimeSlices, use: (found: FoundAlerts) => Value): Promise<Value> {
    const documentFields = [...query.sort.map(({ field }) => field), ...fieldsOf(query.aggs)].filter((field) =>
      this.#isInDocuments(field),
    );
    const run: Run = {
      gone: new Set(),
      collected: new Map(documentFields.map((field) => [field, new CollectedColumn()])),
    };
    this.#runs.add(run);
    try {
      const slots = await this.#select(query, run, slices);
      const aggregations: Record<string, AggregationResult> = {};
      for (const { name, aggregation } of query.aggs) {
        if (slices.isOver) await slices.next();
        aggregations[name] = this.#aggregate(aggregation, present(slots, run), run, `aggs.${name}`);
      }
      if (query.after !== undefined) await this.#collectStart(query.after, run);
      return use({ ...this.#page(query, present(slots, run), run), aggregations });
    } finally {
      this.#runs.delete(run);
    }
  }

  /** All matching slots, in the order of creation. */
  async #select(query: AlertQuery, run: Run, slices: TimeSlices): Promise<Uint32Array> {
    const { condition, search } = query;
    const filter = { fromMs: query.fromMs, toMs: query.toMs, time: query.time };
    const conjuncts = condition.kind === "all" ? condition.of : [condition];
    const onColumns: Condition = { kind: "all", of: conjuncts.filter((part) => isOverColumns(part, this.#source)) };
    const onDocuments = conjuncts.filter((part) => !isOverColumns(part, this.#source));
    const patterns = await runPatterns(onColumns, this.#source, slices);
    const select = (found: Uint8Array | undefined) => {
      const matching = this.#columns.matching(filter, found);
      return onColumns.of.length === 0 ? matching : matching.filter(compileSlotTest(onColumns, this.#source, patterns));
    };
    const slots =
      search === undefined ? select(undefined) : await this.#options.search.find(search, filter, slices, select);
    if (onDocuments.length === 0 && run.collected.size === 0) return slots;
    return this.#readDocuments(slots, { kind: "all", of: onDocuments }, run, slices);
  }

  /** The slots whose documents meet the condition. Collects the values that sorting and aggregations need. */
  async #readDocuments(slots: Uint32Array, condition: Condition, run: Run, slices: TimeSlices): Promise<Uint32Array> {
    const matches = compileConditionOn(condition, ALERT_CONDITION_FIELDS);
    const collect = this.#collectorOf(run);
    const kept: number[] = [];
    for (let at = 0; at < slots.length; at += SUMMARIES_AT_ONCE) {
      if (slices.isOver) await slices.next();
      const some = [...slots.subarray(at, at + SUMMARIES_AT_ONCE)].filter((slot) => !run.gone.has(slot));
      for (const [i, alert] of (await this.#options.readSummaries(some)).entries()) {
        const slot = some[i]!;
        if (!alert || run.gone.has(slot) || !matches(alert)) continue;
        kept.push(slot);
        collect(slot, alert);
      }
    }
    return Uint32Array.from(kept);
  }

  #collectorOf({ collected }: Run): (slot: number, alert: AlertSummary) => void {
    const fields = Array.from(collected, ([path, column]) => ({ read: ALERT_CONDITION_FIELDS.reader(path), column }));
    return (slot, alert) => {
      for (const { read, column } of fields) column.set(slot, read(alert));
    };
  }

  /** Collects the values of the alert that the page starts after, which the search may not have found. */
  async #collectStart(after: string, run: Run): Promise<void> {
    const start = this.#slotOf(after);
    if (run.collected.size === 0) return;
    const [alert] = await this.#options.readSummaries([start]);
    if (alert) this.#collectorOf(run)(start, alert);
  }

  #page({ sort, after, limit }: AlertQuery, slots: Uint32Array, run: Run): Omit<FoundAlerts, "aggregations"> {
    const start = after === undefined ? undefined : this.#slotOf(after);
    const compared = start === undefined ? slots : [start, ...slots];
    const newestFirst = (a: number, b: number) => this.#columns.isCreatedBefore(b, a);
    const isBefore = slotOrder(sort, (path) => this.#columnOf(path, run), compared, newestFirst);
    const candidates = start === undefined ? slots.slice() : slots.filter((slot) => isBefore(start, slot));
    // One more than requested shows whether there is a next page.
    const page = limit === 0 ? [] : sliceInOrder(candidates, 0, limit + 1, isBefore);
    return { total: slots.length, slots: page.slice(0, limit), hasNext: page.length > limit };
  }

  #slotOf(id: string): number {
    const slot = this.#options.slotOf(id);
    if (slot === null) throw new QueryRefused("after", "is not the id of an alert");
    return slot;
  }

  #aggregate(aggregation: Aggregation, slots: Uint32Array, run: Run, path: string): AggregationResult {
    const columns = new Map<string, SlotColumn>();
    const columnOf = (field: string) => {
      const column = columns.get(field) ?? this.#columnOf(field, run);
      columns.set(field, column);
      return column;
    };
    return aggregateSlots(aggregation, slots, { columnOf }, path);
  }

  #columnOf(path: string, { collected }: Run): SlotColumn {
    const column = alertColumn(this.#columns, path) ?? collected.get(path)!;
    return column.kind === "codes" ? withUniqueCodes(column) : column;
  }

  #isInDocuments(path: string): boolean {
    return this.#source.columnOf(path) === undefined;
  }
}

function present(slots: Uint32Array, { gone }: Run): Uint32Array {
  return gone.size === 0 ? slots : slots.filter((slot) => !gone.has(slot));
}

/** The fields that the aggregations read. */
function fieldsOf(aggs: Aggregations): string[] {
  return aggs.flatMap(({ aggregation }) => {
    const own = aggregation.field === undefined ? [] : [aggregation.field];
    return "aggs" in aggregation ? [...own, ...fieldsOf(aggregation.aggs)] : own;
  });
}
