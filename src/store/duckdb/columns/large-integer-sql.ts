import { LARGE_INTEGERS } from "./column-table.ts";
import { NEGATIVE, POSITIVE, PREFIX_CHARACTERS, sortableText } from "./large-integer.ts";
import { FALSE, type Parameters } from "./sql.ts";
import { COMPARISONS, isComparison, listOf, type ValueTest } from "./value-tests.ts";

// SQL on integers beyond 2^53, in the encoding of large-integer.ts. Such an integer lies beyond every double on its side of
// zero, so that its sign alone decides a comparison with a double. Queries pay for this only if some row has such an integer.

/** True when some row has an integer beyond 2^53. */
export function hasLargeIntegers({ context }: Parameters): boolean {
  return (context.irregularBits & LARGE_INTEGERS) !== 0;
}

/** The test on one large integer; `text` is SQL for its encoding. */
export function largeIntegerSql(test: ValueTest, text: string): string {
  const { operator, value } = test;
  if (isComparison(operator)) {
    if (typeof value === "bigint") return `${text} ${COMPARISONS[operator]} '${sortableText(value)}'`;
    if (typeof value !== "number") return FALSE;
    return `starts_with(${text}, '${operator === "gt" || operator === "gte" ? POSITIVE : NEGATIVE}')`;
  }
  if (operator !== "equals" && operator !== "in") return FALSE;
  const integers = listOf(test).filter((item) => typeof item === "bigint");
  return integers.length === 0 ? FALSE : `${text} IN (${integers.map((item) => `'${sortableText(item)}'`).join(", ")})`;
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
