import { pathList, type ConditionInput, type Part } from "../model/rule.ts";
import type { Aggregate } from "./aggregate-fields.ts";
import type { ImportNotes } from "./import-note.ts";

// Correlations inside other correlations.

const PARTS_MAX = 10;
const PART_NAME_CHARACTERS_MAX = 100;
const ROOM_FOR_NUMBER = 4;

/** A correlation that another one counts, and the fields of its occurrences. */
export interface InnerCorrelation {
  readonly made: Aggregate;
  /** Names in `group-by`, and their paths. */
  readonly fields: readonly string[];
  readonly paths: readonly string[];
  /** The same correlation grouped by other fields; undefined if that is not possible. */
  regrouped(fields: readonly string[]): InnerCorrelation | undefined;
}

export function toInner(
  made: Aggregate,
  fields: readonly string[],
  regrouped: InnerCorrelation["regrouped"],
): InnerCorrelation {
  return { made, fields, paths: pathList(made.threshold ? made.threshold.group_by : made.group_by), regrouped };
}

/** Why it cannot be part of another correlation, or undefined if it can. */
export function partFault({ made }: InnerCorrelation): string | undefined {
  const { lte, lt } = made.threshold ?? {};
  if (lte !== undefined || lt !== undefined)
    return "has an upper bound, which is decided when its window ends: it cannot be part of another correlation";
  if (made.sequence?.at(-1)?.absent)
    return "ends with a rule that must not match, which the clock decides: it cannot be part of another correlation";
  return undefined;
}

/** The parts of one rule, each after the parts that it uses. */
export class PartList {
  readonly #source: string;
  readonly list: Part[] = [];

  /** `source`: that of the rule. */
  constructor(source: string) {
    this.#source = source;
  }

  /** Adds a part and returns its name; undefined if there are too many parts. */
  add(reference: string, { made }: InnerCorrelation, notes: ImportNotes): string | undefined {
    const {
      parts = [],
      source,
      window,
      threshold,
      sequence,
      sequence_order = "in_order",
      sequence_min,
      group_by,
    } = made;
    if (this.list.length + parts.length >= PARTS_MAX)
      return notes.refuse("correlation.rules", `contains more than ${PARTS_MAX} inner correlations`);
    const names = new Map<string, string>();
    const named = <Each extends { readonly part?: string | undefined }>(inputs: readonly Each[]): Each[] =>
      inputs.map((input) => (input.part === undefined ? input : { ...input, part: names.get(input.part)! }));
    const put = (part: Part): string => {
      const name = this.#uniqueName(part.name);
      const isOfSource = source === this.#source || !isAboutEvents(part);
      const conditions: ConditionInput[] = isOfSource
        ? [...part.conditions]
        : [{ field: "source", equals: source }, ...part.conditions];
      this.list.push({
        ...part,
        name,
        conditions,
        ...(part.threshold && {
          threshold: { ...part.threshold, ...(part.threshold.inputs && { inputs: named(part.threshold.inputs) }) },
        }),
        ...(part.sequence && { sequence: named(part.sequence) }),
      });
      return name;
    };
    for (const part of parts) names.set(part.name, put(part));
    return put({
      name: reference,
      conditions: made.conditions,
      window,
      ...(threshold && { threshold }),
      ...(sequence && { sequence: sequence.map((step) => ({ count: 1, ...step })) }),
      sequence_order,
      ...(sequence_min !== undefined && { sequence_min }),
      ...(group_by !== undefined && { group_by }),
    });
  }

  #uniqueName(wanted: string): string {
    const name = wanted.slice(0, PART_NAME_CHARACTERS_MAX);
    const isFree = (candidate: string) => this.list.every((part) => part.name !== candidate);
    if (isFree(name)) return name;
    for (let number = 2; ; number++) {
      const candidate = `${wanted.slice(0, PART_NAME_CHARACTERS_MAX - ROOM_FOR_NUMBER)} ${number}`;
      if (isFree(candidate)) return candidate;
    }
  }
}

/** True if the part counts events, not only occurrences of other parts. */
function isAboutEvents({ sequence, threshold }: Part): boolean {
  return (sequence ?? threshold?.inputs)?.some(({ part }) => part === undefined) ?? true;
}
