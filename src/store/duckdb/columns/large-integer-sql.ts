import { LARGE_INTEGERS } from "./column-table.ts";
import { POSITIVE, PREFIX_CHARACTERS } from "./large-integer.ts";
import type { Parameters } from "./sql.ts";

// SQL on integers beyond 2^53, in the encoding of large-integer.ts. Queries pay for this only if some row has such an
// integer.

/** True when some row has an integer beyond 2^53. */
export function hasLargeIntegers({ context }: Parameters): boolean {
  return (context.irregularBits & LARGE_INTEGERS) !== 0;
}

/** The double nearest to a large integer. */
export function nearestDoubleSql(text: string): string {
  const digits = `substr(${text}, ${PREFIX_CHARACTERS + 1})`;
  const negative = `'-' || translate(${digits}, '0123456789', '9876543210')`;
  return `try_cast(CASE WHEN starts_with(${text}, '${POSITIVE}') THEN ${digits} ELSE ${negative} END AS DOUBLE)`;
}

/** Sorts a large integer below (-1) or above (1) all doubles, which count as 0. */
export function sideSql(text: string): string {
  return `CASE WHEN starts_with(${text}, '${POSITIVE}') THEN 1 ELSE -1 END`;
}
