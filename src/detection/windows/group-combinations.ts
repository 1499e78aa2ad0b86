import type { Scalar } from "../../model/condition.ts";

// Combinations of the values of an event's paths, for groups and for distinct values.

/** Groups in which one event can count if a path has several values. */
export const COMBINATIONS_MAX = 16;

export const NO_VALUES: readonly Scalar[] = [];

/** The Cartesian product of the lists, up to the limit; empty if a list is empty. */
export function combinations(lists: readonly (readonly Scalar[])[]): readonly (readonly Scalar[])[] {
  let found: (readonly Scalar[])[] = [NO_VALUES];
  for (const list of lists) {
    if (list.length === 0) return [];
    if (list.length === 1) {
      for (let i = 0; i < found.length; i++) found[i] = [...found[i]!, list[0]!];
      continue;
    }
    found = found.flatMap((values) => limitValues(list).map((value) => [...values, value])).slice(0, COMBINATIONS_MAX);
  }
  return found;
}

/** True if the values of a match have more combinations than count. */
export function exceedsCombinations(values: readonly (readonly Scalar[])[]): boolean {
  return values.reduce((product, { length }) => product * Math.max(1, length), 1) > COMBINATIONS_MAX;
}

/** Truncates the values independently of their order. */
export function limitValues(values: readonly Scalar[]): readonly Scalar[] {
  if (values.length <= COMBINATIONS_MAX) return values;
  const spelled = (value: Scalar) => `${typeof value} ${value}`;
  return [...values].sort((a, b) => (spelled(a) < spelled(b) ? -1 : 1)).slice(0, COMBINATIONS_MAX);
}
