import type { z } from "zod";
import { formatPath, type Fault } from "../lib/fault.ts";
import { parseTime } from "../lib/time.ts";
import type { ConditionInput, ExceptionInput, RuleException } from "./rule.ts";

// What is wrong with a rule as a whole: what its fields must be to each other, and what no schema of a field can know.

type Wholeness = Readonly<
  Partial<
    Record<
      "conditions" | "window" | "threshold" | "sequence" | "sequence_order" | "sequence_min" | "group_by" | "absence",
      unknown
    >
  >
>;

/** What the fields must be to each other. Those that are wrong in themselves may be of any type. */
export function refuseMixtures(rule: Wholeness, context: z.RefinementCtx): void {
  const fault = (path: PropertyKey[], message: string) => context.addIssue({ code: "custom", path, message });
  const has = (name: keyof Wholeness) => rule[name] !== undefined && rule[name] !== null;
  if (has("threshold") && has("sequence")) fault(["sequence"], "stands instead of threshold, not beside it");
  if (has("absence") && (has("threshold") || has("sequence") || has("window"))) {
    fault(["absence"], "stands alone: without window, threshold and sequence");
  }
  if (has("threshold") && !has("window")) fault(["window"], "is required with threshold");
  if (has("sequence") && !has("window")) fault(["window"], "is required with sequence");
  if (has("window") && !has("threshold") && !has("sequence") && !has("absence")) {
    fault(["threshold"], "is required with window (or a sequence)");
  }
  if (has("group_by") && !has("sequence") && !has("absence")) {
    fault(["group_by"], "belongs to sequence and absence; a threshold has its own: threshold.group_by");
  }
  // Every rule that is read has the default.
  if (rule.sequence_order === "any" && !has("sequence")) fault(["sequence_order"], "belongs to a sequence");
  const isEmpty = Array.isArray(rule.conditions) && rule.conditions.length === 0;
  if (isEmpty && !has("sequence") && !has("absence")) fault(["conditions"], "must not be empty");
  refuseSteps(rule, fault);
  if (typeof rule.threshold === "object" && rule.threshold !== null) refuseBounds(rule.threshold, fault);
}

/** What a threshold compares, and with what. */
function refuseBounds(threshold: object, fault: (path: PropertyKey[], message: string) => void): void {
  const given = threshold as Readonly<Record<string, unknown>>;
  const has = (name: string) => given[name] !== undefined;
  const [measure, other] = ["distinct", "sum", "avg", "percentile"].filter(has);
  if (other !== undefined) fault(["threshold", other], `stands instead of ${measure}, not beside it`);
  const [lower, secondLower] = ["gte", "gt"].filter(has);
  const [upper, secondUpper] = ["lte", "lt"].filter(has);
  if (secondLower !== undefined) fault(["threshold", "gt"], "stands instead of gte, not beside it");
  if (secondUpper !== undefined) fault(["threshold", "lt"], "stands instead of lte, not beside it");
  const counts = measure === undefined || measure === "distinct";
  const bound = lower ?? upper;
  if (counts && lower !== undefined) fault(["threshold", lower], "belongs to sum, avg and percentile: use count");
  if (counts && upper === undefined && !has("count")) fault(["threshold", "count"], "is required");
  if (!counts && bound === undefined) fault(["threshold"], "needs gte, gt, lte or lt");
  const least = counts ? (given.count ?? 1) : lower === undefined ? undefined : given[lower];
  const most = upper === undefined ? undefined : given[upper];
  if (typeof least !== "number" || typeof most !== "number") return;
  const isStrict = upper === "lt" || lower === "gt";
  if (least > most || (isStrict && least === most))
    fault(["threshold", upper!], "leaves nothing above the lower bound");
}

function refuseSteps(rule: Wholeness, fault: (path: PropertyKey[], message: string) => void): void {
  const names = new Set<unknown>();
  for (const [i, step] of listOf(rule.sequence).entries()) {
    if (typeof step !== "object" || step === null) continue;
    const { name, group_by: own, absent, count } = step as Readonly<Record<string, unknown>>;
    if (names.has(name)) fault(["sequence", i, "name"], "is the name of another step");
    if (name !== undefined) names.add(name);
    if (own !== undefined && [own].flat().length !== [rule.group_by ?? []].flat().length) {
      fault(["sequence", i, "group_by"], "needs as many paths as the rule's group_by");
    }
    if (absent !== true) continue;
    if (rule.sequence_order === "any") fault(["sequence", i, "absent"], "needs steps in order");
    if (typeof count === "number" && count > 1) fault(["sequence", i, "count"], "must be 1 for an absent step");
  }
  const steps = listOf(rule.sequence);
  const least = rule.sequence_min;
  if (typeof least === "number") {
    if (rule.sequence_order !== "any") fault(["sequence_min"], "needs sequence_order: any");
    if (least > steps.length) fault(["sequence_min"], `must be at most the number of steps, ${steps.length}`);
    for (const [i, step] of steps.entries()) {
      const { count } = (step ?? {}) as { readonly count?: unknown };
      if (typeof count === "number" && count > 1) fault(["sequence", i, "count"], "must be 1 with sequence_min");
    }
  }
  if (steps.length > 0 && steps.every(isAbsent)) fault(["sequence"], "needs a step that is not absent");
}

function isAbsent(step: unknown): boolean {
  return typeof step === "object" && step !== null && "absent" in step && step.absent === true;
}

/** Paths between `{{` and `}}` in a title or a description. */
export const PLACE_PATHS_MAX = 8;

/** A place with more paths would be shown as it stands, braces and all. */
export function refuseCrowdedPlaces(text: string, context: z.RefinementCtx): void {
  const crowded = text.match(/\{\{[^{}]*\}\}/g)?.find((place) => place.split("|").length > PLACE_PATHS_MAX);
  if (crowded === undefined) return;
  context.addIssue({ code: "custom", message: `at most ${PLACE_PATHS_MAX} paths between {{ and }}` });
}

/** A list of whatever it is of; of anything else, nothing. */
function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

const SOURCE_OPERATORS = ["equals", "not_equals", "in", "not_in"] as const;
const LISTING: ReadonlySet<string> = new Set(["in", "not_in"]);

/** A test for a source that cannot be is a mistake to point out, not a rule that never matches. */
function unknownSources(
  items: readonly ConditionInput[],
  sources: readonly string[],
  fault: (path: PropertyKey[], message: string) => void,
): void {
  const visit = (item: ConditionInput, path: PropertyKey[]): void => {
    const within = (list: unknown, name: string) =>
      listOf(list).forEach((inner, i) => visit(inner as ConditionInput, [...path, name, i]));
    // What has another shape has been refused for that.
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
  const within = (above: PropertyKey[], { conditions }: { readonly conditions: readonly ConditionInput[] }) =>
    unknownSources(conditions, sources, (path, message) =>
      context.addIssue({ code: "custom", path: [...above, ...path], message }),
    );
  within([], rule);
  for (const name of ["sequence", "exceptions"] as const) {
    for (const [i, part] of listOf(rule[name]).entries()) {
      if (typeof part === "object" && part !== null) within([name, i], part as Pick<SourceTests, "conditions">);
    }
  }
}

/** What is wrong with an exception that is added by itself, beyond its shape. */
export function exceptionFaults(
  { conditions, expires_at: expiresAt }: Pick<ExceptionInput, "expires_at"> & Pick<SourceTests, "conditions">,
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
 * What is wrong with the exceptions that a rule comes with, beyond their shape. `known` are those of the rule that it
 * replaces. The input may have other faults, and things of any type in it.
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
    if (given.id !== undefined && !kept) fault("id", "is not the id of an exception of the rule");
    else if (kept && ids.has(kept.id)) fault("id", "is given twice");
    ids.add(given.id);
    if (given.author !== undefined && given.author !== kept?.author) fault("author", "cannot be set");
    const timeOf = (value: unknown) => (typeof value === "string" ? parseTime(value) : undefined);
    if (given.created_at !== undefined && (!kept || timeOf(given.created_at) !== kept.createdAt)) {
      fault("created_at", "cannot be set");
    }
    const expiresAt = timeOf(given.expires_at);
    // One that is over already may stay as it is.
    if (expiresAt !== undefined && expiresAt <= now && expiresAt !== kept?.expiresAt) fault("expires_at", AHEAD);
  }
  return faults;
}

const AHEAD = "must lie ahead";

interface SourceTests {
  readonly conditions: readonly ConditionInput[];
  readonly sequence?: readonly { readonly conditions: readonly ConditionInput[] }[] | null | undefined;
  readonly exceptions: readonly { readonly conditions: readonly ConditionInput[] }[];
}
