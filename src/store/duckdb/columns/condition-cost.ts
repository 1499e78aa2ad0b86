import { isRelation, positiveOperator, type Condition, type FieldTest } from "../../../model/condition.ts";
import { unreachable } from "../../../lib/unreachable.ts";
import { ANY_FIELD } from "../../../model/field.ts";
import { patternWeight } from "../../../model/pattern.ts";
import { VECTOR_ROWS } from "../vectors/vector-layout.ts";
import { isTerse } from "./sql-size.ts";
import type { SqlContext } from "./sql.ts";
import { ENUM_COLUMNS, HOT_FIELDS, hotField, OVERSIZED } from "./column-table.ts";
import { costClassOf, usesScalarFunction, globNeedsPattern, listOf } from "./value-tests.ts";

// Estimates the worst-case cost of a condition. DuckDB evaluates a filter one vector at a time and checks its interrupt flag
// only between vectors, so a query can be stopped as fast as its most expensive vector completes. The rates are measured
// worst cases (docs/decisions/0026-bounded-queries.md), not averages.

/** The worst-case cost of one vector: a query that is interrupted ends within this time. */
const VECTOR_NS_MAX = 4e9;
/** The same for our own functions, which run on the thread that serves all queries. */
const SCRIPTED_VECTOR_NS_MAX = 0.5e9;
/** Filters below this share of it may run before the others, to reduce their rows. */
const CHEAP_SHARE = 1 / 8;

/** Nanoseconds for each byte of text. */
const SCAN_NS = 1;
const FOLD_NS = 10;
const EXTRA_NS = 6;
const SCRIPT_NS = 60;
const GLOB_NS = 20;
/** This many values of a list, looked up or searched for in one pass, add a nanosecond. */
const VALUES_LOOKED_UP = 100;
/** Nanoseconds for each byte of text and unit of pattern weight: RE2 simulates every state once its DFA cache is full. */
const PATTERN_NS = 50;
const SCRIPTED_PATTERN_NS = 10;
/** The cost of an oversized event, which is read from the journal and parsed. */
const OVERSIZED_NS = 10e6;

/** Upper limits of a column's text in bytes: EXTRA_CHARACTERS_MAX and HOT_CHARACTERS_MAX of packed-rows.ts in UTF-8. */
const EXTRA_BYTES_MAX = 3 * 16 * 1024;
const HOT_BYTES_MAX = 3 * 4 * 1024;
const TIME_BYTES = 24;

interface Cost {
  readonly nsPerByte: number;
  /** Columns whose text is read. */
  readonly columns: ReadonlySet<string>;
  readonly isScripted: boolean;
}

const FREE: Cost = { nsPerByte: 0, columns: new Set(), isScripted: false };

/** The part of a condition that is evaluated in slices, for rows that cost more than `lightNsMax`. */
export interface Costly {
  readonly condition: Condition;
  /** SQL for the cost of a row in nanoseconds. */
  readonly nsSql: string;
  readonly lightNsMax: number;
  /** The cost limit of the rows of one slice. */
  readonly sliceNsMax: number;
  /** The cost limit of a single row. */
  readonly rowNsMax: number;
}

export interface CostSplit {
  /** True for every match, and cheap enough for any number of rows. */
  readonly cheap: Condition;
  readonly costly: Costly | undefined;
}

export function splitByCost(condition: Condition, context: SqlContext): CostSplit {
  const parts = conjuncts(condition).map((part) => ({ part, cost: costOf(part, context) }));
  const total = sum(parts.map(({ cost }) => cost));
  if (vectorNs(total) <= vectorNsMax(total)) return { cheap: condition, costly: undefined };
  const isCheap = (cost: Cost) => !cost.isScripted && vectorNs(cost) <= VECTOR_NS_MAX * CHEAP_SHARE;
  const cheapTotal = sum(parts.map(({ cost }) => cost).filter(isCheap));
  const runsFirst = (cost: Cost) =>
    vectorNs(cheapTotal) <= VECTOR_NS_MAX ? isCheap(cost) : isCheap(cost) && cost.columns.size === 0;
  const all = (first: boolean): Condition => ({
    kind: "all",
    of: parts.filter(({ cost }) => runsFirst(cost) === first).map(({ part }) => part),
  });
  const cost = sum(parts.filter(({ cost }) => !runsFirst(cost)).map(({ cost }) => cost));
  const sliceNsMax = vectorNsMax(cost);
  return {
    cheap: all(true),
    costly: {
      condition: all(false),
      nsSql: nsSql(cost, context),
      lightNsMax: sliceNsMax / VECTOR_ROWS,
      sliceNsMax,
      rowNsMax: VECTOR_NS_MAX,
    },
  };
}

/** True when a few narrow columns answer the query, regardless of the number of events. */
export function isQuick(condition: Condition): boolean {
  const cost = costOf(condition, { unsupportedPatterns: new Set(), irregularBits: 0, isTerse: isTerse([condition]) });
  return !cost.columns.has("rest") && !cost.isScripted && vectorNs(cost) <= VECTOR_NS_MAX * CHEAP_SHARE;
}

function vectorNsMax({ isScripted }: Cost): number {
  return isScripted ? SCRIPTED_VECTOR_NS_MAX : VECTOR_NS_MAX;
}

function vectorNs({ nsPerByte, columns }: Cost): number {
  let bytes = 0;
  for (const column of columns) bytes += column === "rest" ? EXTRA_BYTES_MAX : HOT_BYTES_MAX;
  return VECTOR_ROWS * bytes * nsPerByte;
}

function nsSql({ nsPerByte, columns }: Cost, { irregularBits }: SqlContext): string {
  const lengths = [...columns].map((column) =>
    column === "ts" ? String(TIME_BYTES) : `coalesce(strlen(${column}), 0)`,
  );
  const ns = `((${lengths.join(" + ")}) * ${nsPerByte.toExponential()})`;
  if (!columns.has("rest") || (irregularBits & OVERSIZED) === 0) return ns;
  return `(CASE WHEN (odd & ${OVERSIZED}) <> 0 THEN ${OVERSIZED_NS.toExponential()} ELSE ${ns} END)`;
}

/** The parts of a conjunction. */
function conjuncts(condition: Condition): readonly Condition[] {
  return condition.kind === "all" ? condition.of.flatMap(conjuncts) : [condition];
}

function sum(costs: readonly Cost[]): Cost {
  return costs.reduce(
    (all, cost) => ({
      nsPerByte: all.nsPerByte + cost.nsPerByte,
      columns: all.columns.union(cost.columns),
      isScripted: all.isScripted || cost.isScripted,
    }),
    FREE,
  );
}

function costOf(condition: Condition, context: SqlContext): Cost {
  if (condition.kind === "not") return costOf(condition.of, context);
  if (condition.kind !== "test") return sum(condition.of.map((part) => costOf(part, context)));
  const columns = columnsOf(condition, context);
  if (columns.size === 0) return FREE;
  const ofValue = costOfValue(condition, context);
  const readsExtra = columns.has("rest");
  return {
    nsPerByte: ofValue.nsPerByte + (readsExtra ? EXTRA_NS : 0) + (condition.field === ANY_FIELD ? SCRIPT_NS : 0),
    columns,
    isScripted:
      ofValue.isScripted || condition.field === ANY_FIELD || (readsExtra && (context.irregularBits & OVERSIZED) !== 0),
  };
}

/** Columns whose text the test reads. */
function columnsOf({ field, operator, value }: FieldTest, context: SqlContext): ReadonlySet<string> {
  const own = columnsOfField(field, context);
  return isRelation(operator) ? own.union(columnsOfField(value as string, context)) : own;
}

function columnsOfField(field: string, { irregularBits }: SqlContext): ReadonlySet<string> {
  if (field in ENUM_COLUMNS || field === "id" || field === "raw" || field === "enrichment") return new Set();
  if (field === "type") return new Set(["type"]);
  if (field === "timestamp") return new Set(["ts"]);
  if (field === ANY_FIELD) {
    const texts = HOT_FIELDS.filter(({ type }) => type === "string").map(({ column }) => column);
    return new Set(["type", ...texts, "rest"]);
  }
  const hot = hotField(field);
  if (!hot) return new Set(["rest"]);
  const columns = hot.type === "string" ? [hot.column] : [];
  return new Set((irregularBits & hot.bit) === 0 ? columns : [...columns, "rest"]);
}

function costOfValue(test: FieldTest, context: SqlContext): Pick<Cost, "nsPerByte" | "isScripted"> {
  const values = listOf(test);
  const fold = test.ignoreCase ? FOLD_NS : 0;
  const usesFunction = usesScalarFunction(values.length, context);
  const native = (nsPerByte: number) => ({ nsPerByte, isScripted: false });
  const scripted = (nsPerByte: number) => ({ nsPerByte: SCRIPT_NS + nsPerByte, isScripted: true });
  const operator = positiveOperator(test.operator);
  const searched = values.length * SCAN_NS;
  if (isRelation(operator)) return scripted(SCRIPT_NS);
  if (operator === "time_part" && test.field === "timestamp") return native(searched);
  const costClass = operator === "exists" ? "lookup" : costClassOf(operator);
  switch (costClass) {
    case "lookup":
      if (context.isTerse && values.length > 1) return scripted(SCAN_NS);
      return native(SCAN_NS + fold + Math.ceil(values.length / VALUES_LOOKED_UP));
    case "search":
      return usesFunction
        ? scripted(Math.ceil(values.length / VALUES_LOOKED_UP))
        : native(values.length * (SCAN_NS + fold));
    case "glob": {
      if (usesFunction) return scripted(values.length * GLOB_NS);
      return native(values.reduce<number>((ns, glob) => ns + fold + globNs(String(glob)), 0));
    }
    case "pattern": {
      const weight = values.reduce<number>((all, pattern) => all + patternWeight(String(pattern)), 0);
      const isForeign = values.some((pattern) => context.unsupportedPatterns.has(String(pattern)));
      return isForeign || usesFunction
        ? scripted(weight * SCRIPTED_PATTERN_NS)
        : native(Math.max(1, weight) * PATTERN_NS);
    }
    case "function":
      return scripted(searched);
    default:
      return unreachable(costClass);
  }
}

/** A single-character wildcard costs as much in a glob as a repetition in a pattern. */
function globNs(glob: string): number {
  if (!globNeedsPattern(glob)) return SCAN_NS;
  return glob.includes("?") ? PATTERN_NS * glob.length : GLOB_NS;
}
