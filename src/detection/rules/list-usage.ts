import {
  compileCondition,
  isNegation,
  isRelation,
  toFieldTest,
  type FieldTest,
  type FieldTestInput,
} from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import type { Rule } from "../../model/rule.ts";

// Which rules test events for a list by its name.

const LISTS_FIELD = "enrichment.lists";

/** The tests of each rule on the lists of an event. A changed rule is a new object. */
const testsByRule = new WeakMap<Rule, readonly FieldTest[]>();

/** Names of the enabled rules with a condition on this list, in order. */
export function rulesUsingList(rules: readonly Rule[], list: string): string[] {
  return rules
    .filter((rule) => rule.enabled && listTests(rule).some((test) => isAbout(test, list)))
    .map(({ name }) => name)
    .sort();
}

function listTests(rule: Rule): readonly FieldTest[] {
  let tests = testsByRule.get(rule);
  if (!tests) testsByRule.set(rule, (tests = findTests(rule)));
  return tests;
}

function findTests({ conditions, threshold, sequence, parts }: Rule): FieldTest[] {
  const found: FieldTest[] = [];
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    if ("field" in value && value.field === LISTS_FIELD) found.push(toFieldTest(value as FieldTestInput));
    else for (const inner of Object.values(value)) walk(inner);
  };
  walk([conditions, threshold, sequence, parts]);
  return found;
}

/** A test whose result depends on whether the event is on any list at all is about no list in particular. */
function isAbout(test: FieldTest, list: string): boolean {
  if (test.operator === "exists" || isRelation(test.operator)) return false;
  const matches = compileCondition(test)({ raw: {}, enrichment: { lists: [list] } } as unknown as Event);
  return isNegation(test.operator) ? !matches : matches;
}
