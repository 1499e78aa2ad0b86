import { z } from "zod";

/** A source that exists on this platform. */
export function sourceSchema(sources: readonly string[]) {
  return z.enum(sources as [string, ...string[]]);
}

const VALUE_OPERATORS = ["equals", "not_equals", "in", "not_in"] as const;
const LISTS = ["must", "must_not", "should"] as const;

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/**
 * Refuses a filter on a source that does not exist, instead of returning an empty result. The query may have other faults
 * and contain values of any type.
 */
export function sourceFaults(query: unknown, sources: readonly string[], context: z.RefinementCtx): void {
  const message = `must be one of ${sources.join(", ")}`;
  const visit = (value: unknown, path: PropertyKey[]): void => {
    const bool = membersOf(value);
    for (const list of LISTS) {
      const filters: readonly unknown[] = Array.isArray(bool[list]) ? bool[list] : [];
      for (const [index, item] of filters.entries()) {
        const filter = membersOf(item);
        const itemPath = [...path, list, index];
        visit(filter["bool"], [...itemPath, "bool"]);
        if (filter["field"] !== "source") continue;
        for (const operator of VALUE_OPERATORS) {
          const given = filter[operator];
          const lowerCase = (value: unknown) =>
            filter["ignore_case"] === true && typeof value === "string" ? value.toLowerCase() : value;
          for (const [i, value] of [given ?? []].flat().entries()) {
            // Values of another type are refused by the schema.
            if (typeof value === "object" || sources.some((source) => source === lowerCase(value))) continue;
            const within = Array.isArray(given) ? [operator, i] : [operator];
            context.addIssue({ code: "custom", path: [...itemPath, ...within], message });
          }
        }
      }
    }
  };
  visit(membersOf(query)["bool"], ["query", "bool"]);
}
