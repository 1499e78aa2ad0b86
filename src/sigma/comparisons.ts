import type { ImportNotes } from "./import-note.ts";

// Comparisons of counts, sums and averages in correlations.

const COUNT_MAX = 10_000;
const COMPARISONS = ["gte", "gt", "eq", "lte", "lt", "neq"];

/** Bounds of a threshold; the minimum number of events or values is its count. */
export interface ThresholdBounds {
  readonly count?: number;
  readonly gte?: number;
  readonly gt?: number;
  readonly lte?: number;
  readonly lt?: number;
}

interface Comparisons {
  readonly given: Record<string, unknown>;
  /** Path of the comparisons; older aggregations are a text without names to point at. */
  readonly place: string;
  placeOf(name: string): string;
}

export function comparisonsOf(given: Record<string, unknown>): Comparisons {
  const place = "correlation.condition";
  return { given, place, placeOf: (name) => `${place}.${name}` };
}

/** Reads numeric bounds: at most one lower and one upper. */
export function readNumbers(
  { given: comparisons, place, placeOf }: Comparisons,
  notes: ImportNotes,
): ThresholdBounds | undefined {
  const given = Object.entries(comparisons);
  const unknown = given.find(([name]) => !COMPARISONS.includes(name));
  if (unknown) return notes.refuse(placeOf(unknown[0]), `is unknown; known comparisons are ${COMPARISONS.join(", ")}`);
  const { eq, neq, ...bounds } = comparisons;
  if (neq !== undefined) return notes.refuse(placeOf("neq"), "is not supported; use gte, gt, lte, lt or eq");
  const wrong = given.find(([, value]) => typeof value !== "number" || !Number.isFinite(value));
  if (wrong) return notes.refuse(placeOf(wrong[0]), "takes a number");
  const { gte, gt, lte, lt } = bounds;
  const isRange = (gte === undefined || gt === undefined) && (lte === undefined || lt === undefined);
  if (given.length === 0 || !isRange || (eq !== undefined && given.length > 1))
    return notes.refuse(place, "takes one comparison, or one lower and one upper bound");
  return eq === undefined ? (bounds as ThresholdBounds) : { gte: eq as number, lte: eq as number };
}

/** Reads bounds of a count: a minimum and a maximum. */
export function readCounts(comparisons: Comparisons, notes: ImportNotes): ThresholdBounds | undefined {
  const bounds = readNumbers(comparisons, notes);
  if (!bounds) return undefined;
  const { placeOf, given } = comparisons;
  const fraction = Object.entries(given).find(([, value]) => !Number.isInteger(value));
  if (fraction) return notes.refuse(placeOf(fraction[0]), "takes a whole number");
  const { gte, gt, lte, lt } = bounds;
  const count = gte ?? (gt === undefined ? undefined : gt + 1);
  const lower = gte === undefined ? "gt" : "gte" in given ? "gte" : "eq";
  if (count !== undefined && (count < 1 || count > COUNT_MAX))
    return notes.refuse(placeOf(lower), `must result in a count of 1 to ${COUNT_MAX}`);
  const most = lte ?? (lt === undefined ? Infinity : lt - 1);
  if (most < (count ?? 1)) return notes.refuse(placeOf(lte === undefined ? "lt" : "lte"), "leaves no possible count");
  return {
    ...(count !== undefined && { count }),
    ...(lte !== undefined && { lte }),
    ...(lt !== undefined && { lt }),
  };
}

/** Remarks that upper bounds use fixed windows: in a sliding window, more events may still arrive. */
export function remarkFixed({ lte, lt }: ThresholdBounds, place: string, window: string, notes: ImportNotes): void {
  if (lte === undefined && lt === undefined) return;
  const words = `an upper bound is decided when a window ends: fixed windows of ${window} instead of sliding ones`;
  notes.remark(place, `${words}, and no window without events`);
}
