import type { Condition, FieldTest } from "../../../model/condition.ts";
import { ANY_FIELD } from "../../../model/field.ts";
import { patternWeight } from "../../../model/pattern.ts";
import { isTerse } from "./size.ts";
import type { Facts } from "./sql.ts";
import { CODED, HOT_FIELDS, hotField, LARGE } from "./table.ts";
import { asksBack, globNeedsPattern, listOf } from "./value.ts";

// Estimates what a condition costs at worst. DuckDB evaluates a filter over a vector of rows at a time and looks at its
// interrupt flag only between vectors, so a question is as interruptible as its most expensive vector is cheap. The
// rates are measured worst cases (docs/decisions/0026-bounded-questions.md), not averages.

/** Rows that DuckDB evaluates between two looks at its interrupt flag. */
const VECTOR_ROWS = 2048;
/** What one vector may cost at worst: a question that is told to stop stops within this time. */
const VECTOR_NS_MAX = 4e9;
/** The same where our own functions do the work: they run on the thread that serves every other question as well. */
const SCRIPTED_VECTOR_NS_MAX = 0.5e9;
/** Filters that take no more than this share of it may run before the others, to spare them rows. */
const CHEAP_SHARE = 1 / 8;

/** For each byte of text. */
const SCAN_NS = 1;
const FOLD_NS = 10;
const REST_NS = 6;
const SCRIPT_NS = 60;
const GLOB_NS = 20;
/** Values of a list that are looked up together, or searched for in one pass, add a nanosecond. */
const VALUES_LOOKED_UP = 100;
/** For each byte of text and each unit of a pattern's weight: RE2 simulates every state once its DFA cache is full. */
const PATTERN_NS = 50;
const SCRIPTED_PATTERN_NS = 10;
/** For an event that is too large for the columns: it is read from the journal and parsed. */
const LARGE_NS = 10e6;

/** Upper limits of a column's text in bytes: REST_CHARACTERS_MAX and HOT_CHARACTERS_MAX of rows.ts in UTF-8. */
const REST_BYTES_MAX = 3 * 16 * 1024;
const HOT_BYTES_MAX = 3 * 4 * 1024;
const TIME_BYTES = 24;

interface Cost {
  readonly nsPerByte: number;
  /** The columns whose text is read. */
  readonly columns: ReadonlySet<string>;
  readonly isScripted: boolean;
}

const FREE: Cost = { nsPerByte: 0, columns: new Set(), isScripted: false };

/** The part of a condition that must be evaluated with care: rows that cost more than `lightNsMax` go one slice at a time. */
export interface Costly {
  readonly condition: Condition;
  /** SQL: what the condition costs for a row, in nanoseconds. */
  readonly nsSql: string;
  readonly lightNsMax: number;
  /** What rows that are evaluated together may cost. */
  readonly sliceNsMax: number;
  /** What a single row may cost. */
  readonly rowNsMax: number;
}

export interface Split {
  /** Holds for every match, and costs little enough to be evaluated for any number of rows. */
  readonly cheap: Condition;
  readonly costly: Costly | undefined;
}

export function splitByCost(condition: Condition, facts: Facts): Split {
  const parts = conjuncts(condition).map((part) => ({ part, cost: costOf(part, facts) }));
  const total = sum(parts.map(({ cost }) => cost));
  if (vectorNs(total) <= vectorNsMax(total)) return { cheap: condition, costly: undefined };
  const isCheap = (cost: Cost) => !cost.isScripted && vectorNs(cost) <= VECTOR_NS_MAX * CHEAP_SHARE;
  const sparing = sum(parts.map(({ cost }) => cost).filter(isCheap));
  const isSparing = (cost: Cost) =>
    vectorNs(sparing) <= VECTOR_NS_MAX ? isCheap(cost) : isCheap(cost) && cost.columns.size === 0;
  const all = (wanted: boolean): Condition => ({
    kind: "all",
    of: parts.filter(({ cost }) => isSparing(cost) === wanted).map(({ part }) => part),
  });
  const cost = sum(parts.filter(({ cost }) => !isSparing(cost)).map(({ cost }) => cost));
  const sliceNsMax = vectorNsMax(cost);
  return {
    cheap: all(true),
    costly: {
      condition: all(false),
      nsSql: nsSql(cost, facts),
      lightNsMax: sliceNsMax / VECTOR_ROWS,
      sliceNsMax,
      rowNsMax: VECTOR_NS_MAX,
    },
  };
}

/** Whether a question about these events is answered from a few narrow columns, however many events there are. */
export function isQuick(condition: Condition): boolean {
  const cost = costOf(condition, { foreignPatterns: new Set(), oddBits: 0, isTerse: isTerse([condition]) });
  return !cost.columns.has("rest") && !cost.isScripted && vectorNs(cost) <= VECTOR_NS_MAX * CHEAP_SHARE;
}

function vectorNsMax({ isScripted }: Cost): number {
  return isScripted ? SCRIPTED_VECTOR_NS_MAX : VECTOR_NS_MAX;
}

function vectorNs({ nsPerByte, columns }: Cost): number {
  let bytes = 0;
  for (const column of columns) bytes += column === "rest" ? REST_BYTES_MAX : HOT_BYTES_MAX;
  return VECTOR_ROWS * bytes * nsPerByte;
}

function nsSql({ nsPerByte, columns }: Cost, { oddBits }: Facts): string {
  const lengths = [...columns].map((column) =>
    column === "ts" ? String(TIME_BYTES) : `coalesce(strlen(${column}), 0)`,
  );
  const ns = `((${lengths.join(" + ")}) * ${nsPerByte.toExponential()})`;
  if (!columns.has("rest") || (oddBits & LARGE) === 0) return ns;
  return `(CASE WHEN (odd & ${LARGE}) <> 0 THEN ${LARGE_NS.toExponential()} ELSE ${ns} END)`;
}

/** Parts that must all hold. */
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

function costOf(condition: Condition, facts: Facts): Cost {
  if (condition.kind === "not") return costOf(condition.of, facts);
  if (condition.kind !== "test") return sum(condition.of.map((part) => costOf(part, facts)));
  const columns = columnsOf(condition, facts);
  if (columns.size === 0) return FREE;
  const ofValue = costOfValue(condition, facts);
  const readsRest = columns.has("rest");
  return {
    nsPerByte: ofValue.nsPerByte + (readsRest ? REST_NS : 0) + (condition.field === ANY_FIELD ? SCRIPT_NS : 0),
    columns,
    isScripted: ofValue.isScripted || condition.field === ANY_FIELD || (readsRest && (facts.oddBits & LARGE) !== 0),
  };
}

/** The columns whose text the test reads. */
function columnsOf({ field, operator, value }: FieldTest, facts: Facts): ReadonlySet<string> {
  const own = columnsOfField(field, facts);
  return operator.endsWith("_field") ? own.union(columnsOfField(value as string, facts)) : own;
}

function columnsOfField(field: string, { oddBits }: Facts): ReadonlySet<string> {
  if (field in CODED || field === "id" || field === "raw" || field === "enrichment") return new Set();
  if (field === "type") return new Set(["type"]);
  if (field === "timestamp") return new Set(["ts"]);
  if (field === ANY_FIELD) {
    const texts = HOT_FIELDS.filter(({ type }) => type === "string").map(({ column }) => column);
    return new Set(["type", ...texts, "rest"]);
  }
  const hot = hotField(field);
  if (!hot) return new Set(["rest"]);
  const columns = hot.type === "string" ? [hot.column] : [];
  return new Set((oddBits & hot.bit) === 0 ? columns : [...columns, "rest"]);
}

function costOfValue(test: FieldTest, facts: Facts): Pick<Cost, "nsPerByte" | "isScripted"> {
  const values = listOf(test);
  const fold = test.ignoreCase ? FOLD_NS : 0;
  const isAskedBack = asksBack(values.length, facts);
  const native = (nsPerByte: number) => ({ nsPerByte, isScripted: false });
  const scripted = (nsPerByte: number) => ({ nsPerByte: SCRIPT_NS + nsPerByte, isScripted: true });
  switch (test.operator) {
    case "contains":
    case "starts_with":
    case "prefix":
    case "ends_with":
      return isAskedBack
        ? scripted(Math.ceil(values.length / VALUES_LOOKED_UP))
        : native(values.length * (SCAN_NS + fold));
    case "glob": {
      if (isAskedBack) return scripted(values.length * GLOB_NS);
      return native(values.reduce<number>((ns, glob) => ns + fold + globNs(String(glob)), 0));
    }
    case "regex": {
      const weight = values.reduce<number>((all, pattern) => all + patternWeight(String(pattern)), 0);
      const isForeign = values.some((pattern) => facts.foreignPatterns.has(String(pattern)));
      return isForeign || isAskedBack
        ? scripted(weight * SCRIPTED_PATTERN_NS)
        : native(Math.max(1, weight) * PATTERN_NS);
    }
    case "cidr":
      return scripted(values.length * SCAN_NS);
    case "contains_field":
    case "starts_with_field":
    case "ends_with_field":
    case "equals_field":
      return scripted(SCRIPT_NS);
    default:
      if (facts.isTerse && values.length > 1) return scripted(SCAN_NS);
      return native(SCAN_NS + fold + Math.ceil(values.length / VALUES_LOOKED_UP));
  }
}

/** Wildcards for one character make of a glob what a repetition makes of a pattern. */
function globNs(glob: string): number {
  if (!globNeedsPattern(glob)) return SCAN_NS;
  return glob.includes("?") ? PATTERN_NS * glob.length : GLOB_NS;
}
