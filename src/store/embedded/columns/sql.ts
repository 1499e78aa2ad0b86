// Pieces of SQL, and the values that go with it.

/** What is known of the engine and of the rows, and saves SQL from looking. */
export interface Facts {
  /** Patterns that the engine does not take. */
  readonly foreignPatterns: ReadonlySet<string>;
  /** Bits of the well-known fields that some row holds in an unexpected form. */
  readonly oddBits: number;
  /** The question has so many values that each list of them is to be one expression: see size.ts. */
  readonly isTerse: boolean;
}

/**
 * How many lots a question sees: the first value of each that reads rows. Written into the SQL, the number would be compared
 * with what the engine knows of the table when it plans: no row has a higher one, and the test is left out. Rows of a lot
 * that comes to disk before the plan is carried out would then be read, there and in their tail.
 */
export const LOTS = "$1";

const ANYTHING: Facts = { foreignPatterns: new Set(), oddBits: -1, isTerse: false };

/** Values are never written into SQL: they are bound, those that the SQL still names when it is done. */
export class Parameters {
  readonly values: (string | number | boolean)[] = [];
  readonly facts: Facts;
  constructor(facts: Facts = ANYTHING, lots = 0) {
    this.facts = facts;
    this.bind(lots);
  }
  bind(value: string | number | boolean): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
  /** SQL and values as the engine takes them: every value named, numbered without a gap. */
  settle(sql: string): { sql: string; values: (string | number | boolean)[] } {
    const numbers = new Map<string, number>();
    const settled = sql.replace(/\$(\d+)/g, (_, number: string) => {
      if (!numbers.has(number)) numbers.set(number, numbers.size + 1);
      return `$${numbers.get(number)}`;
    });
    return { sql: settled, values: [...numbers.keys()].map((number) => this.values[Number(number) - 1]!) };
  }
  /** The same values, to go on from. */
  copy(): Parameters {
    const copy = new Parameters(this.facts);
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

/** Both hold, and the second is not looked at where the first does not: the engine may turn the parts of an AND round. */
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

/** With an exponent the engine reads it as the double that it is, never as a decimal. */
export function literal(value: number): string {
  return value.toExponential();
}
