import type { z } from "zod";
import { nearestName } from "./nearest.ts";

/** One fault of an input. */
export interface Fault {
  /** `query.bool.must[0].regex`; empty for the whole input. */
  readonly field: string;
  readonly message: string;
}

/** Joins segments to a path: `a.b[0]`. */
export function formatPath(segments: readonly PropertyKey[]): string {
  let path = "";
  for (const segment of segments) {
    if (typeof segment === "number") path += `[${segment}]`;
    else path += path === "" ? String(segment) : `.${String(segment)}`;
  }
  return path;
}

/** Limit of reported faults per request, so that a megabyte of faults does not produce an answer many times as large. */
export const FAULTS_MAX = 100;

/**
 * Merges the faults that two checks found in one input. The second adds nothing at or below a path where the first has a
 * fault. The result holds at most one more than the limit, which tells that there are more.
 */
export function joinFaults(first: readonly Fault[], second: readonly Fault[]): Fault[] {
  const isWithin = (field: string, place: string) =>
    field.startsWith(place) && (field.length === place.length || place === "" || /[.[]/.test(field[place.length]!));
  const joined = first.slice(0, FAULTS_MAX + 1);
  const known = [...joined];
  for (const fault of second) {
    if (joined.length > FAULTS_MAX) break;
    if (!known.some(({ field }) => isWithin(fault.field, field))) joined.push(fault);
  }
  return joined;
}

/**
 * Runs a refinement even if the object already has faults, so that all of them are reported at once. The refinement
 * must accept fields of any type.
 */
export const BESIDE_OTHERS = {
  when: ({ value }: z.core.ParsePayload): boolean =>
    typeof value === "object" && value !== null && !Array.isArray(value),
};

type Issue = z.core.$ZodIssue;

const SUGGESTIONS_MAX = 10;
const SUGGESTED_CHARACTERS_MAX = 64;

/** Parse option: an issue about unknown keys carries the known ones as its message. */
export const WITH_NAMES = {
  error: ({ code, inst }: z.core.$ZodRawIssue): string | undefined => {
    const def = code === "unrecognized_keys" ? (inst as z.core.$ZodType | undefined)?._zod.def : undefined;
    const names = def && "shape" in def ? Object.keys(def.shape as object) : [];
    return names.length > 0 ? names.join(" ") : undefined;
  },
};

/** Suggests a known name, unless the input has too many unknown ones to be a typing error. */
function unknownName(key: string, { keys, message }: z.core.$ZodIssueUnrecognizedKeys): string {
  const isTried = keys.length <= SUGGESTIONS_MAX && key.length <= SUGGESTED_CHARACTERS_MAX;
  const near = isTried && !message.startsWith("Unrecognized ") ? nearestName(key, message.split(" ")) : undefined;
  return near === undefined ? "is unknown" : `is unknown; did you mean ${near}?`;
}

/** Limit of issues per list item. */
const ITEM_ISSUES_MAX = 20;

/** Passes the issues of an item on to the schema that contains it. */
export function passIssues({ issues }: z.ZodError, context: z.RefinementCtx): void {
  for (const issue of issues.slice(0, ITEM_ISSUES_MAX)) {
    context.addIssue({ ...issue } as Parameters<typeof context.addIssue>[0]);
  }
}

/** The faults that a schema found, one per path, worded for the author of the input. */
export function faultsOf(error: z.ZodError, above: readonly PropertyKey[] = []): Fault[] {
  const mistyped = new Set<string>();
  for (const { code, path } of error.issues) if (code === "invalid_type") mistyped.add(formatPath(path));
  // A value of the wrong type is reported once, without a second fault about its length.
  const isIdle = ({ code, path }: Issue) =>
    (code === "too_small" || code === "too_big") && mistyped.has(formatPath(path));
  return error.issues.flatMap((issue) => (isIdle(issue) ? [] : faultsOfIssue(issue, above)));
}

function faultsOfIssue(issue: Issue, above: readonly PropertyKey[]): Fault[] {
  const path = [...above, ...issue.path];
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => ({ field: formatPath([...path, key]), message: unknownName(key, issue) }));
    case "invalid_key":
    case "invalid_element":
      return issue.issues.flatMap((inner) => faultsOfIssue({ ...inner, path: [] } as Issue, path));
    default:
      return [{ field: formatPath(path), message: wordIssue(issue) }];
  }
}

/** True for zod's default wording, which a schema may replace. */
function isDefault({ message }: Issue): boolean {
  return message.startsWith("Invalid ");
}

const TYPES: Record<string, string> = {
  object: "an object",
  record: "an object",
  array: "an array",
  int: "a whole number",
  boolean: "true or false",
};
const TOO_LARGE = `must be a number within ±${Number.MAX_SAFE_INTEGER}`;
const UNITS: Record<string, string> = { string: " characters", array: " items", set: " items" };

/** The words for a wrong value, which for a missing one say what is allowed. */
function worded(issue: Issue, words: string): string {
  return "input" in issue && issue.input === undefined ? `is required: ${words}` : words;
}

function wordIssue(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      if (issue.message.endsWith("received undefined")) return "is required";
      if (issue.message.endsWith("received bigint") && ["number", "int"].includes(issue.expected)) return TOO_LARGE;
      return isDefault(issue)
        ? `must be ${TYPES[issue.expected] ?? `a ${issue.expected}`}`
        : worded(issue, issue.message);
    case "invalid_value": {
      const allowed = `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.map(String).join(", ")}`;
      return worded(issue, isDefault(issue) ? allowed : issue.message);
    }
    case "too_small":
      if (issue.minimum === 1 && issue.origin in UNITS) return "must not be empty";
      return `must be ${issue.inclusive ? "at least" : "more than"} ${issue.minimum}${UNITS[issue.origin] ?? ""}`;
    case "too_big":
      return `must be ${issue.inclusive ? "at most" : "less than"} ${issue.maximum}${UNITS[issue.origin] ?? ""}`;
    default:
      return issue.message;
  }
}
