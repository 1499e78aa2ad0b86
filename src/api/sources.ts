import { z } from "zod";

/** A source as a filter names it: one that exists on this platform. */
export function sourceSchema(sources: readonly string[]) {
  return z.enum(sources as [string, ...string[]]);
}

interface FilterLike {
  readonly bool?: unknown;
  readonly field?: unknown;
  readonly [operator: string]: unknown;
}
interface BoolLike {
  readonly must?: readonly FilterLike[] | undefined;
  readonly must_not?: readonly FilterLike[] | undefined;
  readonly should?: readonly FilterLike[] | undefined;
}

const VALUE_OPERATORS = ["equals", "not_equals", "in", "not_in"] as const;
const LISTS = ["must", "must_not", "should"] as const;

/** A test for a source that cannot be is a mistake to point out, not an empty answer. */
export function sourceFaults(bool: unknown, sources: readonly string[], context: z.RefinementCtx): void {
  const message = `must be one of ${sources.join(", ")}`;
  const visit = (bool: BoolLike, path: PropertyKey[]): void => {
    for (const list of LISTS) {
      for (const [index, filter] of (bool[list] ?? []).entries()) {
        const place = [...path, list, index];
        if (filter.bool !== undefined) visit(filter.bool as BoolLike, [...place, "bool"]);
        if (filter.field !== "source") continue;
        for (const operator of VALUE_OPERATORS) {
          const values = [filter[operator] ?? []].flat();
          const fold = (value: unknown) =>
            filter["ignore_case"] === true && typeof value === "string" ? value.toLowerCase() : value;
          if (values.some((value) => !sources.some((source) => source === fold(value)))) {
            context.addIssue({ code: "custom", path: [...place, operator], message });
          }
        }
      }
    }
  };
  if (bool !== undefined) visit(bool as BoolLike, ["query", "bool"]);
}
