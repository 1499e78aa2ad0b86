import type { z } from "zod";
import { formatPath, type Fault } from "../lib/fault.ts";
import { parseTime } from "../lib/time.ts";
import { refuseInputs, refusePart, type ReportFault } from "./part-faults.ts";
import type { ConditionInput, RuleException } from "./rule.ts";

// Faults of a rule as a whole: fields that contradict each other, and checks that a field's schema cannot make.

type Wholeness = Readonly<
  Partial<
    Record<
      | "conditions"
      | "window"
      | "threshold"
      | "sequence"
      | "sequence_order"
      | "sequence_min"
      | "group_by"
      | "absence"
      | "parts",
      unknown
    >
  >
>;

/** Reports fields that do not fit together. A field that its own schema refused may be of any type. */
export function refuseMixtures(rule: Wholeness, context: z.RefinementCtx): void {
  const fault: ReportFault = (path, message) => context.addIssue({ code: "custom", path, message });
  refuseCorrelation(rule, fault);
  for (const [i, part] of listOf(rule.parts).entries()) {
    if (typeof part !== "object" || part === null) continue;
    const within: ReportFault = (path, message) => fault(["parts", i, ...path], message);
    // The part's schema requires the window.
    refuseCorrelation({ ...part, window: "" }, within);
    refusePart(part as Wholeness, within);
  }
  refuseInputs(rule, fault);
}

/** Reports the same faults of a rule without its parts, or of a part. */
function refuseCorrelation(rule: Wholeness, fault: ReportFault): void {
  const has = (name: keyof Wholeness) => rule[name] !== undefined && rule[name] !== null;
  if (has("threshold") && has("sequence")) fault(["sequence"], "cannot be combined with threshold");
  if (has("absence") && (has("threshold") || has("sequence") || has("window"))) {
    fault(["absence"], "cannot be combined with window, threshold or sequence");
  }
  if (has("threshold") && !has("window")) fault(["window"], "is required with threshold");
  if (has("sequence") && !has("window")) fault(["window"], "is required with sequence");
  if (has("window") && !has("threshold") && !has("sequence") && !has("absence")) {
    fault(["threshold"], "is required with window, unless a sequence is given");
  }
  if (has("group_by") && !has("sequence") && !has("absence")) {
    fault(["group_by"], "applies to sequence and absence only; for a threshold use threshold.group_by");
  }
  // A parsed rule always has the default.
  if (rule.sequence_order === "any" && !has("sequence")) fault(["sequence_order"], "applies to a sequence only");
  const isEmpty = Array.isArray(rule.conditions) && rule.conditions.length === 0 && !hasInputs(rule.threshold);
  if (isEmpty && !has("sequence") && !has("absence")) fault(["conditions"], "must not be empty");
  refuseSteps(rule, fault);
  if (typeof rule.threshold === "object" && rule.threshold !== null) refuseBounds(rule.threshold, fault);
}

function hasInputs(threshold: unknown): boolean {
  return typeof threshold === "object" && threshold !== null && "inputs" in threshold && threshold.inputs !== undefined;
}

/** Reports faults of a threshold's measure and bounds. */
function refuseBounds(threshold: object, fault: ReportFault): void {
  const given = threshold as Readonly<Record<string, unknown>>;
  const has = (name: string) => given[name] !== undefined;
  const [measure, other] = ["distinct", "sum", "avg", "percentile"].filter(has);
  if (other !== undefined) fault(["threshold", other], `cannot be combined with ${measure}`);
  const [lower, secondLower] = ["gte", "gt"].filter(has);
  const [upper, secondUpper] = ["lte", "lt"].filter(has);
  if (secondLower !== undefined) fault(["threshold", "gt"], "cannot be combined with gte");
  if (secondUpper !== undefined) fault(["threshold", "lt"], "cannot be combined with lte");
  const counts = measure === undefined || measure === "distinct";
  const bound = lower ?? upper;
  if (counts && lower !== undefined) fault(["threshold", lower], "applies to sum, avg and percentile only; use count");
  if (counts && upper === undefined && !has("count")) fault(["threshold", "count"], "is required");
  if (!counts && bound === undefined) fault(["threshold"], "needs gte, gt, lte or lt");
  const least = counts ? (given.count ?? 1) : lower === undefined ? undefined : given[lower];
  const most = upper === undefined ? undefined : given[upper];
  if (typeof least !== "number" || typeof most !== "number") return;
  const isStrict = upper === "lt" || lower === "gt";
  if (least > most || (isStrict && least === most)) fault(["threshold", upper!], "must be above the lower bound");
}

function refuseSteps(rule: Wholeness, fault: ReportFault): void {
  const names = new Set<unknown>();
  for (const [i, step] of listOf(rule.sequence).entries()) {
    if (typeof step !== "object" || step === null) continue;
    const { name, group_by: own, absent, count } = step as Readonly<Record<string, unknown>>;
    if (names.has(name)) fault(["sequence", i, "name"], "is already the name of another step");
    if (name !== undefined) names.add(name);
    if (own !== undefined && [own].flat().length !== [rule.group_by ?? []].flat().length) {
      fault(["sequence", i, "group_by"], "must have as many paths as the rule's group_by");
    }
    if (absent !== true) continue;
    if (rule.sequence_order === "any") fault(["sequence", i, "absent"], "requires sequence_order in_order");
    if (typeof count === "number" && count > 1) fault(["sequence", i, "count"], "must be 1 for an absent step");
  }
  const steps = listOf(rule.sequence);
  const least = rule.sequence_min;
  if (typeof least === "number") {
    if (rule.sequence_order !== "any") fault(["sequence_min"], "requires sequence_order any");
    if (least > steps.length) fault(["sequence_min"], `must be at most the number of steps, ${steps.length}`);
    for (const [i, step] of steps.entries()) {
      const { count } = (step ?? {}) as { readonly count?: unknown };
      if (typeof count === "number" && count > 1) fault(["sequence", i, "count"], "must be 1 with sequence_min");
    }
  }
  if (steps.length > 0 && steps.every(isAbsent)) fault(["sequence"], "must have at least one step that is not absent");
}

function isAbsent(step: unknown): boolean {
  return typeof step === "object" && step !== null && "absent" in step && step.absent === true;
}

/** Paths between `{{` and `}}` in a title or a description. */
export const PLACE_PATHS_MAX = 8;

/** Refuses a placeholder with too many paths: it would appear in alerts unfilled. */
export function refuseCrowdedPlaces(text: string, context: z.RefinementCtx): void {
  const crowded = text.match(/\{\{[^{}]*\}\}/g)?.find((place) => place.split("|").length > PLACE_PATHS_MAX);
  if (crowded === undefined) return;
  context.addIssue({ code: "custom", message: `at most ${PLACE_PATHS_MAX} paths between {{ and }}` });
}

/** The list itself, or an empty list for anything else. */
function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

const SOURCE_OPERATORS = ["equals", "not_equals", "in", "not_in"] as const;
const LISTING: ReadonlySet<string> = new Set(["in", "not_in"]);

/** Reports tests for a source that does not exist: such a rule would never match. */
function unknownSources(
  items: readonly ConditionInput[],
  sources: readonly string[],
  fault: (path: PropertyKey[], message: string) => void,
): void {
  const visit = (item: ConditionInput, path: PropertyKey[]): void => {
    const within = (list: unknown, name: string) =>
      listOf(list).forEach((inner, i) => visit(inner as ConditionInput, [...path, name, i]));
    // The schema has refused anything of another shape.
    if (typeof item !== "object" || item === null) return;
    if ("any" in item) within(item.any, "any");
    else if ("all" in item) within(item.all, "all");
    else if ("not" in item) visit(item.not, [...path, "not"]);
    else if ("field" in item && item.field === "source") {
      const fold = (value: unknown) => (item.ignore_case && typeof value === "string" ? value.toLowerCase() : value);
      for (const operator of SOURCE_OPERATORS) {
        const given: unknown = item[operator];
        if (Array.isArray(given) !== LISTING.has(operator)) continue;
        for (const [i, value] of [given ?? []].flat().entries()) {
          if (sources.some((source) => source === fold(value))) continue;
          const place = Array.isArray(given) ? [operator, i] : [operator];
          fault([...path, ...place], `must be one of ${sources.join(", ")}`);
        }
      }
    }
  };
  listOf(items).forEach((item, i) => visit(item as ConditionInput, ["conditions", i]));
}

export function refuseUnknownSources(rule: SourceTests, sources: readonly string[], context: z.RefinementCtx): void {
  const within = (
    above: PropertyKey[],
    { conditions }: { readonly conditions?: readonly ConditionInput[] | undefined },
  ) =>
    unknownSources(conditions ?? [], sources, (path, message) =>
      context.addIssue({ code: "custom", path: [...above, ...path], message }),
    );
  const each = (above: PropertyKey[], list: unknown, visit: (above: PropertyKey[], item: SourceTests) => void) => {
    for (const [i, item] of listOf(list).entries()) {
      if (typeof item === "object" && item !== null) visit([...above, i], item as SourceTests);
    }
  };
  const visit = (above: PropertyKey[], correlation: SourceTests) => {
    within(above, correlation);
    each([...above, "sequence"], correlation.sequence, within);
    each([...above, "threshold", "inputs"], correlation.threshold?.inputs, within);
  };
  visit([], rule);
  each(["exceptions"], rule.exceptions, within);
  each(["parts"], rule.parts, visit);
}

/** Faults of an exception that is added on its own, beyond its shape. */
export function exceptionFaults(
  {
    conditions,
    expires_at: expiresAt,
  }: Pick<SourceTests, "conditions"> & { readonly expires_at?: number | null | undefined },
  { sources, now, above = [] }: { sources: readonly string[]; now: number; above?: readonly PropertyKey[] },
): Fault[] {
  const faults: Fault[] = [];
  const fault = (path: PropertyKey[], message: string) =>
    faults.push({ field: formatPath([...above, ...path]), message });
  unknownSources(conditions, sources, fault);
  if (typeof expiresAt === "number" && expiresAt <= now) fault(["expires_at"], AHEAD);
  return faults;
}

/**
 * Faults of the exceptions that come with a rule, beyond their shape. `known` are the exceptions of the rule that it
 * replaces. The input is unchecked: it may have other faults and values of any type.
 */
export function ruleExceptionFaults(input: unknown, now: number, known: readonly RuleException[] = []): Fault[] {
  const faults: Fault[] = [];
  const ids = new Set<unknown>();
  for (const [i, exception] of listOf((input as { readonly exceptions?: unknown } | null)?.exceptions).entries()) {
    if (typeof exception !== "object" || exception === null) continue;
    const given = exception as Readonly<Partial<Record<"id" | "author" | "created_at" | "expires_at", unknown>>>;
    const fault = (name: keyof typeof given, message: string) =>
      faults.push({ field: formatPath(["exceptions", i, name]), message });
    const kept = known.find(({ id }) => id === given.id);
    if (given.id !== undefined && !kept) fault("id", "is not the id of an exception of this rule");
    else if (kept && ids.has(kept.id)) fault("id", "is given twice");
    ids.add(given.id);
    if (given.author !== undefined && given.author !== kept?.author) fault("author", "cannot be set");
    const timeOf = (value: unknown) => (typeof value === "string" ? parseTime(value) : undefined);
    if (given.created_at !== undefined && (!kept || timeOf(given.created_at) !== kept.createdAt)) {
      fault("created_at", "cannot be set");
    }
    const expiresAt = timeOf(given.expires_at);
    // An exception that has expired may stay unchanged.
    if (expiresAt !== undefined && expiresAt <= now && expiresAt !== kept?.expiresAt) fault("expires_at", AHEAD);
  }
  return faults;
}

const AHEAD = "must be in the future";

interface SourceTests {
  readonly conditions: readonly ConditionInput[];
  readonly sequence?: unknown;
  readonly threshold?: { readonly inputs?: unknown } | null | undefined;
  readonly exceptions?: unknown;
  readonly parts?: unknown;
}
