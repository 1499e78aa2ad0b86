import { faultsOf } from "../lib/fault.ts";
import type { ConditionInput, RuleOrigin } from "../model/rule.ts";
import { exceptionInputSchema, type ExceptionInput } from "../model/rule-schema.ts";
import { listOf, notOf } from "./combine.ts";
import { readDetection } from "./detection.ts";
import { referencesOf, type SigmaFilter, type SigmaRule } from "./documents.ts";
import { LOGSOURCE_KEYS, placementOf, type Logsource, type Mapping } from "./mapping.ts";
import { ImportNotes, type ImportNote } from "./import-note.ts";

// Filters: separate documents that exclude events from other rules.

/** Words that stand for all rules of the log source. */
const EVERY: ReadonlySet<string> = new Set(["any", "all"]);
const REASON_CHARACTERS_MAX = 1000;
const NEGATED = /(^|[\s(])not(?=[\s(])/i;

type FilteredRule = Pick<SigmaRule, "name" | "id"> & { readonly logsource: Logsource };

/** A previously imported rule. */
export interface StoredRule {
  readonly id: string;
  readonly origin: RuleOrigin;
}

export interface Filter {
  /** Undefined if the filter cannot be imported. */
  readonly condition: ConditionInput | undefined;
  /** True if the filter applies to the rule, or why not although it names the rule. Counted for the outcome. */
  take(rule: FilteredRule): { readonly isTaken: boolean; readonly whyNot?: string };
  /** Exceptions for the previously imported rules that the filter applies to. */
  takeStored(rules: readonly StoredRule[]): readonly { readonly ruleId: string; readonly input: ExceptionInput }[];
  /** Outcome of the filter, once it was applied to every rule. */
  outcome(): {
    readonly kind: "part" | "refused";
    readonly remarks: readonly ImportNote[];
    readonly reasons: readonly ImportNote[];
  };
}

/** Reads a filter: an additional condition of the rules of its log source that it names, or of all. */
export function readFilter({ title, id, filter, logsource }: SigmaFilter, mappings: readonly Mapping[]): Filter {
  const notes = new ImportNotes();
  const { rules, ...selections } = filter;
  const placement = placementOf(logsource, mappings);
  if (!placement) notes.refuse("logsource", "has no entry in the mapping");
  if (rules.length === 0) notes.refuse("filter.rules", "is required");
  const detection = placement && readDetection(selections, placement, notes, "filter");
  if (detection && !conditionTexts(selections).some((text) => NEGATED.test(text))) {
    notes.remark("filter.condition", "has no not: the filtered rules fire only if it holds, as Sigma specifies");
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
        if (unfit === 0) notes.refuse("filter.rules", "names no rule of this import or of an earlier one");
        else notes.refuse("logsource", "covers none of the named rules");
      }
      if (notes.refusals.length > 0) return { kind: "refused", remarks: notes.remarks, reasons: notes.refusals };
      if (unfit > 0) notes.remark("logsource", `not applied to named rules of another log source: ${unfit}`);
      if (taken > 0) notes.remark("", `applied to rules of this import: ${taken}`);
      if (stored > 0) notes.remark("", `added as an exception to previously imported rules: ${stored}`);
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

/** Limit of the filters of another log source that are reported one by one. */
const UNFIT_REMARKS_MAX = 10;

/** Conditions of the filters that apply to a rule. */
export function applyFilters(
  filters: readonly (Filter | undefined)[],
  rule: SigmaRule,
  notes: ImportNotes,
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
    notes.remark("logsource", `${unfit - UNFIT_REMARKS_MAX} more filters name this rule and are not applied to it`);
  }
  return conditions;
}

/** Why a log source does not cover a rule. The log source of a product covers all its categories and services. */
function differencesOf(wide: Logsource, narrow: Logsource): string[] {
  return LOGSOURCE_KEYS.filter((key) => wide[key] !== undefined && wide[key] !== narrow[key]).map((key) => {
    const said = narrow[key] === undefined ? "the rule has none" : `the rule has ${narrow[key]}`;
    return `it is for the ${key} ${wide[key]}, ${said}`;
  });
}

function conditionTexts({ condition }: Record<string, unknown>): string[] {
  return [condition].flat().map(String);
}
