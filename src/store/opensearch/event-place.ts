import { QueryRefused } from "../ports/store-errors.ts";

// The place of an event in the order of arrival: the time of a row of the log, the row, and the number of the event in its
// shard. The parts have fixed widths, so that places compare as text.

export interface ArrivalPlace {
  readonly row: number;
  readonly number: number;
}

const TIME_DIGITS = 12;
const DIGITS = 11;
const PATTERN = /^arr_[0-9a-f]{12}([0-9a-f]{11})([0-9a-f]{11})$/;

const hex = (value: number, width: number) => value.toString(16).padStart(width, "0");

export function makePlace(atMs: number, row: number, number: number): string {
  return `arr_${hex(atMs, TIME_DIGITS)}${hex(row, DIGITS)}${hex(number, DIGITS)}`;
}

/** Refuses what is no place; `field` is its name in the query. */
export function readPlace(field: string, place: string): ArrivalPlace {
  const [, row, number] = PATTERN.exec(place) ?? [];
  if (row === undefined || number === undefined)
    throw new QueryRefused(field, "is not a place in the order of arrival");
  return { row: Number.parseInt(row, 16), number: Number.parseInt(number, 16) };
}
