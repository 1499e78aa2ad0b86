import type { ConditionInput } from "../model/rule.ts";
import { readDetection } from "./detection.ts";
import { referencesOf, type SigmaFilter, type SigmaRule } from "./documents.ts";
import { placementOf, type Logsource, type Mapping } from "./mapping.ts";
import { Notes, type Note } from "./note.ts";

// Filters: what is left out of other rules, in documents of their own.

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
      const isMeant = isNamed || (rules.includes("any") && isSameLogsource(rule.logsource, logsource));
      if (isMeant) taken++;
      return isMeant;
    },
  };
}

function isSameLogsource(a: Logsource, b: Logsource): boolean {
  return a.category === b.category && a.product === b.product && a.service === b.service;
}
