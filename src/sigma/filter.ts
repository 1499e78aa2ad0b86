import type { ConditionInput } from "../model/rule.ts";
import { readDetection } from "./detection.ts";
import { referencesOf, type SigmaFilter, type SigmaRule } from "./documents.ts";
import { LOGSOURCE_KEYS, placementOf, type Logsource, type Mapping } from "./mapping.ts";
import { Notes, type Note } from "./note.ts";

// Filters: what is left out of other rules, in documents of their own.

/** What stands for all rules of the log source in the place of their names. */
const EVERY: ReadonlySet<string> = new Set(["any", "all"]);
const NEGATED = /(^|[\s(])not(?=[\s(])/i;

export interface Filter {
  /** Undefined when it cannot be taken. */
  readonly condition: ConditionInput | undefined;
  /** Whether a rule is meant, or why not although it is named. Counted for the outcome. */
  take(rule: SigmaRule): { readonly isTaken: boolean; readonly whyNot?: string };
  /** What became of it, once every rule has been asked about. */
  outcome(): {
    readonly kind: "part" | "refused";
    readonly remarks: readonly Note[];
    readonly reasons: readonly Note[];
  };
}

/** A filter is one more condition of rules of its log source: of those that it names, or of all. */
export function readFilter({ title, filter, logsource }: SigmaFilter, mappings: readonly Mapping[]): Filter {
  const notes = new Notes();
  const { rules, ...selections } = filter;
  const placement = placementOf(logsource, mappings);
  if (!placement) notes.refuse("logsource", "no entry of the mapping speaks of it");
  if (rules.length === 0) notes.refuse("filter.rules", "is required");
  const detection = placement && readDetection(selections, placement, notes, "filter");
  if (detection && !conditionTexts(selections).some((text) => NEGATED.test(text))) {
    notes.remark("filter.condition", "has no not: the rules that it filters fire only where it holds, as Sigma has it");
  }
  let taken = 0;
  let unfit = 0;
  return {
    condition: notes.refusals.length > 0 ? undefined : detection?.condition,
    outcome: () => {
      if (notes.refusals.length === 0 && taken === 0) {
        if (unfit === 0) notes.refuse("filter.rules", "none of them is among those that are imported together");
        else notes.refuse("logsource", "no rule that is imported together with it and that it names lies within it");
      }
      if (notes.refusals.length > 0) return { kind: "refused", remarks: notes.remarks, reasons: notes.refusals };
      if (unfit > 0) notes.remark("logsource", `not applied to rules of another log source that it names: ${unfit}`);
      notes.remark("", `is part of the rules that it filters: ${taken}`);
      return { kind: "part", remarks: notes.remarks, reasons: [] };
    },
    take: (rule) => {
      const isNamed = referencesOf(rule).some((reference) => rules.includes(reference));
      if (!isNamed && !rules.some((name) => EVERY.has(name))) return { isTaken: false };
      const differences = differencesOf(logsource, rule.logsource);
      if (differences.length === 0) {
        taken++;
        return { isTaken: true };
      }
      if (!isNamed) return { isTaken: false };
      unfit++;
      const words = `the filter "${title}" names this rule and is not applied to it`;
      return { isTaken: false, whyNot: `${words}: ${differences.join("; ")}` };
    },
  };
}

/** Filters of another log source that a rule is told of one by one. */
const UNFIT_REMARKS_MAX = 10;

/** What is left out of a rule. */
export function applyFilters(
  filters: readonly (Filter | undefined)[],
  rule: SigmaRule,
  notes: Notes,
): ConditionInput[] {
  const conditions: ConditionInput[] = [];
  let unfit = 0;
  for (const filter of filters) {
    if (!filter?.condition) continue;
    const { isTaken, whyNot } = filter.take(rule);
    if (isTaken) conditions.push(filter.condition);
    if (whyNot !== undefined && ++unfit <= UNFIT_REMARKS_MAX) notes.remark("logsource", whyNot);
  }
  if (unfit > UNFIT_REMARKS_MAX) {
    notes.remark("logsource", `more filters that name this rule and are not for it: ${unfit - UNFIT_REMARKS_MAX}`);
  }
  return conditions;
}

/** Why a rule does not lie within a log source. That of a product has all of its categories and services in it. */
function differencesOf(wide: Logsource, narrow: Logsource): string[] {
  return LOGSOURCE_KEYS.filter((key) => wide[key] !== undefined && wide[key] !== narrow[key]).map((key) => {
    const said = narrow[key] === undefined ? "the rule says none" : `the rule's is ${narrow[key]}`;
    return `it is for the ${key} ${wide[key]}, and ${said}`;
  });
}

function conditionTexts({ condition }: Record<string, unknown>): string[] {
  return [condition].flat().map(String);
}
