import { setImmediate } from "node:timers/promises";
import { parseExact } from "../lib/exact-json.ts";
import type { EventExplanation } from "../model/alert-match.ts";
import type { Event } from "../model/event.ts";
import {
  compileExplainer,
  MATCHED_FIELDS_MAX,
  type MatchedField,
  type MatchExplainer,
} from "../model/matched-fields.ts";
import {
  ANY_SOURCE,
  inputsOf,
  toConditions,
  toCorrelated,
  type ConditionInput,
  type Correlated,
} from "../model/rule.ts";
import type { RuleDefinition } from "../model/rule-definition.ts";
import type { StoredEvent } from "../store/ports/event-engine.ts";

// Explains why the events of an alert matched its rule: the step and the fields of each. It is computed when somebody reads
// the alert, so that detection stores no more than the rule's definition.

/** The time for all events of one alert. Patterns on long texts are slow; events beyond it are left unexplained. */
const EXPLANATION_MS_MAX = 200;

interface CountedInput {
  readonly part: string | null;
  readonly step: string | null;
  readonly stepNumber: number | null;
  /** How many events complete the step. */
  readonly count: number;
  readonly explain: MatchExplainer;
}

class OutOfTime extends Error {}

/**
 * Explains the events, which must be newest first. They are parsed one by one, with other requests in between: together they
 * may have many megabytes.
 */
export async function explainMatch(
  definition: RuleDefinition,
  events: readonly StoredEvent[],
  budgetMs: number = EXPLANATION_MS_MAX,
): Promise<EventExplanation[]> {
  const explainer = new Explainer(definition);
  const found: EventExplanation[] = [];
  let leftMs = budgetMs;
  // Steps are assigned from the oldest event on.
  for (const { id, text } of events.toReversed()) {
    const startedAt = performance.now();
    found.push(leftMs > 0 ? explainer.explain(parseExact(text) as Event, leftMs) : unexplained(id, false));
    leftMs -= performance.now() - startedAt;
    await setImmediate();
  }
  return found.reverse();
}

function unexplained(eventId: string, isComplete: boolean): EventExplanation {
  return { eventId, part: null, step: null, stepNumber: null, fields: [], isComplete };
}

class Explainer {
  readonly #source: string;
  readonly #inputs: readonly CountedInput[];
  /** How often each step has occurred in the sequence that is being filled. */
  readonly #occurred = new Map<CountedInput, number>();
  #deadline = 0;

  constructor(definition: RuleDefinition) {
    this.#source = definition.source;
    const beforeTest = () => {
      if (performance.now() >= this.#deadline) throw new OutOfTime();
    };
    const inputs = (stage: Correlated, part: string | null): CountedInput[] => {
      const explainerOf = (conditions: readonly ConditionInput[]) =>
        compileExplainer(toConditions([...stage.conditions, ...conditions]), beforeTest);
      const all = inputsOf(stage);
      if (!all) return [{ part, step: null, stepNumber: null, count: Infinity, explain: explainerOf([]) }];
      return all.flatMap((input, i) => {
        // Occurrences of another part are explained by that part, and an absent step has no events.
        if (input.part !== undefined || ("absent" in input && input.absent)) return [];
        const [step, count] = "name" in input ? [input.name, input.count] : [null, Infinity];
        return [{ part, step, stepNumber: i + 1, count, explain: explainerOf(input.conditions ?? []) }];
      });
    };
    const parts = (definition.parts ?? []).flatMap((part) => inputs(toCorrelated(part), part.name));
    this.#inputs = [...parts, ...inputs(definition, null)];
  }

  explain(event: Event, budgetMs: number): EventExplanation {
    this.#deadline = performance.now() + budgetMs;
    if (this.#source !== ANY_SOURCE && event.source !== this.#source) return unexplained(event.id, true);
    const met: { input: CountedInput; fields: MatchedField[] }[] = [];
    try {
      for (const input of this.#inputs) {
        const fields: MatchedField[] = [];
        if (input.explain(event, fields)) met.push({ input, fields });
      }
    } catch (error) {
      if (error instanceof OutOfTime) return unexplained(event.id, false);
      throw error;
    }
    if (met.length === 0) return unexplained(event.id, true);
    const isVacant = ({ input }: { input: CountedInput }) => (this.#occurred.get(input) ?? 0) < input.count;
    const { input, fields } = met.find(isVacant) ?? met[0]!;
    this.#occur(input);
    const { part, step, stepNumber } = input;
    return { eventId: event.id, part, step, stepNumber, fields: distinct(fields), isComplete: true };
  }

  /** Counts the step. Once all steps of its sequence have occurred, the next event begins another sequence. */
  #occur(input: CountedInput): void {
    this.#occurred.set(input, (this.#occurred.get(input) ?? 0) + 1);
    const steps = this.#inputs.filter(({ part }) => part === input.part);
    if (steps.every((step) => (this.#occurred.get(step) ?? 0) >= step.count)) {
      for (const step of steps) this.#occurred.delete(step);
    }
  }
}

/** A rule may test the same field twice. */
function distinct(fields: readonly MatchedField[]): MatchedField[] {
  const keyOf = ({ field, operator, value, expected }: MatchedField) =>
    JSON.stringify([field, operator, value, expected]);
  return [...new Map(fields.map((each) => [keyOf(each), each])).values()].slice(0, MATCHED_FIELDS_MAX);
}
