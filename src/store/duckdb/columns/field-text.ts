import { extraKey, hotField, type ExtraType } from "./column-table.ts";
import { hasLargeIntegers } from "./large-integer-sql.ts";
import type { Parameters } from "./sql.ts";
import { largeIntegerTextSql, oversizedValuesSql, pointer } from "./where.ts";

// All values of a field of one event as one text: the letter of an extra type, then the value. A list is JSON. Rows can be
// grouped by this text before anything is parsed, and it fits into one column.

/** The text of an event without a value of the field. */
export const NO_VALUES = "''";

/** What all keys of a path in `rest` end with, whatever the type. */
const keyEnd = (path: string) => extraKey("s", path).slice(2);

/** The text of values in `rest`. A search for a key is much cheaper than parsing, and most rows have none of the keys. */
export function extraTextSql(path: string, parameters: Parameters): string {
  const value = (type: ExtraType) => `json_extract_string(rest, ${parameters.bind(pointer(type, path))})`;
  const kinds: [ExtraType, string][] = [
    ["s", value("s")],
    ["n", value("n")],
    ["b", value("b")],
    ["m", `CAST(json_extract(rest, ${parameters.bind(pointer("m", path))}) AS VARCHAR)`],
  ];
  if (hasLargeIntegers(parameters)) kinds.push(["i", largeIntegerTextSql(path, parameters)]);
  const cases = kinds.map(
    ([type, sql]) => `WHEN contains(rest, ${parameters.bind(extraKey(type, path))}) THEN '${type}' || ${sql}`,
  );
  return `CASE WHEN contains(rest, ${parameters.bind(keyEnd(path))})
    THEN coalesce(CASE ${cases.join(" ")} END, ${NO_VALUES}) ELSE ${NO_VALUES} END`;
}

/** The text of all values of the field: of its own column, in `rest`, or of an oversized event. */
export function fieldTextSql(path: string, parameters: Parameters): string {
  const hot = hotField(path);
  const large = oversizedValuesSql(path, parameters);
  const cases = [
    ...(hot ? [`WHEN ${hot.column} IS NOT NULL THEN '${hot.type[0]!}' || CAST(${hot.column} AS VARCHAR)`] : []),
    ...(large === undefined ? [] : [`WHEN rest IS NULL THEN coalesce('m' || (${large}), ${NO_VALUES})`]),
  ];
  const extra = extraTextSql(path, parameters);
  return cases.length === 0 ? extra : `CASE ${cases.join(" ")} ELSE ${extra} END`;
}

/** The distinct values in a text, as a list of structs of which one member is set: s, n, i if there are any, or b. */
export function valuesOfTextSql(text: string, parameters: Parameters): string {
  const hasLarge = hasLargeIntegers(parameters);
  const none = "CAST(NULL AS VARCHAR)";
  const struct = (s: string, n: string, b: string, i = none) =>
    `{'s': ${s}, 'n': ${n}, ${hasLarge ? `'i': ${i}, ` : ""}'b': ${b}}`;
  const value = `substr(${text}, 2)`;
  const is = (type: ExtraType) => `starts_with(${text}, '${type}')`;
  const own = (type: ExtraType, sql: string) => `CASE WHEN ${is(type)} THEN ${sql} END`;
  const single = struct(
    own("s", value),
    own("n", `try_cast(${value} AS DOUBLE)`),
    own("b", `${value} = 'true'`),
    own("i", value),
  );
  const element = struct(
    "CASE WHEN json_type(x) = 'VARCHAR' THEN (x ->> '$') END",
    "CASE WHEN json_type(x) IN ('BIGINT', 'UBIGINT', 'DOUBLE') THEN try_cast((x ->> '$') AS DOUBLE) END",
    "CASE WHEN json_type(x) = 'BOOLEAN' THEN (x ->> '$') = 'true' END",
    "CASE WHEN json_type(x) = 'OBJECT' THEN (x ->> '$.i') END",
  );
  const several = `list_distinct(list_transform(CAST(CAST(${value} AS JSON) AS JSON[]), lambda x: ${element}))`;
  return `CASE WHEN ${is("m")} THEN ${several} ELSE [${single}] END`;
}
