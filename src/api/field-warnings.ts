import type { z } from "zod";
import { createLruCache } from "../lib/lru.ts";
import { nearestName } from "../lib/nearest.ts";
import { isAnyField, isTopField } from "../model/field.ts";
import type { Condition } from "../model/condition.ts";
import type { querySchema, TimeRange } from "../model/query.ts";
import type { EventEngine } from "../store/ports/event-engine.ts";
import type { EventFields } from "../store/ports/event-fields.ts";
import type { QueryContext } from "../store/ports/query-context.ts";
import { QueryRefused, StoreUnavailable } from "../store/ports/store-errors.ts";
import type { ResponseWarning } from "./response.ts";

// Warnings about filters on fields that no event of the range has, which are mostly typing errors. A search pays for them only
// if its own result does not already show that the fields exist, and a known field costs a look-up in a cached list.

/** Fields of one search that are checked. */
const CHECKED_MAX = 20;
/** Age at which a cached list of fields is read again. */
const CACHED_MS = 60_000;
const CACHED_RANGES_MAX = 50;
/** Cached ranges are extended to whole hours, so that ranges that end now share an entry. */
const HOUR_MS = 3_600_000;
/** Names that a suggestion is chosen from, the most frequent ones. */
const SUGGESTED_FROM_MAX = 1000;
/** Time that a search waits for its warnings; past that it is answered without. */
const WARNING_MS_MAX = 3000;

type QueryInput = z.output<typeof querySchema>;

interface NamedField {
  readonly field: string;
  /** Its place in the request: `query.bool.must[0].field`. */
  readonly place: string;
  /** Every event that the query finds has the field. */
  readonly isInEveryMatch: boolean;
}

export class FieldWarnings {
  readonly #events: Pick<EventEngine, "fields" | "search">;
  readonly #now: () => number;
  readonly #known = createLruCache<string, { readonly readAt: number; readonly names: ReadonlySet<string> }>(
    CACHED_RANGES_MAX,
  );

  constructor(events: Pick<EventEngine, "fields" | "search">, now: () => number) {
    this.#events = events;
    this.#now = now;
  }

  /** The warnings of a search that has found this many events. */
  async of(
    { bool, time_range }: QueryInput,
    total: number,
    { client, signal }: QueryContext,
  ): Promise<ResponseWarning[]> {
    const named = namedFields(bool).filter(({ isInEveryMatch }) => total === 0 || !isInEveryMatch);
    if (named.length === 0) return [];
    const range = { fromMs: time_range?.from, toMs: time_range?.to };
    const timeout = AbortSignal.timeout(WARNING_MS_MAX);
    const context = { client, signal: signal ? AbortSignal.any([signal, timeout]) : timeout };
    try {
      const known = await this.#knownFields(range, context);
      const unknown = named.filter(({ field }) => !known.has(field));
      return unknown.length === 0 ? [] : await this.#confirm(unknown, range, context);
    } catch (error) {
      // The search itself has succeeded: a store that is too busy for more leaves it without warnings.
      const isLate = timeout.aborted && signal?.aborted !== true;
      if (isLate || error instanceof StoreUnavailable || error instanceof QueryRefused) return [];
      throw error;
    }
  }

  async #knownFields({ fromMs, toMs }: TimeRange, context: QueryContext): Promise<ReadonlySet<string>> {
    const range = {
      fromMs: fromMs === undefined ? undefined : Math.floor(fromMs / HOUR_MS) * HOUR_MS,
      toMs: toMs === undefined ? undefined : Math.ceil(toMs / HOUR_MS) * HOUR_MS,
    };
    const key = `${range.fromMs} ${range.toMs}`;
    const cached = this.#known.get(key);
    const readAt = this.#now();
    if (cached && Math.abs(readAt - cached.readAt) < CACHED_MS) return cached.names;
    const { fields } = await this.#events.fields(range, context);
    const names = new Set(fields.map(({ path }) => path));
    this.#known.set(key, { readAt, names });
    return names;
  }

  /** Cached and sampled lists lack fields that are new or rare, so that each unknown field is looked for again. */
  async #confirm(unknown: readonly NamedField[], range: TimeRange, context: QueryContext): Promise<ResponseWarning[]> {
    const current = await this.#events.fields(range, context);
    if (current.total === 0) return [];
    const names = current.fields.map(({ path }) => path);
    const warnings: ResponseWarning[] = [];
    for (const { field, place } of unknown) {
      if (names.includes(field) || !(await this.#isMissing(field, current, range, context))) continue;
      const suggestion = nearestName(field, names.slice(0, SUGGESTED_FROM_MAX)) ?? null;
      const hint = suggestion === null ? "" : `; did you mean ${suggestion}?`;
      warnings.push({ field: place, message: `no event in the range has ${field}${hint}`, suggestion });
    }
    return warnings;
  }

  async #isMissing(
    field: string,
    { examined, total }: EventFields,
    range: TimeRange,
    context: QueryContext,
  ): Promise<boolean> {
    if (examined === total) return true;
    const condition: Condition = { kind: "test", field, operator: "exists", value: true, ignoreCase: false };
    return (await this.#events.search({ condition, ...range, sort: [], limit: 0, aggs: [] }, context)).total === 0;
  }
}

function namedFields(bool: QueryInput["bool"]): NamedField[] {
  const named = new Map<string, NamedField>();
  const visit = (part: NonNullable<QueryInput["bool"]>, place: string, isRequired: boolean): void => {
    for (const list of ["must", "must_not", "should"] as const) {
      for (const [i, filter] of (part[list] ?? []).entries()) {
        const isInEveryMatch = isRequired && list === "must";
        const here = `${place}.${list}[${i}]`;
        if ("bool" in filter) visit(filter.bool, `${here}.bool`, isInEveryMatch);
        else if (!("keyword" in filter) && isOwnField(filter.field) && named.size < CHECKED_MAX) {
          const requiresField = isInEveryMatch && filter.exists !== false;
          const known = named.get(filter.field);
          named.set(filter.field, {
            field: filter.field,
            place: known?.place ?? `${here}.field`,
            isInEveryMatch: requiresField || known?.isInEveryMatch === true,
          });
        }
      }
    }
  };
  if (bool) visit(bool, "query.bool", true);
  return [...named.values()];
}

/** Some events have the field and others do not. */
function isOwnField(field: string): boolean {
  return !isTopField(field) && !isAnyField(field) && field !== "raw" && field !== "enrichment";
}
