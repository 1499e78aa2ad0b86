import { faultsOf } from "../lib/fault.ts";
import type { ConditionInput, ExceptionInput, RuleOrigin } from "../model/rule.ts";
import { exceptionInputSchema } from "../model/rule-schema.ts";
import { listOf, notOf } from "./combine.ts";
import { readDetection } from "./detection.ts";
import { referencesOf, type SigmaFilter, type SigmaRule } from "./documents.ts";
import { LOGSOURCE_KEYS, placementOf, type Logsource, type Mapping } from "./mapping.ts";
import { Notes, type Note } from "./note.ts";

// Filters: what is left out of other rules, in documents of their own.

/** What stands for all rules of the log source in the place of their names. */
const EVERY: ReadonlySet<string> = new Set(["any", "all"]);
const REASON_CHARACTERS_MAX = 1000;
const NEGATED = /(^|[\s(])not(?=[\s(])/i;

type FilteredRule = Pick<SigmaRule, "name" | "id"> & { readonly logsource: Logsource };

/** A rule that was imported before. */
export interface StoredRule {
  readonly id: string;
  readonly origin: RuleOrigin;
}

export interface Filter {
  /** Undefined when it cannot be taken. */
  readonly condition: ConditionInput | undefined;
  /** Whether a rule is meant, or why not although it is named. Counted for the outcome. */
  take(rule: FilteredRule): { readonly isTaken: boolean; readonly whyNot?: string };
  /** The same for rules that were imported before: of those that are meant, what is no match of theirs any more. */
  takeStored(rules: readonly StoredRule[]): readonly { readonly ruleId: string; readonly input: ExceptionInput }[];
  /** What became of it, once every rule has been asked about. */
  outcome(): {
    readonly kind: "part" | "refused";
    readonly remarks: readonly Note[];
    readonly reasons: readonly Note[];
  };
}

/** A filter is one more condition of rules of its log source: of those that it names, or of all. */
export function readFilter({ title, id, filter, logsource }: SigmaFilter, mappings: readonly Mapping[]): Filter {
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
  let stored = 0;
  let unfit = 0;
  const fit = (rule: FilteredRule): { isTaken: boolean; whyNot?: string } => {
    const isNamed = referencesOf(rule).some((reference) => rules.includes(reference));
    if (!isNamed && !rules.some((name) => EVERY.has(name))) return { isTaken: false };
    const differences = differencesOf(logsource, rule.logsource);
    if (differences.length === 0) return { isTaken: true };
    if (!isNamed) return { isTaken: false };
    unfit++;
    const words = `the filter "${title}" names this rule and is not applied to it`;
    return { isTaken: false, whyNot: `${words}: ${differences.join("; ")}` };
  };
  return {
    condition: notes.refusals.length > 0 ? undefined : detection?.condition,
    outcome: () => {
      if (notes.refusals.length === 0 && taken + stored === 0) {
        if (unfit === 0)
          notes.refuse("filter.rules", "none of them is among those that are imported together, or were before");
        else notes.refuse("logsource", "no rule that it names lies within it");
      }
      if (notes.refusals.length > 0) return { kind: "refused", remarks: notes.remarks, reasons: notes.refusals };
      if (unfit > 0) notes.remark("logsource", `not applied to rules of another log source that it names: ${unfit}`);
      if (taken > 0) notes.remark("", `is part of the rules that it filters: ${taken}`);
      if (stored > 0) notes.remark("", `is an exception of rules that were imported before: ${stored}`);
      return { kind: "part", remarks: notes.remarks, reasons: [] };
    },
    take: (rule) => {
      const found = fit(rule);
      if (found.isTaken) taken++;
      return found;
    },
    takeStored: (list) => {
      const meant =
        detection && notes.refusals.length === 0 ? list.filter(({ origin }) => fit(origin.sigma).isTaken) : [];
      if (meant.length === 0) return [];
      const reason = `Sigma filter "${title}"${id ? ` ${id}` : ""}`.slice(0, REASON_CHARACTERS_MAX);
      const parsed = exceptionInputSchema.safeParse({ conditions: listOf(notOf(detection!.condition)), reason });
      if (!parsed.success) {
        for (const { field, message } of faultsOf(parsed.error)) notes.refuse(field, message);
        return [];
      }
      stored = meant.length;
      return meant.map((rule) => ({ ruleId: rule.id, input: parsed.data }));
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
