// Building blocks of SQL, and its bound parameters.

/** Facts about DuckDB and the rows that allow for simpler SQL. */
export interface SqlContext {
  /** Patterns that DuckDB refuses. */
  readonly unsupportedPatterns: ReadonlySet<string>;
  /** The bits of the `odd` column that some row has set. */
  readonly irregularBits: number;
  /** The query has so many values that each list of them becomes one expression: see sql-size.ts. */
  readonly isTerse: boolean;
}

/**
 * The parameter that limits which segments a query sees. As a literal the number would be compared at planning time with
 * the statistics of the table: no row has a higher one, so DuckDB would drop the test. A segment that is flushed before the
 * plan runs would then be read twice: on disk and in its memtable.
 */
export const SEGMENTS = "$1";

const WORST_CASE: SqlContext = { unsupportedPatterns: new Set(), irregularBits: -1, isTerse: false };

/** Bound values: no value is ever written into SQL. Only those that the final SQL refers to are passed on. */
export class Parameters {
  readonly values: (string | number | boolean)[] = [];
  readonly context: SqlContext;
  constructor(context: SqlContext = WORST_CASE, segments = 0) {
    this.context = context;
    this.bind(segments);
  }
  bind(value: string | number | boolean): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
  /** Numbers the parameters that the SQL refers to without gaps, as DuckDB requires. */
  finalise(sql: string): { sql: string; values: (string | number | boolean)[] } {
    const numbers = new Map<string, number>();
    const settled = sql.replace(/\$(\d+)/g, (_, number: string) => {
      if (!numbers.has(number)) numbers.set(number, numbers.size + 1);
      return `$${numbers.get(number)}`;
    });
    return { sql: settled, values: [...numbers.keys()].map((number) => this.values[Number(number) - 1]!) };
  }
  /** A copy that can be extended on its own. */
  copy(): Parameters {
    const copy = new Parameters(this.context);
    copy.values.splice(0, copy.values.length, ...this.values);
    return copy;
  }
}

export const TRUE = "TRUE";
export const FALSE = "FALSE";

export function or(parts: readonly string[]): string {
  const left = parts.filter((part) => part !== FALSE);
  if (left.includes(TRUE)) return TRUE;
  return left.length === 0 ? FALSE : left.length === 1 ? left[0]! : `(${left.join(" OR ")})`;
}

export function and(parts: readonly string[]): string {
  const left = parts.filter((part) => part !== TRUE);
  if (left.includes(FALSE)) return FALSE;
  return left.length === 0 ? TRUE : left.length === 1 ? left[0]! : `(${left.join(" AND ")})`;
}

/** Evaluates `costly` only where `cheap` is true. In a plain AND, DuckDB may reorder the two. */
export function onlyThen(cheap: string, costly: string): string {
  if (cheap === TRUE || costly === FALSE) return costly;
  return cheap === FALSE ? FALSE : `(CASE WHEN ${cheap} THEN ${costly} ELSE FALSE END)`;
}

export function not(part: string): string {
  return part === TRUE ? FALSE : part === FALSE ? TRUE : `(NOT ${part})`;
}

export function notNull(sql: string): string {
  return sql === TRUE || sql === FALSE ? sql : `coalesce(${sql}, FALSE)`;
}

/** A number with an exponent: DuckDB reads it as a double, never as a decimal. */
export function literal(value: number): string {
  return value.toExponential();
}
