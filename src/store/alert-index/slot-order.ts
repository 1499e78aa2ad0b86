import type { SortKey } from "../../model/query.ts";
import { compareScalars, type SlotColumn } from "./slot-column.ts";

// The order of slots by fields: numbers, then texts, then booleans; alerts without the field come last in either direction.

type Compare = (a: number, b: number) => number;

/** `slots` are all that will be compared. Equal ones are in the order of `tie`. */
export function slotOrder(
  sort: readonly SortKey[],
  columnOf: (path: string) => SlotColumn,
  slots: Iterable<number>,
  tie: (a: number, b: number) => boolean,
): (a: number, b: number) => boolean {
  const compares = sort.map(({ field, descending }) => compareBy(field, columnOf(field), slots, descending ? -1 : 1));
  return (a, b) => {
    for (const compare of compares) {
      const order = compare(a, b);
      if (order !== 0) return order < 0;
    }
    return tie(a, b);
  };
}

function compareBy(field: string, column: SlotColumn, slots: Iterable<number>, direction: 1 | -1): Compare {
  const keyOf = keysOf(field, column, slots, direction);
  return (a, b) => {
    const [x, y] = [keyOf(a), keyOf(b)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
    return x - y;
  };
}

/** A number for each slot, by which it sorts in this direction; NaN without a value. */
function keysOf(
  field: string,
  column: SlotColumn,
  slots: Iterable<number>,
  direction: 1 | -1,
): (slot: number) => number {
  if (column.kind === "numbers") return (slot) => column.at(slot) * direction;
  const firstOf = (slot: number) => (column.count(slot) === 0 ? Number.NaN : column.at(slot, 0));
  if (column.isOrdered) {
    // The worst severity is the highest.
    const factor = field === "severity" ? -direction : direction;
    return (slot) => firstOf(slot) * factor;
  }
  const codes = new Set<number>();
  for (const slot of slots) if (column.count(slot) > 0) codes.add(column.at(slot, 0));
  const sorted = [...codes].sort((a, b) => compareScalars(column.valueOf(a)!, column.valueOf(b)!, direction));
  const ranks = new Map(sorted.map((code, rank) => [code, rank]));
  return (slot) => ranks.get(firstOf(slot)) ?? Number.NaN;
}
