import { positiveOperator, type Condition, type FieldTest } from "../../../model/condition.ts";
import { isAnyField } from "../../../model/field.ts";
import { QueryRefused } from "../../ports/store-errors.ts";
import { HOT_FIELDS } from "./column-table.ts";
import { listOf } from "./value-tests.ts";

// Limits the amount of SQL. Nothing interrupts DuckDB while it plans, which takes about a millisecond for each expression on
// a busy machine. Past a first limit each list of texts becomes one call of a scalar function, which is slower for each
// row. Past a second limit the query is refused.

const EXPRESSIONS_TERSE_MIN = 1000;
const EXPRESSIONS_MAX = 3000;
/** Members of IN are planned faster than expressions. */
const IN_SHARE = 1 / 10;
/** Columns that a test on any field reads. */
const ANY_FIELD_COLUMNS = HOT_FIELDS.filter(({ type }) => type === "string").length + 2;

/** True when each list in these conditions must become one expression. Refuses conditions that are too large even so. */
export function isTerse(conditions: readonly Condition[]): boolean {
  const all: Condition = { kind: "all", of: conditions };
  if (expressionsOf(all, false) <= EXPRESSIONS_TERSE_MIN) return false;
  if (expressionsOf(all, true) <= EXPRESSIONS_MAX) return true;
  throw new QueryRefused(
    "query",
    `has more than ${EXPRESSIONS_MAX} expressions: use fewer keywords, numbers and ids, or put the keywords into one list`,
  );
}

function expressionsOf(condition: Condition, terse: boolean): number {
  if (condition.kind === "not") return expressionsOf(condition.of, terse);
  if (condition.kind === "test") return expressionsOfTest(condition, terse);
  return condition.of.reduce((sum, part) => sum + expressionsOf(part, terse), 0);
}

function expressionsOfTest(test: FieldTest, terse: boolean): number {
  const values = listOf(test);
  const columns = isAnyField(test.field) ? ANY_FIELD_COLUMNS : 1;
  const texts = values.filter((value) => typeof value === "string").length;
  const isLookedUp = ["equals", "in"].includes(positiveOperator(test.operator));
  // Ids and times become numbers.
  const isText = test.field !== "id" && test.field !== "timestamp";
  const listed = terse && isText ? values.length - texts : values.length;
  return columns * Math.max(1, isLookedUp ? listed * IN_SHARE : terse ? 1 : listed);
}
