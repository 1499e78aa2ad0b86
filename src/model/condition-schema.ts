import { z } from "zod";
import { BESIDE_OTHERS, formatPath, passIssues } from "../lib/fault.ts";
import { withSizeGuard } from "../lib/size-guard.ts";
import {
  ANY_FIELD_OPERATORS,
  OPERATOR_NAMES,
  OPERATORS,
  type FieldTestInput,
  type Operator,
  type OperatorName,
  type Scalar,
  type ValueKind,
} from "./condition.ts";
import { EVENT_FIELDS, isAnyFieldOf, type QueryFields } from "./query-fields.ts";
import { patternWeight } from "./pattern.ts";

// Schemas of conditions, for validation and for the OpenAPI document.

const LIST_VALUES_MAX = 1000;
const TEXT_VALUE_CHARACTERS_MAX = 8192;
const PATTERN_CHARACTERS_MAX = 2048;
const PATTERNS_MAX = 100;
const TIME_PARTS_MAX = 100;
const GLOB_CHARACTERS_MAX = 1024;
const HOURS_CHARACTERS_MAX = 100;
const TIME_PART_CHARACTERS_MAX = 20;

const SCALAR_WORDS = "a string, a number or a boolean";
/** Any JSON number; integers beyond 2^53 are bigint. */
const number = z.custom<number | bigint>(isNumber).meta({ type: "number" });
export const positiveNumber = z
  .custom<number | bigint>((value) => isNumber(value) && value > 0)
  .meta({ type: "number", exclusiveMinimum: 0 });

function isNumber(value: unknown): value is number | bigint {
  return typeof value === "bigint" || Number.isFinite(value);
}

const scalar = z.union([z.string().max(TEXT_VALUE_CHARACTERS_MAX), number, z.boolean()], {
  error: SCALAR_WORDS,
});
/** Up to this many values of the wrong type in a list are reported one by one; beyond it, the list as a whole. */
const WRONG_VALUES_MAX = 20;
const scalars = withSizeGuard(z.array(scalar).min(1).max(LIST_VALUES_MAX), (list) => {
  const wrong = Array.isArray(list) ? list.filter((item) => typeof item === "object").length : 0;
  return wrong > WRONG_VALUES_MAX ? `each must be ${SCALAR_WORDS}` : undefined;
});
const text = z.string().min(1).max(TEXT_VALUE_CHARACTERS_MAX);
const texts = textOrTexts(text, LIST_VALUES_MAX);
const otherField = (fields: QueryFields) =>
  z.string().superRefine((path, context) => {
    const fault = path === "id" ? "every id is different" : fields.pathFault(path);
    if (fault) context.addIssue({ code: "custom", message: fault });
  });
const bound = (fields: QueryFields) =>
  z.union([number, z.string()], {
    error: `a number, or a time for ${fields === EVENT_FIELDS ? "the field timestamp" : fields.timeWords}`,
  });

/** One text, or a list of alternatives. */
function textOrTexts(item: z.ZodString, itemsMax: number) {
  const error = `a text, or a list of 1 to ${itemsMax} texts`;
  return oneOrSeveral(item, z.array(item).min(1).max(itemsMax), { itemsMax, error });
}

/** One text or a list of texts. Dispatches by hand instead of a union, so that a fault names its position in the list. */
export function oneOrSeveral<Item extends z.ZodType, List extends z.ZodType>(
  item: Item,
  list: List,
  { itemsMax, error }: { readonly itemsMax: number; readonly error: string },
) {
  return z.preprocess(
    (input, context) => {
      if (!Array.isArray(input)) return input;
      const wrong = input.filter((value) => typeof value !== "string").length;
      if (input.length > itemsMax || wrong > WRONG_VALUES_MAX) {
        context.addIssue({ code: "custom", message: error });
        return input;
      }
      const parsed = list.safeParse(input);
      if (!parsed.success) passIssues(parsed.error, context);
      // Later checks still look at the refused input for more faults.
      return input;
    },
    z.union([item, list], { error }),
  );
}

/** The schema of each kind of value. */
const valuesOf = (fields: QueryFields) => ({
  scalar,
  scalars,
  texts,
  globs: textOrTexts(z.string().min(1).max(GLOB_CHARACTERS_MAX), LIST_VALUES_MAX),
  patterns: textOrTexts(z.string().min(1).max(PATTERN_CHARACTERS_MAX), PATTERNS_MAX),
  networks: textOrTexts(z.string(), LIST_VALUES_MAX),
  bound: bound(fields),
  hours: z.string().max(HOURS_CHARACTERS_MAX),
  timeParts: textOrTexts(z.string().min(1).max(TIME_PART_CHARACTERS_MAX), TIME_PARTS_MAX),
  otherField: otherField(fields),
  flag: z.boolean(),
});
type Values = ReturnType<typeof valuesOf> & Record<ValueKind, z.ZodType>;

/** Limit of the summed weight of all patterns in one query or rule: each must be compiled before the first test. */
const PATTERNS_WEIGHT_MAX = 5000;
const PATTERN_OPERATORS: ReadonlySet<string> = new Set(
  OPERATOR_NAMES.filter((name) => OPERATORS[name].value === "patterns"),
);

/** The summed weight of the patterns in filters or conditions, which need not have been checked. */
function patternsWeight(input: unknown): number {
  if (typeof input !== "object" || input === null) return 0;
  let weight = 0;
  for (const [key, value] of Object.entries(input)) {
    if (!PATTERN_OPERATORS.has(key)) weight += patternsWeight(value);
    else for (const pattern of [value].flat()) if (typeof pattern === "string") weight += patternWeight(pattern);
    if (weight > PATTERNS_WEIGHT_MAX) return weight;
  }
  return weight;
}

export function patternsFault(input: unknown): string | undefined {
  if (patternsWeight(input) <= PATTERNS_WEIGHT_MAX) return undefined;
  return `patterns are too large together: their length with repetitions expanded must not exceed ${PATTERNS_WEIGHT_MAX}`;
}

/** Operators on whole ids: a store looks events up by id instead of scanning. */
const ID_OPERATORS: readonly OperatorName[] = ["equals", "not_equals", "in", "not_in", "exists"];

/** `{ field, <one operator>: value, ignore_case? }` in a request. */
export function fieldTestSchemaOf(fields: QueryFields) {
  const values: Values = valuesOf(fields);
  const operatorFields = Object.fromEntries(
    OPERATOR_NAMES.map((name) => [name, values[OPERATORS[name].value].describe(OPERATORS[name].about).optional()]),
  ) as { [Name in OperatorName]: z.ZodOptional<Values[(typeof OPERATORS)[Name]["value"]]> };
  return z
    .strictObject({ field: z.string(), ...operatorFields, ignore_case: z.boolean().optional() })
    .superRefine((input, context) => refuseTest(fields, input, context), BESIDE_OTHERS)
    .meta({ id: `${fields.prefix}FieldTest`, oneOf: OPERATOR_NAMES.map((name) => ({ required: [name] })) });
}

export const fieldTestSchema = fieldTestSchemaOf(EVENT_FIELDS);

/** Reports all faults at once, one per path, also next to values of the wrong type. */
function refuseTest(fields: QueryFields, input: FieldTestInput, context: z.RefinementCtx): void {
  const refused = new Set(context.issues.map(({ path }) => formatPath(path ?? [])));
  const refuse = (path: PropertyKey[], message: string) => {
    refused.add(formatPath(path));
    context.addIssue({ code: "custom", path, message });
  };
  const fault = refused.has("field") || isAnyFieldOf(fields, input.field) ? undefined : fields.pathFault(input.field);
  if (fault) refuse(["field"], fault);
  const given = OPERATOR_NAMES.filter((name) => input[name] !== undefined);
  if (given.length !== 1) {
    const message = given.length === 0 ? "needs an operator" : `takes one operator, not ${given.join(" and ")}`;
    return refuse([], `${message}: one of ${OPERATOR_NAMES.join(", ")}`);
  }
  const name = given[0]!;
  if (isAnyFieldOf(fields, input.field) && !ANY_FIELD_OPERATORS.includes(name)) {
    refuse([name], `any field (${input.field}) takes ${ANY_FIELD_OPERATORS.join(", ")}, not ${name}`);
  }
  if (input.field === "id" && !ID_OPERATORS.includes(name)) {
    refuse([name], `id takes ${ID_OPERATORS.join(", ")}, not ${name}`);
  }
  const operator = OPERATORS[name] as Operator;
  const refuseValue = (value: Scalar, path: PropertyKey[]) => {
    if (refused.has(formatPath(path))) return;
    const message = operator.fault?.(value, fields.operatorField(input.field), input.ignore_case === true);
    if (message) refuse(path, message);
  };
  const value = input[name] as Scalar | Scalar[];
  if (!Array.isArray(value)) refuseValue(value, [name]);
  else if (!refused.has(name)) value.forEach((item, i) => refuseValue(item, [name, i]));
  if (input.ignore_case && !operator.ignoresCase) refuse(["ignore_case"], `${name} does not compare text`);
}

export const keywordSchema = z
  .strictObject({ keyword: texts, ignore_case: z.boolean().default(true) })
  .meta({ id: "Keyword", description: "any field contains this text, or one of these" });
