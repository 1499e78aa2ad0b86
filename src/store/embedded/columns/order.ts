import { CLASSES, SOURCE_KINDS, sourceName } from "../../../model/event.ts";
import type { SortKey } from "../../../model/query.ts";
import type { Parameters } from "./sql.ts";
import { hotField } from "./table.ts";
import { pointer } from "./where.ts";

// Sorting on any field: numbers first, then text, then truth, false before true; events without the field last, whichever the direction. Severities by how
// grave they are: descending begins with critical. What is equal goes newest first.

/** `oddBits`: the well-known fields that some row holds in an unexpected form. */
export function orderSql(sort: readonly SortKey[], platform: string, oddBits: number, parameters: Parameters): string {
  const keys = sort.flatMap(({ field, descending }) => {
    const direction = descending ? "DESC" : "ASC";
    return sortValues(field, platform, oddBits, parameters).map((value) => `${value} ${direction} NULLS LAST`);
  });
  return [...keys, "ts DESC", "seq DESC"].join(", ");
}

function sortValues(field: string, platform: string, oddBits: number, parameters: Parameters): string[] {
  if (field === "timestamp") return ["ts"];
  if (field === "id") return ["seq"];
  if (field === "type") return ["type"];
  // Codes are small: 0 is critical.
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
  if (hot && (hot.bit & oddBits) === 0) return [hot.column];
  const own = (type: "string" | "number") => (hot?.type === type ? [hot.column] : []);
  const extract = (type: "s" | "n" | "b" | "m", rest = "") =>
    `json_extract_string(rest, ${parameters.bind(pointer(type, field) + rest)})`;
  const firstIs = (types: string) => `json_type(rest, ${parameters.bind(`${pointer("m", field)}/0`)}) IN (${types})`;
  const numbers = [
    ...own("number"),
    `try_cast(${extract("n")} AS DOUBLE)`,
    `CASE WHEN ${firstIs("'BIGINT', 'UBIGINT', 'DOUBLE'")} THEN try_cast(${extract("m", "/0")} AS DOUBLE) END`,
  ];
  const texts = [...own("string"), extract("s"), `CASE WHEN ${firstIs("'VARCHAR'")} THEN ${extract("m", "/0")} END`];
  const truths = [extract("b"), `CASE WHEN ${firstIs("'BOOLEAN'")} THEN ${extract("m", "/0")} END`];
  // The words false and true stand in this order as well.
  return [numbers, texts, truths].map((values) => `coalesce(${values.join(", ")})`);
}

/** The place of each code among the names in order. */
function byName(column: string, names: readonly string[]): string {
  const sorted = [...names].sort();
  return `[${names.map((name) => sorted.indexOf(name)).join(", ")}][${column} + 1]`;
}
