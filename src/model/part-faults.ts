// Faults of a rule's parts and of the steps and inputs that refer to them. Values may be of any type: the schemas report
// wrong types.

export type ReportFault = (path: PropertyKey[], message: string) => void;
type UncheckedFields = Readonly<Record<string, unknown>>;

/** Limit of the steps and inputs on events in a rule and its parts: a match records in one bit set which of them it fits. */
const INPUTS_MAX = 30;

/** A rule or one of its parts, its path, and the parts that it may refer to. */
interface UncheckedStage {
  readonly shape: UncheckedFields;
  readonly above: readonly PropertyKey[];
  readonly parts: readonly UncheckedFields[];
}

interface UncheckedInput {
  readonly shape: UncheckedFields;
  readonly path: readonly PropertyKey[];
  readonly isStep: boolean;
}

/** Faults of the inputs of the rule and of its parts. */
export function refuseInputs(rule: UncheckedFields, fault: ReportFault): void {
  const parts = shapesOf(rule.parts);
  const stages: UncheckedStage[] = [
    ...parts.map((shape, i) => ({ shape, above: ["parts", i], parts: parts.slice(0, i) })),
    { shape: rule, above: [], parts },
  ];
  if (parts.length > 0 && (rule.absence ?? null) !== null) fault(["parts"], "require a threshold or a sequence");
  /** For each part, whether its occurrences are counted one by one. */
  const uses = new Map<UncheckedFields, boolean>();
  let events = 0;
  for (const stage of stages) {
    const inputs = inputsOf(stage);
    events += inputs.filter(({ shape }) => shape.part === undefined).length + (inputs.length === 0 ? 1 : 0);
    for (const input of inputs) refuseInput(input, stage, { fault, uses });
    const { conditions } = stage.shape;
    const isAboutParts = inputs.length > 0 && inputs.every(({ shape }) => shape.part !== undefined);
    if (isAboutParts && Array.isArray(conditions) && conditions.length > 0)
      fault([...stage.above, "conditions"], "must be empty if every step or input is a part: conditions test events");
  }
  for (const [i, part] of parts.entries()) {
    const isNamed = typeof part.name === "string";
    if (isNamed && !uses.has(part)) fault(["parts", i, "name"], "is not used: no step or input refers to this part");
    if (isNamed && parts.findIndex(({ name }) => name === part.name) < i)
      fault(["parts", i, "name"], "is already the name of another part");
  }
  if (events > INPUTS_MAX)
    fault(["parts"], `have more than ${INPUTS_MAX} steps and inputs on events, including the rule's own`);
}

/** Reports faults that only a part can have. */
export function refusePart(part: UncheckedFields, fault: ReportFault): void {
  const has = (value: unknown) => value !== undefined && value !== null;
  const { threshold, sequence } = part;
  if (!has(threshold) && !has(sequence)) fault(["threshold"], "is required, unless a sequence is given");
  const words = "is not possible in a part: only the clock could decide it";
  const bounds = shapeOf(threshold);
  for (const name of ["lte", "lt"]) if (has(bounds[name])) fault(["threshold", name], words);
  const steps = shapesOf(sequence);
  if (steps.at(-1)?.absent === true) fault(["sequence", steps.length - 1, "absent"], words);
}

function refuseInput(
  { shape, path, isStep }: UncheckedInput,
  { shape: stage, parts }: UncheckedStage,
  { fault, uses }: { readonly fault: ReportFault; readonly uses: Map<UncheckedFields, boolean> },
): void {
  const threshold = shapeOf(stage.threshold);
  const groupBy = listOf(isStep ? stage.group_by : threshold.group_by);
  const measured = listOf(threshold.distinct ?? threshold.sum ?? threshold.avg ?? shapeOf(threshold.percentile).of);
  if (!isStep) refuseOwnPaths(shape, { groupBy, measured }, (at, message) => fault([...path, ...at], message));
  if (shape.part === undefined) {
    if (shape.conditions === undefined) fault([...path, "conditions"], "is required, unless a part is given");
    return;
  }
  if (shape.conditions !== undefined) fault([...path, "part"], "cannot be combined with conditions");
  const part = parts.findLast(({ name }) => name === shape.part);
  if (!part) return fault([...path, "part"], "is not the name of an earlier part");
  if (isStep && typeof shape.count === "number" && shape.count > 1)
    fault([...path, "count"], "must be 1 for a part: its occurrences overlap");
  const isCounted = !isStep && threshold.distinct === undefined;
  if ((uses.get(part) ?? isCounted) !== isCounted)
    fault([...path, "part"], "is counted in one place and not in another: define the part twice, under two names");
  uses.set(part, isCounted);
  const known = listOf(part.threshold ? shapeOf(part.threshold).group_by : part.group_by);
  const wanted: [name: string, paths: readonly unknown[]][] = [["group_by", listOf(shape.group_by ?? groupBy)]];
  if (!isStep) wanted.push(["value", listOf(shape.value ?? measured)]);
  for (const [name, paths] of wanted) {
    const missing = paths.find((each) => typeof each === "string" && !known.includes(each));
    if (missing !== undefined)
      fault([...path, name], `${String(missing)} is not in the part's group_by, and a part has no other values`);
  }
}

function refuseOwnPaths(
  { group_by: own, value }: UncheckedFields,
  { groupBy, measured }: { readonly groupBy: readonly unknown[]; readonly measured: readonly unknown[] },
  fault: ReportFault,
): void {
  if (own !== undefined && listOf(own).length !== groupBy.length)
    fault(["group_by"], "must have as many paths as the threshold's group_by");
  if (value === undefined) return;
  if (measured.length === 0) fault(["value"], "applies to distinct, sum, avg and percentile only");
  else if (listOf(value).length !== measured.length)
    fault(["value"], `must have as many paths as the threshold: ${measured.length}`);
}

function inputsOf({ shape, above }: UncheckedStage): UncheckedInput[] {
  const isStep = Array.isArray(shape.sequence);
  const list = isStep ? shape.sequence : shapeOf(shape.threshold).inputs;
  const path = isStep ? ["sequence"] : ["threshold", "inputs"];
  return (Array.isArray(list) ? (list as unknown[]) : []).flatMap((item, i) =>
    typeof item === "object" && item !== null
      ? [{ shape: item as UncheckedFields, path: [...above, ...path, i], isStep }]
      : [],
  );
}

function shapeOf(value: unknown): UncheckedFields {
  return typeof value === "object" && value !== null ? (value as UncheckedFields) : {};
}

function shapesOf(value: unknown): UncheckedFields[] {
  return Array.isArray(value) ? value.map(shapeOf) : [];
}

function listOf(value: unknown): readonly unknown[] {
  return [value ?? []].flat();
}
