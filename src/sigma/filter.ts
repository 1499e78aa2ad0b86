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
  /** Whether a rule is meant; those that are, are counted. */
  takes(rule: SigmaRule): boolean;
  /** What became of it, once every rule has been asked about. */
  outcome(): {
    readonly kind: "part" | "refused";
    readonly remarks: readonly Note[];
    readonly reasons: readonly Note[];
  };
}

/** A filter is one more condition of the rules that it names, or of all rules of its log source. */
export function readFilter({ filter, logsource }: SigmaFilter, mappings: readonly Mapping[]): Filter {
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
  return {
    condition: notes.refusals.length > 0 ? undefined : detection?.condition,
    outcome: () => {
      if (notes.refusals.length === 0 && taken === 0) {
        notes.refuse("filter.rules", "none of them is among those that are imported together");
      }
      if (notes.refusals.length > 0) return { kind: "refused", remarks: notes.remarks, reasons: notes.refusals };
      notes.remark("", `is part of the rules that it filters: ${taken}`);
      return { kind: "part", remarks: notes.remarks, reasons: [] };
    },
    takes: (rule) => {
      const isNamed = referencesOf(rule).some((reference) => rules.includes(reference));
      const isMeant = isNamed || (rules.some((name) => EVERY.has(name)) && covers(logsource, rule.logsource));
      if (isMeant) taken++;
      return isMeant;
    },
  };
}

/** A filter for a product is one for all of its categories and services. */
function covers(wide: Logsource, narrow: Logsource): boolean {
  return LOGSOURCE_KEYS.every((key) => wide[key] === undefined || wide[key] === narrow[key]);
}

function conditionTexts({ condition }: Record<string, unknown>): string[] {
  return [condition].flat().map(String);
}
