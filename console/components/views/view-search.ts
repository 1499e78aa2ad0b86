import type { StoredView } from "../../data/views.ts";

// What a view keeps, as the address has it. The columns have a field of their own in a view, so that other programs can read them.

export type SearchTexts = Readonly<Record<string, string | undefined>>;

const COLUMNS = "columns";
/** In the address: no column at all. */
const NO_COLUMNS = "none";

/** The parameters that a view keeps. */
export function pickSearch(search: SearchTexts, names: readonly string[]): SearchTexts {
  return Object.fromEntries(names.flatMap((name) => (search[name] === undefined ? [] : [[name, search[name]]])));
}

export function readViewSearch(
  { search, columns }: Pick<StoredView, "search" | "columns">,
  names: readonly string[],
): SearchTexts {
  const kept = pickSearch(Object.fromEntries(new URLSearchParams(search)), names);
  if (columns === null || !names.includes(COLUMNS)) return kept;
  return { ...kept, [COLUMNS]: columns.length === 0 ? NO_COLUMNS : columns.join(",") };
}

export function writeViewSearch(
  search: SearchTexts,
  names: readonly string[],
): { search: string; columns: string[] | null } {
  const { [COLUMNS]: columns, ...kept } = pickSearch(search, names);
  const listed = columns === NO_COLUMNS ? [] : [...new Set(columns?.split(",").filter((name) => name !== ""))];
  return {
    search: new URLSearchParams(kept as Record<string, string>).toString(),
    columns: columns === undefined ? null : listed,
  };
}

export const isSameSearch = (a: SearchTexts, b: SearchTexts, names: readonly string[]) =>
  names.every((name) => a[name] === b[name]);
