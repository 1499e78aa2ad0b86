import { list, type Draft } from "./draft.ts";

// When a rule fires: on each event, on many, on one after another, or on none.

export const TIMINGS = ["each", "many", "steps", "silence"] as const;
export type Timing = (typeof TIMINGS)[number];

const isSet = (value: unknown) => value !== undefined && value !== null;

export function timingOf(rule: Draft): Timing {
  if (isSet(rule["sequence"])) return "steps";
  if (isSet(rule["absence"])) return "silence";
  return isSet(rule["threshold"]) ? "many" : "each";
}

const FIELDS_OF_TIMING = new Set([
  "threshold",
  "sequence",
  "sequence_order",
  "sequence_min",
  "absence",
  "group_by",
  "window",
  "parts",
]);

const NEW_STEP = { conditions: [{ field: "type", equals: "" }] };

/** The rule with another timing. What belongs to the old one is kept aside by the caller, not here. */
export function withTiming(rule: Draft, timing: Timing): Draft {
  const rest = Object.fromEntries(Object.entries(rule).filter(([name]) => !FIELDS_OF_TIMING.has(name)));
  const group = isSet(rule["group_by"]) ? { group_by: rule["group_by"] } : {};
  switch (timing) {
    case "each":
      return rest;
    case "many":
      return { ...rest, window: rule["window"] ?? "5m", threshold: { count: 5, ...group } };
    case "steps":
      // The conditions of the rule would hold for every step: they become the first one.
      return {
        ...rest,
        conditions: [],
        window: rule["window"] ?? "10m",
        sequence: [
          {
            name: "first",
            conditions: list(rule["conditions"]).length === 0 ? NEW_STEP.conditions : rule["conditions"],
          },
          { name: "then", ...NEW_STEP },
        ],
        ...group,
      };
    case "silence":
      return { ...rest, absence: "1h", ...group };
    default:
      return timing satisfies never;
  }
}

/** Settings of a threshold that have a field in the form. */
const FORM_THRESHOLD = new Set(["count", "distinct", "group_by"]);

export function isPlainThreshold(threshold: unknown): boolean {
  return (
    typeof threshold === "object" &&
    threshold !== null &&
    Object.keys(threshold).every((name) => FORM_THRESHOLD.has(name))
  );
}
