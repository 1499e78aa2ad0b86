import { CLASSES, SOURCE_KINDS, sourceName } from "../../../model/event.ts";
import type { SortKey } from "../../../model/query.ts";
import { hasLargeIntegers, sideSql } from "./large-integer-sql.ts";
import type { SqlValue } from "./aggregate.ts";
import { and, FALSE, literal, or, type Parameters } from "./sql.ts";
import { hotField } from "./column-table.ts";
import { largeIntegerTextSql, oversizedValuesSql, pointer } from "./where.ts";

// Sorting by any field: numbers, then texts, then booleans, false before true. Events without the field come last in either
// direction. Severities sort by gravity: descending starts with critical. Ties sort newest first.

interface OrderKey {
  readonly sql: string;
  readonly descending: boolean;
  readonly isNullable: boolean;
}

export interface RowOrder {
  /** The SQL of the rows with the named columns that the keys refer to. */
  readonly rows: (from: string) => string;
  readonly keys: readonly OrderKey[];
}

/** The order of a search. Its last keys are unique, so that any row is a position in it. */
export function orderOf(sort: readonly SortKey[], platform: string, parameters: Parameters): RowOrder {
  // Values of oversized events are read once, as a named column.
  const large: string[] = [];
  const name = (values: string) => `large${large.push(`${values} AS large${large.length}`) - 1}`;
  const keys = sort.flatMap(({ field, descending }) =>
    sortValues(field, platform, parameters, name).map((sql) => ({ sql, descending, isNullable: !isRowKey(sql) })),
  );
  for (const sql of ROW_KEYS) keys.push({ sql, descending: true, isNullable: false });
  return { rows: (from) => (large.length === 0 ? from : `(SELECT *, ${large.join(", ")} FROM ${from})`), keys };
}

/** They identify a row, and every row has them. */
const ROW_KEYS = ["ts", "seq"] as const;

function isRowKey(sql: string): boolean {
  return (ROW_KEYS as readonly string[]).includes(sql);
}

export function orderBySql({ keys }: RowOrder): string {
  return keys.map(({ sql, descending }) => `${sql} ${descending ? "DESC" : "ASC"} NULLS LAST`).join(", ");
}

/** The test for rows that come after a row with these values of the keys. */
export function afterSql({ keys }: RowOrder, values: readonly SqlValue[], parameters: Parameters): string {
  const last = keys.findIndex(({ sql }) => sql === "seq");
  let after = FALSE;
  for (const [i, { sql, descending, isNullable }] of [...keys.slice(0, last + 1).entries()].reverse()) {
    const value = values[i] ?? null;
    if (value === null) {
      after = and([`${sql} IS NULL`, after]);
      continue;
    }
    const bound =
      typeof value === "number" ? literal(value) : typeof value === "bigint" ? `${value}` : parameters.bind(value);
    const beyond = or([`${sql} ${descending ? "<" : ">"} ${bound}`, isNullable ? `${sql} IS NULL` : FALSE]);
    after = or([beyond, and([`${sql} = ${bound}`, after])]);
    // DuckDB skips row groups by a plain bound on one column.
    if (i === 0 && !isNullable) after = and([`${sql} ${descending ? "<=" : ">="} ${bound}`, after]);
  }
  return after;
}

function sortValues(
  field: string,
  platform: string,
  parameters: Parameters,
  name: (values: string) => string,
): string[] {
  if (field === "timestamp") return ["ts"];
  if (field === "id") return ["seq"];
  if (field === "type") return ["type"];
  // Codes are below 10, and 0 is critical.
  if (field === "severity") return ["(9 - severity)"];
  if (field === "class") return [byName("class", CLASSES)];
  if (field === "source")
    return [
      byName(
        "source",
        SOURCE_KINDS.map((kind) => sourceName(platform, kind)),
      ),
    ];
  const hot = hotField(field);
  if (hot && (hot.bit & parameters.context.irregularBits) === 0) return [hot.column];
  const own = (type: "string" | "number") => (hot?.type === type ? [hot.column] : []);
  const extract = (type: "s" | "n" | "b") => `json_extract_string(rest, ${parameters.bind(pointer(type, field))})`;
  const several: { readonly json: string; readonly first: string }[] = [
    { json: "rest", first: parameters.bind(`${pointer("m", field)}/0`) },
  ];
  const large = oversizedValuesSql(field, parameters);
  if (large !== undefined) several.push({ json: name(large), first: "'/0'" });
  const firstOf = (types: string) =>
    several.map(
      ({ json, first }) =>
        `CASE WHEN json_type(${json}, ${first}) IN (${types}) THEN json_extract_string(${json}, ${first}) END`,
    );
  const numbers = [
    ...own("number"),
    ...[extract("n"), ...firstOf("'BIGINT', 'UBIGINT', 'DOUBLE'")].map((text) => `try_cast(${text} AS DOUBLE)`),
  ];
  const texts = [...own("string"), extract("s"), ...firstOf("'VARCHAR'")];
  const truths = [extract("b"), ...firstOf("'BOOLEAN'")];
  const anyOf = (values: readonly string[]) => `coalesce(${values.join(", ")})`;
  const number = anyOf(numbers);
  // As text, false sorts before true as well.
  const others = [anyOf(texts), anyOf(truths)];
  if (!hasLargeIntegers(parameters)) return [number, ...others];
  const integer = anyOf([
    largeIntegerTextSql(field, parameters),
    ...several.map(({ json, first }) => `json_extract_string(${json}, ${first} || '/i')`),
  ]);
  // Integers below every double, doubles, integers above every double.
  const side = `CASE WHEN ${integer} IS NOT NULL THEN ${sideSql(integer)} WHEN ${number} IS NOT NULL THEN 0 END`;
  return [side, number, integer, ...others];
}

/** The rank of each code by name. */
function byName(column: string, names: readonly string[]): string {
  const sorted = [...names].sort();
  return `[${names.map((name) => sorted.indexOf(name)).join(", ")}][${column} + 1]`;
}
