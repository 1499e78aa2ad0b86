import type { Notes } from "./note.ts";

// What correlations compare their counts, sums and averages with.

const COUNT_MAX = 10_000;
const COMPARISONS = ["gte", "gt", "eq", "lte", "lt", "neq"];

/** As a threshold has them; the least number of events or values is its count. */
export interface Bounds {
  readonly count?: number;
  readonly gte?: number;
  readonly gt?: number;
  readonly lte?: number;
  readonly lt?: number;
}

interface Comparisons {
  readonly given: Record<string, unknown>;
  /** Where they stand; the older kind has them in a text, without a name to point at. */
  readonly place: string;
  placeOf(name: string): string;
}

export function comparisonsOf(given: Record<string, unknown>): Comparisons {
  const place = "correlation.condition";
  return { given, place, placeOf: (name) => `${place}.${name}` };
}

/** The numbers that something is compared with, one from below and one from above at most. */
export function readNumbers({ given: comparisons, place, placeOf }: Comparisons, notes: Notes): Bounds | undefined {
  const given = Object.entries(comparisons);
  const unknown = given.find(([name]) => !COMPARISONS.includes(name));
  if (unknown) return notes.refuse(placeOf(unknown[0]), `is not known: there are ${COMPARISONS.join(", ")}`);
  const { eq, neq, ...bounds } = comparisons;
  if (neq !== undefined) return notes.refuse(placeOf("neq"), "is not taken: gte, gt, lte, lt and eq are");
  const wrong = given.find(([, value]) => typeof value !== "number" || !Number.isFinite(value));
  if (wrong) return notes.refuse(placeOf(wrong[0]), "takes a number");
  const { gte, gt, lte, lt } = bounds;
  const isRange = (gte === undefined || gt === undefined) && (lte === undefined || lt === undefined);
  if (given.length === 0 || !isRange || (eq !== undefined && given.length > 1))
    return notes.refuse(place, "takes a comparison, or one from below and one from above");
  return eq === undefined ? (bounds as Bounds) : { gte: eq as number, lte: eq as number };
}

/** The same for a number of things: at least so many, at most so many. */
export function readCounts(comparisons: Comparisons, notes: Notes): Bounds | undefined {
  const bounds = readNumbers(comparisons, notes);
  if (!bounds) return undefined;
  const { placeOf, given } = comparisons;
  const fraction = Object.entries(given).find(([, value]) => !Number.isInteger(value));
  if (fraction) return notes.refuse(placeOf(fraction[0]), "takes a whole number");
  const { gte, gt, lte, lt } = bounds;
  const count = gte ?? (gt === undefined ? undefined : gt + 1);
  const lower = gte === undefined ? "gt" : "gte" in given ? "gte" : "eq";
  if (count !== undefined && (count < 1 || count > COUNT_MAX))
    return notes.refuse(placeOf(lower), `must make a count of 1 to ${COUNT_MAX}`);
  const most = lte ?? (lt === undefined ? Infinity : lt - 1);
  if (most < (count ?? 1)) return notes.refuse(placeOf(lte === undefined ? "lt" : "lte"), "leaves no number to count");
  return {
    ...(count !== undefined && { count }),
    ...(lte !== undefined && { lte }),
    ...(lt !== undefined && { lt }),
  };
}

/** Few events cannot be told from events still to come while a window slides. */
export function remarkFixed({ lte, lt }: Bounds, place: string, window: string, notes: Notes): void {
  if (lte === undefined && lt === undefined) return;
  const words = `an upper bound is decided when time is over: fixed windows of ${window} instead of sliding ones`;
  notes.remark(place, `${words}, and none without any event`);
}
