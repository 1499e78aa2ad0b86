import { expect, test } from "vitest";
import { operatorOf, kindOf, readValue, valueText } from "../../console/screens/rules/editor/condition-model.ts";
import { list, pathsText, readPaths, type Draft } from "../../console/screens/rules/editor/draft.ts";
import { formGaps } from "../../console/screens/rules/editor/form-gaps.ts";
import { readYaml, updateYaml, writeYaml } from "../../console/screens/rules/editor/rule-yaml.ts";
import { measureOf, timingOf, withMeasure } from "../../console/screens/rules/editor/timing-model.ts";
import { readBuiltinFiles } from "../../src/detection/rules/builtin.ts";

// The form of the console on every built-in rule: a field that is read back is what it was.

const rules = readBuiltinFiles({ platform: "platform", timezone: "Europe/Berlin" }).map(
  ({ input }) => [input.name, JSON.parse(JSON.stringify(input)) as Draft] as const,
);

/** One value stands for a list of it. */
const single = (value: unknown) => (Array.isArray(value) && value.length === 1 ? (value[0] as unknown) : value);

function* testsIn(value: unknown): Generator<Draft> {
  if (Array.isArray(value)) for (const item of value) yield* testsIn(item);
  else if (typeof value === "object" && value !== null) {
    if ("field" in value && kindOf(value) === "test") yield value as Draft;
    for (const inner of Object.values(value)) yield* testsIn(inner);
  }
}

test.each(rules)("%s has a field in the form for everything, and loses nothing there or in the YAML", (_, rule) => {
  expect(formGaps(rule)).toEqual([]);
  const yaml = writeYaml(rule);
  expect(readYaml(yaml).rule).toEqual(rule);
  expect(updateYaml(yaml, rule)).toBe(yaml);
  for (const condition of testsIn(rule)) {
    const operator = operatorOf(condition)!;
    const value = condition[operator.name];
    const typed = valueText(operator.kind, value);
    expect(single(readValue(operator.kind, typed)), JSON.stringify(condition)).toEqual(single(value));
  }
  for (const stage of [rule, ...(list(rule["parts"]) as Draft[])]) {
    expect(["each", "many", "steps", "silence"]).toContain(timingOf(stage));
    for (const paths of [stage["group_by"], (stage["threshold"] as Draft | undefined)?.["group_by"]]) {
      if (paths !== undefined && paths !== null) expect(readPaths(pathsText(paths))).toEqual(single(paths));
    }
    const threshold = stage["threshold"] as Draft | undefined;
    if (threshold) expect(withMeasure(threshold, measureOf(threshold))).toEqual(threshold);
  }
});

test("what the form has no field for is named", () => {
  const rule = {
    name: "a.b",
    moon: 1,
    conditions: [{ any: [{ field: "raw.a", shines: true }] }],
    threshold: { tide: 2 },
  };
  expect(formGaps(rule).map(({ path }) => path)).toEqual([
    ["moon"],
    ["conditions", 0, "any", 0],
    ["threshold", "tide"],
  ]);
});
