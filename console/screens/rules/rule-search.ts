import type { Rule, Severity } from "../../data/client.ts";
import type { RuleFilter } from "../../data/rules.ts";

// What the address says about the list of rules.

export const SORTS = ["name", "alerts", "false", "last"] as const;
export type Sort = (typeof SORTS)[number];

export interface RuleSearch {
  readonly search?: string | undefined;
  readonly source?: string | undefined;
  readonly severity?: string | undefined;
  readonly enabled?: string | undefined;
  readonly sort?: string | undefined;
}

const oneOf = <Value extends string>(values: readonly Value[], text: string | undefined): Value | undefined =>
  values.find((value) => value === text);

interface Choices {
  readonly sources: readonly string[];
  readonly severities: readonly Severity[];
}

export function filterOf(search: RuleSearch, { sources, severities }: Choices): RuleFilter {
  const enabled = oneOf(["true", "false"], search.enabled);
  return {
    search: search.search?.trim() || undefined,
    source: oneOf(["any", ...sources], search.source),
    severity: oneOf(severities, search.severity),
    enabled: enabled === undefined ? undefined : enabled === "true",
  };
}

export const sortOf = (search: RuleSearch): Sort => oneOf(SORTS, search.sort) ?? "name";

const KEYS: Readonly<Record<Exclude<Sort, "name">, (rule: Rule) => number>> = {
  alerts: ({ stats }) => stats.alerts_7d,
  false: ({ stats }) => stats.false_positive_share ?? -1,
  last: ({ stats }) => (stats.last_match === null ? 0 : Date.parse(stats.last_match)),
};

/** The most first; by name they come sorted. */
export function sortRules(rules: readonly Rule[], sort: Sort): readonly Rule[] {
  if (sort === "name") return rules;
  const key = KEYS[sort];
  return rules.toSorted((a, b) => key(b) - key(a) || (a.name < b.name ? -1 : 1));
}

/** An address names a rule as people do, or by its id: only names have a dot. */
export const isRule = (rule: Pick<Rule, "id" | "name">, reference: string | undefined) =>
  rule.name === reference || rule.id === reference;
export const isRuleName = (reference: string) => reference.includes(".");
