import { SEVERITIES } from "../../data/severity.ts";
import { literally, type Condition } from "../../data/event-conditions.ts";
import { fieldPath, readConditions, writeConditions } from "./filter-text.ts";

// What the screen's address says. Source, type and severity have parameters of their own, as other screens link to them; every
// other condition is in `filter`.

export interface EventSearch {
  readonly search?: string | undefined;
  readonly source?: string | undefined;
  readonly type?: string | undefined;
  readonly severity?: string | undefined;
  readonly filter?: string | undefined;
}

export interface EventFilter {
  readonly conditions: readonly Condition[];
  readonly words: string;
}

const OWN = ["source", "type", "severity"] as const;
type OwnField = (typeof OWN)[number];
const isOwn = (field: string): field is OwnField => (OWN as readonly string[]).includes(field);

const values = (list: string | undefined) => (list ?? "").split(",").filter((value) => value !== "");

/** Both `critical,high` and what a person may have written by hand. */
function ownConditions(field: OwnField, list: string | undefined): Condition[] {
  const known = field === "severity" ? values(list).filter(isSeverity) : values(list);
  return known.map((value) => ({ field, operator: "=", value: literally(value) }));
}

const isSeverity = (value: string) => (SEVERITIES as readonly string[]).includes(value);

export function readFilter(search: EventSearch): EventFilter {
  const own = OWN.flatMap((field) => ownConditions(field, search[field]));
  return { conditions: unique([...own, ...readConditions(search.filter)]), words: search.search ?? "" };
}

const PLAIN = /^[^,*?\\/]+$/;

export function writeFilter({ conditions, words }: EventFilter): Record<keyof EventSearch, string | undefined> {
  const own: Record<OwnField, string[]> = { source: [], type: [], severity: [] };
  const others: Condition[] = [];
  for (const condition of unique(conditions)) {
    const { field, operator, value } = condition;
    if (operator === "=" && isOwn(field) && PLAIN.test(value)) own[field].push(value);
    else others.push(condition);
  }
  const list = (field: OwnField) => (own[field].length === 0 ? undefined : own[field].join(","));
  return {
    search: words === "" ? undefined : words,
    source: list("source"),
    type: list("type"),
    severity: list("severity"),
    filter: writeConditions(others),
  };
}

const same = (a: Condition, b: Condition) => a.field === b.field && a.operator === b.operator && a.value === b.value;

function unique(conditions: readonly Condition[]): Condition[] {
  return conditions.filter((one, index) => conditions.findIndex((other) => same(one, other)) === index);
}

export const without = (filter: EventFilter, gone: Condition): EventFilter => ({
  ...filter,
  conditions: filter.conditions.filter((condition) => !same(condition, gone)),
});

/** Adds a condition; its opposite, which would leave nothing, goes. */
export function withCondition(filter: EventFilter, added: Condition): EventFilter {
  const opposite: Condition = { ...added, operator: added.operator === "=" ? "!=" : "=" };
  const kept = ["=", "!="].includes(added.operator) ? without(filter, opposite) : filter;
  return { ...filter, conditions: unique([...kept.conditions, added]) };
}

export const hasCondition = ({ conditions }: EventFilter, wanted: Condition) =>
  conditions.some((condition) => same(condition, wanted));

/** For a value that was clicked: filters for it, or out; a second click takes it back. */
export function toggled(filter: EventFilter, field: string, value: string, isOut: boolean): EventFilter {
  const condition: Condition = { field, operator: isOut ? "!=" : "=", value: literally(value) };
  return hasCondition(filter, condition) ? without(filter, condition) : withCondition(filter, condition);
}

export const isEmptyFilter = ({ conditions, words }: EventFilter) => conditions.length === 0 && words === "";

const COLUMNS_MAX = 8;
const COLUMNS_DEFAULT = "type";
const NO_COLUMNS = "none";

export function readColumns(text: string = COLUMNS_DEFAULT): string[] {
  return text === NO_COLUMNS ? [] : [...new Set(values(text).map(fieldPath))].slice(0, COLUMNS_MAX);
}

export function writeColumns(columns: readonly string[]): string | undefined {
  const text = columns.length === 0 ? NO_COLUMNS : columns.join(",");
  return text === COLUMNS_DEFAULT ? undefined : text;
}

export interface EventSort {
  readonly field: string;
  readonly isDescending: boolean;
}

export const NEWEST_FIRST: EventSort = { field: "timestamp", isDescending: true };

/** `-raw.dst_port`: descending. */
export function readSort(text: string | undefined): EventSort {
  if (text === undefined) return NEWEST_FIRST;
  const isDescending = text.startsWith("-");
  return { field: fieldPath(isDescending ? text.slice(1) : text), isDescending };
}

export function writeSort({ field, isDescending }: EventSort): string | undefined {
  return field === "timestamp" && isDescending ? undefined : `${isDescending ? "-" : ""}${field}`;
}
