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

export const MEASURES = ["count", "distinct", "sum", "avg", "percentile"] as const;
export type Measure = (typeof MEASURES)[number];
export const LOWER_BOUNDS = ["gte", "gt"] as const;
export const UPPER_BOUNDS = ["lte", "lt"] as const;
const BOUNDS: readonly string[] = [...LOWER_BOUNDS, ...UPPER_BOUNDS];

/** What a threshold compares. */
export function measureOf(threshold: Draft): Measure {
  return MEASURES.find((measure) => measure !== "count" && isSet(threshold[measure])) ?? "count";
}

/** The field, or fields, that are measured. */
export function measuredField(threshold: Draft): unknown {
  const measure = measureOf(threshold);
  if (measure === "count") return undefined;
  return measure === "percentile" ? (threshold["percentile"] as Draft)["of"] : threshold[measure];
}

/** The threshold with another measure; the field and the bounds stay as far as they make sense. */
export function withMeasure(threshold: Draft, measure: Measure): Draft {
  const before = measureOf(threshold);
  if (measure === before) return threshold;
  const field = measuredField(threshold) ?? "";
  const single = Array.isArray(field) ? (field[0] as unknown) : field;
  const isCounted = measure === "count" || measure === "distinct";
  const rest = Object.fromEntries(
    Object.entries(threshold).filter(([name]) => name === "count" || !(MEASURES as readonly string[]).includes(name)),
  );
  const bounded = BOUNDS.some((name) => isSet(rest[name]));
  if (isCounted) {
    const unbounded = Object.fromEntries(Object.entries(rest).filter(([name]) => !BOUNDS.includes(name)));
    return { count: 5, ...unbounded, ...(measure === "distinct" && { distinct: field }) };
  }
  const { count: _count, ...others } = rest;
  return {
    ...others,
    [measure]: measure === "percentile" ? { of: single, rank: 95 } : single,
    ...(!bounded && { gte: 100 }),
  };
}

/** The threshold with a bound of one side; `undefined` takes it away. */
export function withBound(threshold: Draft, side: readonly string[], name: string | undefined, value: number): Draft {
  const rest = Object.fromEntries(Object.entries(threshold).filter(([each]) => !side.includes(each)));
  return name === undefined ? rest : { ...rest, [name]: value };
}

/** What counts: events that meet conditions, or occurrences of a part. */
export function withInputOf(input: Draft, part: string | undefined): Draft {
  const { conditions, part: _part, ...rest } = input;
  return part === undefined ? { ...rest, conditions: conditions ?? NEW_STEP.conditions } : { ...rest, part };
}

export const newPart = (name: string): Draft => ({
  name,
  conditions: NEW_STEP.conditions,
  window: "5m",
  threshold: { count: 5 },
});
