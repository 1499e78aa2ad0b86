import type { z } from "zod";

/** What is wrong with one place of an input. */
export interface Fault {
  /** `query.bool.must[0].regex`; empty for the whole. */
  readonly field: string;
  readonly message: string;
}

/** `a.b[0]` from its segments. */
export function formatPath(segments: readonly PropertyKey[]): string {
  let path = "";
  for (const segment of segments) {
    if (typeof segment === "number") path += `[${segment}]`;
    else path += path === "" ? String(segment) : `.${String(segment)}`;
  }
  return path;
}

type Issue = z.core.$ZodIssue;

/** The faults that a schema found, one for each place, worded for the one who wrote the input. */
export function faultsOf(error: z.ZodError, above: readonly PropertyKey[] = []): Fault[] {
  return error.issues.flatMap((issue) => faultsOfIssue(issue, above));
}

function faultsOfIssue(issue: Issue, above: readonly PropertyKey[]): Fault[] {
  const path = [...above, ...issue.path];
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => ({ field: formatPath([...path, key]), message: "is not known here" }));
    case "invalid_key":
    case "invalid_element":
      return issue.issues.flatMap((inner) => faultsOfIssue({ ...inner, path: [] } as Issue, path));
    default:
      return [{ field: formatPath(path), message: wordIssue(issue) }];
  }
}

const UNITS: Record<string, string> = { string: " characters", array: " items", set: " items" };

function wordIssue(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      if (issue.message.endsWith("received undefined")) return "is required";
      return issue.message.startsWith("Invalid input: ")
        ? issue.message.slice("Invalid input: ".length)
        : `expected ${issue.expected}`;
    case "invalid_value":
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.map(String).join(", ")}`;
    case "too_small":
      if (issue.minimum === 1 && issue.origin in UNITS) return "must not be empty";
      return `must be ${issue.inclusive ? "at least" : "more than"} ${issue.minimum}${UNITS[issue.origin] ?? ""}`;
    case "too_big":
      return `must be ${issue.inclusive ? "at most" : "less than"} ${issue.maximum}${UNITS[issue.origin] ?? ""}`;
    default:
      return issue.message;
  }
}
